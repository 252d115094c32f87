// SPDX-License-Identifier: GPL-2.0-only
#include "capture/sample_program.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sample.skel.h"

/* include/linux/proc_ns.h: the inode of the initial pid namespace. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU

uint32_t sample_program_pid_namespace(void)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) || status.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	return status.st_ino;
}

/* The kernel's memory that we map; sizes are those of whole pages, as maps are shared. */
static size_t whole_pages(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static size_t table_size(void)
{
	return SAMPLE_BUCKETS * sizeof(struct sample_bucket);
}

static size_t stacks_size(void)
{
	return SAMPLE_BUCKETS * sizeof(struct stack_bucket);
}

static size_t arena_size(void)
{
	return whole_pages(STACK_CHUNKS * sizeof(struct stack_chunk));
}

static size_t counters_size(const struct sample_program *sample)
{
	return whole_pages(sample->cpu_count * sizeof(struct sample_counters));
}

static const void *map_shared(const struct bpf_map *map, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(const void *memory, size_t size)
{
	if (memory)
		munmap((void *)memory, size);
}

static int take_ring_sample(void *counts, void *data, size_t size)
{
	const struct sample *from = data;
	struct counted sample = { .user_depth = 1 };
	uint64_t pc;

	if (size < sizeof(*from))
		return 0;
	pc = from->pc;
	sample.id = from->id;
	sample.first_ns = from->first_ns;
	sample.count = from->count;
	return counts_add(counts, &sample, &pc);
}

static int take_ring_stack(void *counts, void *data, size_t size)
{
	const struct stack_sample *from = data;

	return size < offsetof(struct stack_sample, stack.pcs) ? 0
							       : counts_add_record(counts, from);
}

/* Chooses the program whose settings are compiled in, or the one that is told them. */
static struct bpf_program *choose(const struct sample_program *sample, unsigned int generation,
				  struct sample_bpf *bpf)
{
	if (sample->with_stacks)
		return bpf->progs.sample_stacks;
	if (sample->sides == (SAMPLE_USER | SAMPLE_KERNEL) && !sample_program_pid_namespace() &&
	    generation == 0)
		return bpf->progs.sample;
	return bpf->progs.sample_with_settings;
}

/* What is to be loaded of the object, and how large. */
static int prepare(const struct sample_program *sample, unsigned int generation,
		   struct sample_bpf *bpf)
{
	bool stacks = sample->with_stacks;

	bpf->rodata->sides = sample->sides;
	bpf->rodata->pid_namespace = sample_program_pid_namespace();
	bpf->rodata->generation = generation;
	if (sample->arena_words)
		bpf->rodata->arena_words = sample->arena_words;
	if (sample->one_hash)
		bpf->rodata->hash_bits = 0;
	bpf_program__set_autoload(bpf->progs.sample, false);
	bpf_program__set_autoload(choose(sample, generation, bpf), true);
	bpf_map__set_autocreate(bpf->maps.table, !stacks);
	bpf_map__set_autocreate(bpf->maps.stacks, stacks);
	bpf_map__set_autocreate(bpf->maps.arena, stacks);
	bpf_map__set_autocreate(bpf->maps.scratch, stacks);
	/* Later generations take over the maps of the first. */
	if (sample->loads[0])
		return program_share_maps(bpf->obj, sample->loads[0]->obj);
	return bpf_map__set_max_entries(bpf->maps.counters, sample->cpu_count)
		       ?: bpf_map__set_max_entries(bpf->maps.scratch, sample->cpu_count)
		       ?: bpf_map__set_max_entries(bpf->maps.ring, stacks ? STACK_RING_BYTES
									 : SAMPLE_RING_BYTES);
}

/* program.load */
static int load(struct program *program, unsigned int generation)
{
	struct sample_program *sample = (struct sample_program *)program;
	struct sample_bpf *bpf = sample_bpf__open();
	int err;

	if (!bpf)
		return -errno;
	err = prepare(sample, generation, bpf) ?: sample_bpf__load(bpf);
	if (err) {
		sample_bpf__destroy(bpf);
		return err;
	}
	sample->loads[generation] = bpf;
	return bpf_program__fd(choose(sample, generation, bpf));
}

static bool map_counts(struct sample_program *sample)
{
	const struct sample_bpf *bpf = sample->loads[0];

	sample->counters = map_shared(bpf->maps.counters, counters_size(sample));
	sample->ring = ring_buffer__new(bpf_map__fd(bpf->maps.ring),
					sample->with_stacks ? take_ring_stack : take_ring_sample,
					sample->counts, NULL);
	if (!sample->counters || !sample->ring)
		return false;
	if (!sample->with_stacks) {
		sample->table = map_shared(bpf->maps.table, table_size());
		return sample->table;
	}
	sample->stacks = map_shared(bpf->maps.stacks, stacks_size());
	sample->arena = map_shared(bpf->maps.arena, arena_size());
	return sample->stacks && sample->arena;
}

int sample_program_load(struct sample_program *sample, uint32_t sides, bool with_stacks,
			struct counts *counts, struct error *e)
{
	int fd, cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return error_set(e, -cpus, "cannot tell the number of CPUs");
	sample->program.load = load;
	sample->cpu_count = cpus;
	sample->sides = sides;
	sample->with_stacks = with_stacks;
	sample->counts = counts;
	sample->taken = calloc(SAMPLE_BUCKETS * SAMPLE_PER_BUCKET, sizeof(*sample->taken));
	if (!sample->taken)
		return error_no_memory(e);
	fd = program_fd(&sample->program, 0, e);
	if (fd < 0 && with_stacks && e->kind == ERROR_KERNEL_LACKS)
		error_mend(e, "call stacks are known to work from Linux 6.1 on; try without -g, "
			      "which asks less of the kernel");
	if (fd < 0)
		return fd;
	if (!map_counts(sample))
		return error_set(e, errno, "cannot map the counts of the BPF program");
	return 0;
}

void sample_program_free(struct sample_program *sample)
{
	ring_buffer__free(sample->ring);
	unmap(sample->table, table_size());
	unmap(sample->stacks, stacks_size());
	unmap(sample->arena, arena_size());
	unmap(sample->counters, counters_size(sample));
	free(sample->taken);
	for (size_t i = 0; i < PROGRAM_GENERATIONS; i++)
		sample_bpf__destroy(sample->loads[i]);
	*sample = (struct sample_program){ 0 };
}

struct bpf_object *sample_program_object(const struct sample_program *sample)
{
	return sample->loads[0]->obj;
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

int sample_program_read_table(struct sample_program *sample)
{
	if (sample->with_stacks)
		return counts_add_stacks(sample->counts, sample->stacks, SAMPLE_BUCKETS,
					 sample->arena, sample->taken);
	return counts_add_table(sample->counts, sample->table, SAMPLE_BUCKETS, sample->taken);
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
		sum.untold += cpu->untold;
	}
	return sum;
}

uint64_t sample_program_ticks(const struct sample_program *sample)
{
	uint64_t ticks = sample_program_counters(sample).excluded;

	for (size_t i = 0; i < SAMPLE_BUCKETS; i++)
		ticks += sample->with_stacks ? sample->stacks[i].ticks : sample->table[i].ticks;
	return ticks;
}
