// SPDX-License-Identifier: GPL-2.0-only
#include "capture/capture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/sample.h"
#include "capture/command.h"
#include "capture/cost.h"
#include "capture/counts.h"
#include "capture/events.h"
#include "capture/process.h"
#include "capture/sideband.h"
#include "capture/snapshot.h"
#include "capture/target.h"
#include "sample.skel.h"
#include "util/array.h"

#define NS_PER_S 1000000000ULL

/* include/linux/proc_ns.h: the inode of the initial pid namespace. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU

struct target {
	pid_t pid;
	int pidfd; /* -1 for a thread */
	uint64_t cpu_start_ns, cpu_last_ns;
};

struct capture {
	struct capture_options options;
	struct sample_bpf *bpf;
	const struct sample *table; /* the kernel's own, shared */
	const struct sample_counters *counters;
	size_t cpu_count;
	struct ring_buffer *ring;
	struct event_set events;
	struct sideband *sideband;
	struct process_table processes;
	struct counts counts;
	struct command command;
	struct target *targets;
	size_t target_count;
	int epoll;
	bool stopped;
	uint64_t begin_ns, start_ns, stop_ns; /* CLOCK_MONOTONIC */
	uint64_t start_time_ns;		      /* since the epoch */
	uint64_t interrupt_ns;
	uint64_t system_cpu_start_ns;
	uint64_t cpu_ns;
	uint64_t doubles, kernel_doubles;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* --- The program --- */

/* libbpf's last complaint, for the error that follows it. Its callback carries no context. */
static __thread char libbpf_message[512];

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
	enum error_kind kind =
		code == EPERM || code == EACCES ? ERROR_NOT_PERMITTED : ERROR_KERNEL_LACKS;

	if (code == ENOMEM)
		return error_no_memory(e);
	error_set_kind(e, kind, code, "cannot load the BPF program");
	if (kind == ERROR_NOT_PERMITTED)
		error_mend(e, "run it as root, or give it the capabilities: "
			      "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog=ep PROGRAM");
	else
		error_mend(e,
			   "Linux 5.15 or later with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF "
			   "is needed; libbpf says: %s",
			   libbpf_message);
	return -code;
}

static uint32_t own_pid_namespace(void)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) || status.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	return status.st_ino;
}

static uint32_t sides(const struct capture_options *options)
{
	if (!options->user && !options->kernel)
		return SAMPLE_USER | SAMPLE_KERNEL;
	return (options->user ? SAMPLE_USER : 0) |
	       (options->kernel ? SAMPLE_KERNEL | SAMPLE_KERNEL_PC : 0);
}

static const void *map_shared(const struct bpf_map *map, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static size_t page_up(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static size_t table_size(void)
{
	return SAMPLE_SLOTS * sizeof(struct sample);
}

static size_t counters_size(const struct capture *c)
{
	return page_up(c->cpu_count * sizeof(struct sample_counters));
}

static int take_ring_sample(void *context, void *data, size_t size)
{
	struct capture *c = context;

	return size < sizeof(struct sample) ? 0 : counts_add(&c->counts, data);
}

static int load(struct capture *c, struct error *e)
{
	int err, cpus = libbpf_num_possible_cpus();

	libbpf_set_print(keep_libbpf_message);
	if (cpus < 0)
		return error_set(e, -cpus, "cannot tell the number of CPUs");
	c->cpu_count = cpus;
	c->bpf = sample_bpf__open();
	if (!c->bpf)
		return load_error(e, errno);
	c->bpf->rodata->sides = sides(&c->options);
	c->bpf->rodata->pid_namespace = own_pid_namespace();
	err = bpf_map__set_max_entries(c->bpf->maps.counters, c->cpu_count);
	err = err ?: sample_bpf__load(c->bpf);
	if (err)
		return load_error(e, -err);
	c->table = map_shared(c->bpf->maps.table, table_size());
	c->counters = map_shared(c->bpf->maps.counters, counters_size(c));
	c->ring = ring_buffer__new(bpf_map__fd(c->bpf->maps.ring), take_ring_sample, c, NULL);
	if (!c->table || !c->counters || !c->ring)
		return error_set(e, errno, "cannot map the BPF program's counts");
	return 0;
}

/* --- Targets --- */

static int watch(struct capture *c, int fd, struct error *e)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event))
		return error_set(e, errno, "cannot watch a file descriptor");
	return 0;
}

static int check_targets(struct capture *c, struct error *e)
{
	bool thread = c->options.target == CAPTURE_THREAD;
	int err = 0;

	if (c->options.target != CAPTURE_PROCESSES && !thread)
		return 0;
	for (size_t i = 0; i < c->options.pid_count && !err; i++)
		err = target_check(c->options.pids[i], thread, c->options.kernel, e);
	return err;
}

