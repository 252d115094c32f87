// SPDX-License-Identifier: GPL-2.0-only
#include "capture/program.h"

#include <bpf/bpf.h>
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

/* libbpf's last complaint, for the error that follows it. Its callback carries no context. */
static __thread char libbpf_message[256];

static int keep_libbpf_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN) {
		vsnprintf(libbpf_message, sizeof(libbpf_message), format, arguments);
		libbpf_message[strcspn(libbpf_message, "\n")] = '\0';
	}
	return 0;
}

static int load_error(struct error *e, int code)
{
	if (code == ENOMEM)
		return error_no_memory(e);
	if (code == EPERM || code == EACCES)
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

int program_load(struct program *program, uint32_t sides, struct counts *counts, struct error *e)
{
	int err, cpus = libbpf_num_possible_cpus();

	libbpf_set_print(keep_libbpf_message);
	if (cpus < 0)
		return error_set(e, -cpus, "cannot tell the number of CPUs");
	program->cpu_count = cpus;
	program->bpf = sample_bpf__open();
	if (!program->bpf)
		return load_error(e, errno);
	program->bpf->rodata->sides = sides;
	program->bpf->rodata->pid_namespace = own_pid_namespace();
	err = bpf_map__set_max_entries(program->bpf->maps.counters, program->cpu_count);
	err = err ?: sample_bpf__load(program->bpf);
	if (err)
		return load_error(e, -err);
	program->table = map_shared(program->bpf->maps.table, table_size());
	program->counters = map_shared(program->bpf->maps.counters, counters_size(program));
	program->ring = ring_buffer__new(bpf_map__fd(program->bpf->maps.ring), take_ring_sample,
					 counts, NULL);
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
	sample_bpf__destroy(program->bpf);
	*program = (struct program){ 0 };
}

int program_sample_fd(const struct program *program)
{
	return bpf_program__fd(program->bpf->progs.sample);
}

int program_late_fd(const struct program *program)
{
	return bpf_program__fd(program->bpf->progs.sample_late);
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
