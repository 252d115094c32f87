// SPDX-License-Identifier: GPL-2.0-only
#include "capture/sample_program.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sample.skel.h"

/* include/linux/proc_ns.h: the inode of the initial pid namespace. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU

static uint32_t own_pid_namespace(void)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) || status.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	return status.st_ino;
}

static size_t table_size(void)
{
	return SAMPLE_BUCKETS * sizeof(struct sample_bucket);
}

/* Maps are shared in whole pages. */
static size_t counters_size(const struct sample_program *sample)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = sample->cpu_count * sizeof(struct sample_counters);

	return (size + page - 1) / page * page;
}

static const void *map_shared(const struct bpf_map *map, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int take_ring_sample(void *counts, void *data, size_t size)
{
	return size < sizeof(struct sample) ? 0 : counts_add(counts, data);
}

/* Chooses the program whose settings are compiled in, or the one that is told them. */
static struct bpf_program *choose(const struct sample_program *sample, unsigned int generation,
				  struct sample_bpf *bpf)
{
	bool usual = sample->sides == (SAMPLE_USER | SAMPLE_KERNEL) && !own_pid_namespace() &&
		     generation == 0;

	bpf->rodata->sides = sample->sides;
	bpf->rodata->pid_namespace = own_pid_namespace();
	bpf->rodata->generation = generation;
	bpf_program__set_autoload(bpf->progs.sample, usual);
	bpf_program__set_autoload(bpf->progs.sample_with_settings, !usual);
	return usual ? bpf->progs.sample : bpf->progs.sample_with_settings;
}

/* program.load */
static int load(struct program *program, unsigned int generation)
{
	struct sample_program *sample = (struct sample_program *)program;
	struct sample_bpf *bpf = sample_bpf__open();
	struct bpf_program *chosen;
	int err;

	if (!bpf)
		return -errno;
	chosen = choose(sample, generation, bpf);
	/* Later generations take over the maps of the first. */
	err = sample->loads[0] ? program_share_maps(bpf->obj, sample->loads[0]->obj)
			       : bpf_map__set_max_entries(bpf->maps.counters, sample->cpu_count);
	err = err ?: sample_bpf__load(bpf);
	if (err) {
		sample_bpf__destroy(bpf);
		return err;
	}
	sample->loads[generation] = bpf;
	return bpf_program__fd(chosen);
}

int sample_program_load(struct sample_program *sample, uint32_t sides, struct counts *counts,
			struct error *e)
{
	int fd, cpus = libbpf_num_possible_cpus();
	const struct sample_bpf *bpf;

	if (cpus < 0)
		return error_set(e, -cpus, "cannot tell the number of CPUs");
	sample->program.load = load;
	sample->cpu_count = cpus;
	sample->sides = sides;
	fd = program_fd(&sample->program, 0, e);
	if (fd < 0)
		return fd;
	bpf = sample->loads[0];
	sample->table = map_shared(bpf->maps.table, table_size());
	sample->counters = map_shared(bpf->maps.counters, counters_size(sample));
	sample->ring =
		ring_buffer__new(bpf_map__fd(bpf->maps.ring), take_ring_sample, counts, NULL);
	if (!sample->table || !sample->counters || !sample->ring)
		return error_set(e, errno, "cannot map the counts of the BPF program");
	return 0;
}

void sample_program_free(struct sample_program *sample)
{
	ring_buffer__free(sample->ring);
	if (sample->table)
		munmap((void *)sample->table, table_size());
	if (sample->counters)
		munmap((void *)sample->counters, counters_size(sample));
	for (size_t i = 0; i < PROGRAM_GENERATIONS; i++)
		sample_bpf__destroy(sample->loads[i]);
	*sample = (struct sample_program){ 0 };
}

int sample_program_ring_fd(const struct sample_program *sample)
{
	return ring_buffer__epoll_fd(sample->ring);
}

int sample_program_read_ring(struct sample_program *sample)
{
	int n = ring_buffer__consume(sample->ring);

	return n < 0 ? n : 0;
}

struct sample_counters sample_program_counters(const struct sample_program *sample)
{
	struct sample_counters sum = { 0 };

	for (size_t i = 0; i < sample->cpu_count; i++) {
		const struct sample_counters *cpu = &sample->counters[i];

		sum.excluded += cpu->excluded;
		sum.ring += cpu->ring;
		sum.ring_full += cpu->ring_full;
		sum.timed += cpu->timed;
		sum.timed_ns += cpu->timed_ns;
	}
	return sum;
}

uint64_t sample_program_ticks(const struct sample_program *sample)
{
	uint64_t ticks = sample_program_counters(sample).excluded;

	for (size_t i = 0; i < SAMPLE_BUCKETS; i++)
		ticks += sample->table[i].ticks;
	return ticks;
}