static int add_target(struct capture *c, pid_t pid, struct error *e)
{
	struct target *target = &c->targets[c->target_count];

	for (size_t i = 0; i < c->target_count; i++)
		if (c->targets[i].pid == pid)
			return 0; /* named twice */
	target->pid = pid;
	target->pidfd = c->options.target == CAPTURE_THREAD ? -1 : target_open(pid);
	target->cpu_start_ns = target->cpu_last_ns = target_cpu_ns(pid);
	c->target_count++;
	return target->pidfd < 0 ? 0 : watch(c, target->pidfd, e);
}

static int add_targets(struct capture *c, struct error *e)
{
	int err = 0;

	c->targets = calloc(c->options.pid_count + 1, sizeof(*c->targets));
	if (!c->targets)
		return error_no_memory(e);
	if (c->options.target == CAPTURE_COMMAND)
		return command_prepare(&c->command, c->options.command, e)
			       ?: add_target(c, c->command.pid, e);
	for (size_t i = 0; i < c->options.pid_count && !err; i++)
		err = add_target(c, c->options.pids[i], e);
	return err;
}

/* Each thread of the targets takes a descriptor, and so does each file that they map. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int open_task_events(struct capture *c, const struct event_programs *programs,
			    struct error *e)
{
	pid_t *pids = calloc(c->target_count ?: 1, sizeof(*pids));
	int err;

	if (!pids)
		return error_no_memory(e);
	for (size_t i = 0; i < c->target_count; i++)
		pids[i] = c->targets[i].pid;
	if (c->options.target == CAPTURE_PROCESSES)
		err = events_open_processes(&c->events, pids, c->target_count, programs, e);
	else
		err = events_open_thread(&c->events, pids[0], programs, e);
	free(pids);
	if (!err && c->events.count == 0)
		err = error_set(e, ESRCH, "cannot profile process %d: it ended just now",
				c->targets[0].pid);
	return err;
}

static int open_events(struct capture *c, struct error *e)
{
	struct event_programs programs = {
		.sample_fd = bpf_program__fd(c->bpf->progs.sample),
		.late_fd = bpf_program__fd(c->bpf->progs.sample_late),
	};

	if (c->options.target == CAPTURE_SYSTEM)
		return events_open_cpus(&c->events, &programs, e);
	return open_task_events(c, &programs, e);
}

/* --- Mappings --- */

static int open_sideband(struct capture *c, struct error *e)
{
	const int *fds;
	size_t count;
	int err = sideband_open(&c->sideband, e);

	if (err)
		return err;
	fds = sideband_fds(c->sideband, &count);
	for (size_t i = 0; i < count && !err; i++)
		err = watch(c, fds[i], e);
	return err;
}

static int take_record(const struct sideband_record *record, void *context)
{
	return process_record(context, record);
}

static int take_records(struct capture *c, struct error *e)
{
	return sideband_read(c->sideband, take_record, &c->processes) ? error_no_memory(e) : 0;
}

/* The targets' mappings as they are; what is younger comes as records. */
static int take_snapshot(struct capture *c, struct error *e)
{
	int err = 0;

	c->processes.everyone = c->options.target == CAPTURE_SYSTEM;
	c->processes.inherit = c->options.inherit;
	if (c->options.target == CAPTURE_SYSTEM)
		err = snapshot_all(&c->processes);
	else if (c->options.target == CAPTURE_COMMAND)
		err = process_add(&c->processes, c->command.pid, 0); /* its exec will tell */
	for (size_t i = 0; i < c->target_count && c->options.target != CAPTURE_COMMAND && !err; i++)
		err = snapshot_process(&c->processes, target_process_of(c->targets[i].pid), 0);
	return err ? error_no_memory(e) : 0;
}

/* Records may have been lost: look once more at the processes that are still there. */
static int complete_mappings(struct capture *c, struct error *e)
{
	size_t count = c->processes.count;

	for (size_t i = 0; i < count; i++)
		if (snapshot_process(&c->processes, c->processes.processes[i].pid, c->stop_ns))
			return error_no_memory(e);
	return 0;
}

/* --- Recording --- */

static int start(struct capture *c, struct error *e)
{
	int err;

	raise_file_limit();
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		return error_set(e, errno, "cannot make an epoll instance");
	err = check_targets(c, e);
	err = err ?: events_prepare(&c->events, &c->options, e);
	err = err ?: load(c, e);
	err = err ?: add_targets(c, e);
	err = err ?: watch(c, ring_buffer__epoll_fd(c->ring), e);
	err = err ?: open_sideband(c, e);
	c->start_ns = clock_ns(CLOCK_MONOTONIC);
	c->start_time_ns = clock_ns(CLOCK_REALTIME);
	c->system_cpu_start_ns = target_system_cpu_ns();
	err = err ?: open_events(c, e);
	err = err ?: take_snapshot(c, e);
	if (!err && c->options.target == CAPTURE_COMMAND)
		err = command_go(&c->command, e);
	if (!err)
		c->interrupt_ns = events_count_time(&c->events) ? cost_of_interrupt() : 0;
	return err;
}

