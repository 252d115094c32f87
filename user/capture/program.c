// SPDX-License-Identifier: GPL-2.0-only
#include "capture/program.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/privilege.h"
#include "sample.skel.h"

/* include/linux/proc_ns.h: the inode of the initial pid namespace. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU

/* libbpf's first complaint, for the error that follows it. Its callback carries no context. */
static __thread char libbpf_message[256];

static int keep_libbpf_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN && !libbpf_message[0]) { /* the first tells the cause */
		vsnprintf(libbpf_message, sizeof(libbpf_message), format, arguments);
		libbpf_message[strcspn(libbpf_message, "\n")] = '\0';
	}
	return 0;
}

static int load_error(struct error *e, int code)
{
	if (code == ENOMEM)
		return error_no_memory(e);
	if (code == EPERM) /* EACCES is the verifier's */
		return privilege_error(e, code, "cannot load the BPF program");
	error_set_kind(e, ERROR_KERNEL_LACKS, code, "cannot load the BPF program (%s)",
		       libbpf_message);
	error_mend(e, "it takes Linux 5.15 or later, with CONFIG_BPF_SYSCALL, CONFIG_PERF_EVENTS "
		      "and CONFIG_DEBUG_INFO_BTF");
	return -code;
}

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
static size_t counters_size(const struct program *program)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = program->cpu_count * sizeof(struct sample_counters);

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

/* Later generations take over the maps of the first. */
static int share_maps(const struct program *program, struct sample_bpf *bpf)
{
	const struct sample_bpf *first = program->loads[0];
	int err;

	if (!first)
		return bpf_map__set_max_entries(bpf->maps.counters, program->cpu_count);
	err = bpf_map__reuse_fd(bpf->maps.table, bpf_map__fd(first->maps.table));
	err = err ?: bpf_map__reuse_fd(bpf->maps.counters, bpf_map__fd(first->maps.counters));
	return err ?: bpf_map__reuse_fd(bpf->maps.ring, bpf_map__fd(first->maps.ring));
}

/* Chooses the program whose settings are compiled in, or the one that is told them. */
static struct bpf_program *choose(const struct program *program, unsigned int generation,
				  struct sample_bpf *bpf)
{
	bool usual = program->sides == (SAMPLE_USER | SAMPLE_KERNEL) && !own_pid_namespace() &&
		     generation == 0;

	bpf->rodata->sides = program->sides;
	bpf->rodata->pid_namespace = own_pid_namespace();
	bpf->rodata->generation = generation;
	bpf_program__set_autoload(bpf->progs.sample, usual);
	bpf_program__set_autoload(bpf->progs.sample_with_settings, !usual);
	return usual ? bpf->progs.sample : bpf->progs.sample_with_settings;
}

static int load(struct program *program, unsigned int generation, struct error *e)
{
	struct sample_bpf *bpf = sample_bpf__open();
	struct bpf_program *chosen;
	int err;

	if (!bpf)
		return load_error(e, errno);
	libbpf_message[0] = '\0';
	chosen = choose(program, generation, bpf);
	err = share_maps(program, bpf);
	err = err ?: sample_bpf__load(bpf);
	if (err) {
		sample_bpf__destroy(bpf);
		return load_error(e, -err);
	}
	program->loads[generation] = bpf;
	program->fds[generation] = bpf_program__fd(chosen);
	return 0;
}

int program_load(struct program *program, uint32_t sides, struct counts *counts, struct error *e)
{
	int err, cpus = libbpf_num_possible_cpus();
	const struct sample_bpf *bpf;

	libbpf_set_print(keep_libbpf_message);
	if (cpus < 0)
		return error_set(e, -cpus, "cannot tell the number of CPUs");
	program->cpu_count = cpus;
	program->sides = sides;
	err = load(program, 0, e);
	if (err)
		return err;
	bpf = program->loads[0];
	program->table = map_shared(bpf->maps.table, table_size());
	program->counters = map_shared(bpf->maps.counters, counters_size(program));
	program->ring =
		ring_buffer__new(bpf_map__fd(bpf->maps.ring), take_ring_sample, counts, NULL);
	if (!program->table || !program->counters || !program->ring)
		return error_set(e, errno, "cannot map the counts of the BPF program");
	return 0;
}

void program_free(struct program *program)
{
	ring_buffer__free(program->ring);
	if (program->table)
		munmap((void *)program->table, table_size());
	if (program->counters)
		munmap((void *)program->counters, counters_size(program));
	for (size_t i = 0; i < SAMPLE_GENERATIONS; i++)
		sample_bpf__destroy(program->loads[i]);
	*program = (struct program){ 0 };
}

int program_fd(struct program *program, unsigned int generation, struct error *e)
{
	int err = program->loads[generation] ? 0 : load(program, generation, e);

	return err ?: program->fds[generation];
}

int program_ring_fd(const struct program *program)
{
	return ring_buffer__epoll_fd(program->ring);
}

int program_read_ring(struct program *program)
{
	int n = ring_buffer__consume(program->ring);

	return n < 0 ? n : 0;
}

struct sample_counters program_counters(const struct program *program)
{
	struct sample_counters sum = { 0 };

	for (size_t i = 0; i < program->cpu_count; i++) {
		const struct sample_counters *cpu = &program->counters[i];

		sum.excluded += cpu->excluded;
		sum.ring += cpu->ring;
		sum.ring_full += cpu->ring_full;
		sum.timed += cpu->timed;
		sum.timed_ns += cpu->timed_ns;
	}
	return sum;
}

uint64_t program_ticks(const struct program *program)
{
	uint64_t ticks = program_counters(program).excluded;

	for (size_t i = 0; i < SAMPLE_BUCKETS; i++)
		ticks += program->table[i].ticks;
	return ticks;
}