int capture_start(const struct capture_options *options, struct capture **out, struct error *e)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_no_memory(e);
	c->options = *options;
	c->epoll = -1;
	c->begin_ns = clock_ns(CLOCK_MONOTONIC);
	err = start(c, e);
	if (err)
		capture_free(c);
	else
		*out = c;
	return err;
}

int capture_fd(const struct capture *c)
{
	return c->epoll;
}

int capture_handle(struct capture *c, struct error *e)
{
	int err = ring_buffer__consume(c->ring);

	if (err < 0)
		return error_set(e, -err, "cannot read the samples");
	for (size_t i = 0; i < c->target_count && !events_count_time(&c->events); i++) {
		uint64_t now = target_cpu_ns(c->targets[i].pid);

		if (now)
			c->targets[i].cpu_last_ns = now;
	}
	return take_records(c, e);
}

bool capture_ended(const struct capture *c)
{
	for (size_t i = 0; i < c->target_count; i++)
		if (target_lives(c->targets[i].pid))
			return false;
	return c->target_count > 0;
}

/* What the kernel has charged to the targets. */
static uint64_t account_cpu_time(const struct capture *c)
{
	uint64_t sum = 0;

	if (c->options.target == CAPTURE_SYSTEM)
		return target_system_cpu_ns() - c->system_cpu_start_ns;
	if (events_count_time(&c->events)) {
		for (size_t i = 0; i < c->events.count; i++) {
			const struct event *event = &c->events.events[i];

			if (!event->late || !counts_has_double(&c->counts, event->tid))
				sum += events_read(event);
		}
		return sum;
	}
	for (size_t i = 0; i < c->target_count; i++)
		sum += c->targets[i].cpu_last_ns - c->targets[i].cpu_start_ns;
	return sum;
}

int capture_stop(struct capture *c, struct error *e)
{
	int err;

	events_disable(&c->events);
	c->stop_ns = clock_ns(CLOCK_MONOTONIC);
	err = capture_handle(c, e);
	err = err ?: complete_mappings(c, e);
	if (err)
		return err;
	if (counts_add_table(&c->counts, c->table, SAMPLE_SLOTS) ||
	    counts_drop_doubles(&c->counts, &c->doubles, &c->kernel_doubles))
		return error_no_memory(e);
	c->cpu_ns = account_cpu_time(c);
	command_status(&c->command);
	events_close(&c->events);
	c->stopped = true;
	return 0;
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	events_close(&c->events);
	ring_buffer__free(c->ring);
	if (c->table)
		munmap((void *)c->table, table_size());
	if (c->counters)
		munmap((void *)c->counters, counters_size(c));
	sample_bpf__destroy(c->bpf);
	sideband_free(c->sideband);
	process_table_free(&c->processes);
	counts_free(&c->counts);
	command_release(&c->command);
	for (size_t i = 0; i < c->target_count; i++)
		if (c->targets[i].pidfd >= 0)
			close(c->targets[i].pidfd);
	free(c->targets);
	if (c->epoll >= 0)
		close(c->epoll);
	free(c);
}

/* --- What was captured --- */

void capture_totals(const struct capture *c, struct capture_totals *totals)
{
	struct sample_counters sum = { 0 };

	for (size_t i = 0; i < c->cpu_count; i++) {
		sum.ticks += c->counters[i].ticks;
		sum.counted += c->counters[i].counted;
		sum.kernel += c->counters[i].kernel;
		sum.excluded += c->counters[i].excluded;
		sum.ring_full += c->counters[i].ring_full;
		sum.ring += c->counters[i].ring;
		sum.timed += c->counters[i].timed;
		sum.timed_ns += c->counters[i].timed_ns;
	}
	*totals = (struct capture_totals){
		.ticks = sum.ticks - c->doubles,
		.counted = sum.counted - c->doubles,
		.kernel = sum.kernel - c->kernel_doubles,
		.excluded = sum.excluded,
		.ring_full = sum.ring_full,
		.ring = sum.ring,
		.mapping_records_lost = sideband_lost(c->sideband),
		.bpf_ns_per_tick = sum.timed ? sum.timed_ns / sum.timed : 0,
		.interrupt_ns = c->interrupt_ns,
		.cpu_ns = c->cpu_ns,
		.start_time_ns = c->start_time_ns,
		.duration_ns = (c->stop_ns ?: clock_ns(CLOCK_MONOTONIC)) - c->start_ns,
	};
	for (size_t i = 0; i < c->counts.count; i++) {
		uint64_t after = c->counts.samples[i].first_ns - c->begin_ns;

		if (!totals->first_tick_ns || after < totals->first_tick_ns)
			totals->first_tick_ns = after;
	}
}

const char *capture_event_name(const struct capture *c)
{
	return events_name(&c->events);
}

uint64_t capture_period_ns(const struct capture *c)
{
	return NS_PER_S / c->options.frequency;
}

int capture_command_status(const struct capture *c)
{
	return c->command.ended ? c->command.status : -1;
}

const struct capture_image *capture_images(const struct capture *c, size_t *count)
{
	*count = c->processes.image_count;
	return c->processes.images;
}

/* The first target's mappings as they were last. */
static const struct address_space *first_space(const struct capture *c)
{
	const struct process *process = NULL;

	if (c->target_count)
		process = process_find(&c->processes, c->options.target == CAPTURE_THREAD
							      ? c->processes.processes[0].pid
							      : c->targets[0].pid);
	return process ? &process->spaces[process->count - 1] : NULL;
}

unsigned int capture_bits(const struct capture *c)
{
	enum {
		EI_CLASS_OFFSET = 4,
		CLASS_32 = 1
	}; /* elf(5) */
	const struct address_space *space = first_space(c);
	char class;

	for (size_t i = 0; space && i < space->count; i++) {
		int fd = c->processes.images[space->mappings[i].image].fd;

		if (space->mappings[i].executable && fd >= 0 &&
		    pread(fd, &class, 1, EI_CLASS_OFFSET) == 1)
			return class == CLASS_32 ? 32 : 64;
	}
	return 64;
}

int capture_each_mapping(const struct capture *c,
			 int (*visit)(const struct capture_mapping *mapping, void *context),
			 void *context)
{
	const struct address_space *space = first_space(c);
	int stop = 0;

	for (int executable = 1; executable >= 0; executable--)
		for (size_t i = 0; space && i < space->count && !stop; i++)
			if (space->mappings[i].executable == executable)
				stop = visit(&space->mappings[i], context);
	return stop;
}

/*
 * One program's run in one process: from exec to exec. The kernel counts execs on from a number
 * that we do not know; when its first tick came tells which address space it had.
 */
struct era {
	uint64_t key; /* process and exec number of the samples' id */
	uint64_t first_ns;
};

struct eras {
	struct era *eras;
	size_t count, room;
	struct index index;
};

static uint64_t era_key(const struct sample *sample)
{
	return (uint64_t)sample_id_exec(sample->id) << SAMPLE_PID_BITS | sample_id_tgid(sample->id);
}

static bool era_equal(const void *array, uint32_t number, const void *key)
{
	return ((const struct era *)array)[number].key == *(const uint64_t *)key;
}

static struct era *find_era(const struct eras *eras, uint64_t key)
{
	uint32_t number = index_find(&eras->index, hash_u64(key, 0), era_equal, eras->eras, &key);

	return number == INDEX_NONE ? NULL : &eras->eras[number];
}

static int add_to_era(struct eras *eras, const struct sample *sample)
{
	uint64_t key = era_key(sample);
	struct era *era = find_era(eras, key);

	if (!era) {
		if (array_reserve(&eras->eras, &eras->room, eras->count + 1, sizeof(*era)) ||
		    index_add(&eras->index, hash_u64(key, 0), eras->count))
			return -ENOMEM;
		era = &eras->eras[eras->count++];
		*era = (struct era){ key, sample->first_ns };
	}
	if (sample->first_ns < era->first_ns)
		era->first_ns = sample->first_ns;
	return 0;
}

static int visit_sample(struct capture *c, const struct eras *eras, const struct sample *sample,
			int (*visit)(const struct capture_sample *sample, void *context),
			void *context)
{
	struct capture_sample out = {
		.pc = sample->pc,
		.count = sample->count,
		.pid = sample_id_tgid(sample->id),
		.tid = sample_id_tid(sample->id),
		.kernel = sample->id & SAMPLE_ID_KERNEL,
	};
	struct process *process = process_find(&c->processes, out.pid);

	if (process)
		out.mapping = space_mapping_at(
			process_space_at(process, find_era(eras, era_key(sample))->first_ns),
			out.pc, sample->first_ns);
	out.comm = thread_comm(&c->processes, out.pid, out.tid);
	return visit(&out, context);
}

int capture_each_sample(struct capture *c,
			int (*visit)(const struct capture_sample *sample, void *context),
			void *context)
{
	struct eras eras = { 0 };
	int err = 0;

	for (size_t i = 0; i < c->counts.count && !err; i++)
		err = add_to_era(&eras, &c->counts.samples[i]);
	for (size_t i = 0; i < c->counts.count && !err; i++)
		if (c->counts.samples[i].count)
			err = visit_sample(c, &eras, &c->counts.samples[i], visit, context);
	free(eras.eras);
	index_free(&eras.index);
	return err;
}
