// SPDX-License-Identifier: GPL-2.0-only
#include "capture/capture.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/capture_state.h"
#include "capture/cells.h"
#include "capture/cpus.h"
#include "capture/image.h"
#include "capture/jit_file.h"
#include "capture/snapshot.h"
#include "capture/target.h"
#include "capture/tick_cost.h"
#include "util/clock.h"
#include "util/memory.h"

static uint32_t sides(const struct capture_options *options)
{
	if (!options->user && !options->kernel)
		return SAMPLE_USER | SAMPLE_KERNEL;
	return (options->user ? SAMPLE_USER : 0) |
	       (options->kernel ? SAMPLE_KERNEL | SAMPLE_KERNEL_PC : 0);
}

/* --- Targets --- */

static bool has_ended(const struct target *target)
{
	struct pollfd fd = { .fd = target->pidfd, .events = POLLIN };

	return target->pidfd < 0 ? !target_lives(target->pid, true) : poll(&fd, 1, 0) > 0;
}

/*
 * Edge-triggered, to be woken once for each event: the ring buffer is readable from its first
 * sample on, and the descriptor of a process that has ended stays readable.
 */
static int watch(struct capture *c, int fd, struct error *e)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event))
		return error_set(e, errno, "cannot watch a file descriptor");
	return 0;
}

static int open_group(struct capture *c, struct error *e)
{
	int err;

	if (c->options.target != CAPTURE_CGROUP)
		return 0;
	c->group.path = c->options.cgroup;
	err = cgroup_open(&c->group, e);
	if (!err && cgroup_has_all(&c->group))
		c->options.target = CAPTURE_SYSTEM;
	return err;
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
	bool thread = c->options.target == CAPTURE_THREAD;

	for (size_t i = 0; i < c->target_count; i++)
		if (c->targets[i].pid == pid)
			return 0; /* given twice */
	target->pid = pid;
	target->pidfd = thread ? -1 : target_open(pid);
	if (!thread && target->pidfd < 0)
		return error_set(e, errno, "cannot watch process %d", pid);
	c->target_count++;
	return thread ? 0 : watch(c, target->pidfd, e);
}

/* Each CPU needs some descriptors, and each file that the targets map one. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int add_targets(struct capture *c, struct error *e)
{
	int err = 0;

	c->targets = calloc(c->options.pid_count + 1, sizeof(*c->targets));
	if (!c->targets)
		return error_no_memory(e);
	if (c->options.target == CAPTURE_COMMAND) {
		err = command_prepare(&c->command, c->options.command, c->options.command_to_stderr,
				      e);
		err = err ?: add_target(c, c->command.pid, e);
	}
	raise_file_limit(); /* after the fork: the command keeps the usual limit */
	for (size_t i = 0; i < c->options.pid_count && !err; i++)
		err = add_target(c, c->options.pids[i], e);
	return err;
}

/* A target that ended before it was added is removed: another process may get its PID. */
static int add_members(struct capture *c, struct error *e)
{
	const struct member member = {
		.state = c->options.target == CAPTURE_COMMAND && !has_histogram(c)
				 ? MEMBER_FROM_EXEC
				 : MEMBER_COUNTS,
		.client = c->histogram.number,
	};
	size_t added = 0;
	int err = 0;

	for (size_t i = 0; i < c->target_count && !err; i++) {
		err = members_add(&c->members, c->targets[i].pid, &member, e);
		if (err || !has_ended(&c->targets[i]))
			added++;
		else
			members_remove(&c->members, c->targets[i].pid);
	}
	if (!err && !added)
		err = error_set(e, ESRCH, "cannot profile process %d: it ended just now",
				c->targets[0].pid);
	return err;
}

/* Forks are followed from here on. */
static int begin_members(struct capture *c, struct error *e)
{
	struct bpf_object *object = has_histogram(c) ? profil_program_object(&c->profil)
						     : sample_program_object(&c->sample);
	int err;

	if (counts_everyone(c))
		return 0;
	c->members.one_thread = c->options.target == CAPTURE_THREAD;
	err = members_begin(&c->members, object, true, e);
	err = err ?: watch(c, members_fd(&c->members), e);
	err = err ?: add_members(c, e);
	return err ?: members_look(&c->members, e);
}

static int begin_ticks(struct capture *c, struct error *e)
{
	const struct bpf_program *program = has_histogram(c) ? profil_program_on_tick(&c->profil)
							     : sample_program_on_tick(&c->sample);

	if (has_tick(c))
		return tick_begin(&c->tick, program, e);
	return events_open(&c->events, counts_everyone(c) ? NULL : &c->members,
			   bpf_program__fd(program), e);
}

/* The account of CPU time begins here. */
static int begin_account(struct capture *c, struct error *e)
{
	c->own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	c->start_ns = c->next_start_ns = now_ns();
	c->next_cpus_ns = c->start_ns + CPUS_LOOK_NS;
	c->start_time_ns = c->next_start_time_ns = clock_ns(CLOCK_REALTIME);
	if (!counts_everyone(c))
		return members_begin_account(&c->members, e);
	if (c->options.target == CAPTURE_CGROUP)
		c->has_group_ns = cgroup_cpu_ns(&c->group, &c->cpu_start_ns) == 0;
	else
		c->cpu_start_ns = target_system_cpu_ns();
	return 0;
}

/* --- Mappings --- */

/* Watches the sideband's descriptors from number `first` on. */
static int watch_sideband(struct capture *c, size_t first, struct error *e)
{
	size_t count;
	const int *fds = sideband_fds(c->sideband, &count);
	int err = 0;

	for (size_t i = first; i < count && !err; i++)
		err = watch(c, fds[i], e);
	return err;
}

/* CPUs come and go, and the targets may move to other CPUs: opens events there. */
static int look_at_cpus(struct capture *c, struct error *e)
{
	uint64_t now = now_ns();
	size_t count;
	int err;

	if (now < c->next_cpus_ns)
		return 0;
	c->next_cpus_ns = now + CPUS_LOOK_NS;
	sideband_fds(c->sideband, &count);
	err = sideband_open_cpus(c->sideband, e) ?: watch_sideband(c, count, e);
	if (err || has_tick(c))
		return err;
	err = c->events.incomplete ? members_look(&c->members, e) : 0;
	return err ?: begin_ticks(c, e);
}

/* A histogram ends at its target's exec: records of the target from then on are ignored. */
static int take_record(const struct sideband_record *record, void *context)
{
	struct capture *c = context;

	if (has_histogram(c) && record->pid == c->targets[0].pid) {
		if (record->type == SIDEBAND_EXEC)
			c->target_execed = true;
		if (c->target_execed)
			return 0;
	}
	return process_record(&c->processes, record);
}

static int take_member_record(const struct member_record *from, void *context)
{
	struct capture *c = context;
	const struct sideband_record record = {
		.type = from->exited ? SIDEBAND_EXIT : SIDEBAND_FORK,
		.time_ns = from->time_ns,
		.pid = from->pid,
		.tid = from->tid,
		.parent = from->parent,
		.parent_tid = from->parent_tid,
	};

	return sideband_add(c->sideband, &record);
}

/* What part of the time may be spent on reading mappings again, after records were lost: 1 / this
 */
#define AGAIN_PART	   20
#define AGAIN_PART_WINDOWS 500

static int take_records(struct capture *c, struct error *e)
{
	uint64_t until_ns = now_ns();

	if (members_read(&c->members, take_member_record, c) ||
	    sideband_read(c->sideband, until_ns, take_record, c))
		return error_no_memory(e);
	if (!c->target_execed &&
	    snapshot_if_lost(&c->processes, sideband_lost(c->sideband),
			     sideband_complete_ns(c->sideband), until_ns,
			     c->options.windows ? AGAIN_PART_WINDOWS : AGAIN_PART))
		return error_no_memory(e);
	if (image_open_again(&c->processes))
		return error_no_memory(e);
	if (has_unwind(c) && c->unwind.ring && unwind_update(&c->unwind, until_ns))
		return error_no_memory(e);
	return 0;
}

/*
 * Reads the targets' current mappings; later ones come as records. For a control group it reads
 * those of all processes, since any of them may be moved into the group later.
 */
static int take_snapshot(struct capture *c, struct error *e)
{
	int err = 0;

	c->processes.everyone = counts_everyone(c);
	c->processes.notes_changes = has_unwind(c);
	c->processes.inherit = c->options.inherit;
	c->processes.notes_origins = c->options.windows;
	c->processes.bytes_max = memory_available() / TABLE_SHARE;
	if (c->processes.everyone)
		err = snapshot_all(&c->processes, 0);
	for (size_t i = 0; i < c->target_count && !err; i++) {
		pid_t pid = target_process_of(c->targets[i].pid);

		if (pid > 0) /* else it has just ended, which add_members() reports */
			err = snapshot_process(&c->processes, pid, 0);
	}
	return err ? error_no_memory(e) : 0;
}

/* Records may have been lost: reads the mappings of the remaining processes once more. */
static int complete_mappings(struct capture *c, struct error *e)
{
	if (!c->target_execed && snapshot_again(&c->processes, c->stop_ns))
		return error_no_memory(e);
	return jit_look_again(&c->processes) ? error_no_memory(e) : 0;
}

/* --- Programs --- */

static int load_sample_as_asked(struct capture *c, struct error *e)
{
	const struct sample_settings settings = {
		.sides = sides(&c->options),
		.stacks = c->options.stacks,
		.unwind = has_unwind(c) ? &c->unwind : NULL,
		.everyone = counts_everyone(c),
		.group = c->options.target == CAPTURE_CGROUP ? c->group.id : 0,
		.group_is_v1 = c->group.is_v1,
		.one_thread = c->options.target == CAPTURE_THREAD,
		.inherit = c->options.inherit,
		.tick = has_tick(c) ? &c->tick : NULL,
		.windows = c->options.windows,
	};
	c->unwind.read = c->options.read_rows;
	c->unwind.processes = &c->processes;
	c->unwind.windows = c->options.windows;
	c->unwind.spare_mib = c->options.unwind_mib;
	c->unwind.counts = c->options.windows ? &c->gathered : &c->counts;
	return sample_program_load(&c->sample, &settings, c->unwind.counts, e);
}

/* Falls back to frame pointers where the kernel rejects the walk by call frame information. */
static int load_sample(struct capture *c, struct error *e)
{
	int err = load_sample_as_asked(c, e);

	if (err && c->options.stacks == CAPTURE_STACKS_AUTO && e->kind == ERROR_KERNEL_LACKS) {
		sample_program_free(&c->sample);
		unwind_free(&c->unwind);
		c->options.stacks = CAPTURE_STACKS_FP;
		c->processes.notes_changes = false;
		*e = (struct error){ 0 };
		err = load_sample_as_asked(c, e);
	}
	err = err ?: watch(c, sample_program_ring_fd(&c->sample), e);
	if (!err && has_unwind(c)) {
		c->options.stacks = CAPTURE_STACKS_CFI;
		err = watch(c, unwind_fd(&c->unwind), e);
	}
	return err;
}

/* Needs the target's mappings, to know where its program is. */
static int load_profil(struct capture *c, struct error *e)
{
	int err = cells_range(capture_first_space(c), c->options.offset, c->options.bufsiz,
			      c->options.scale, &c->range, &c->histogram.cell_count, e);

	c->histogram.number = c->histogram.range_count = 1;
	c->profil.inherit = c->options.inherit;
	c->profil.account = true;
	c->profil.tick = has_tick(c) ? &c->tick : NULL;
	err = err ?: profil_program_load(&c->profil, e);
	err = err ?: profil_client_add(&c->profil, &c->histogram, &c->range, e);
	if (!err)
		profil_client_enable(&c->histogram);
	return err;
}

static int prepare_clock(struct capture *c, struct error *e)
{
	if (has_tick(c))
		return tick_prepare(&c->tick, c->options.frequency, e);
	return events_prepare(&c->events, c->options.event, c->options.frequency, e);
}

/* --- Recording --- */

/* Whether the BPF program is loaded after the targets' mappings have been read. */
static bool wants_mappings(const struct capture *c)
{
	return has_histogram(c) || has_unwind(c);
}

static int start(struct capture *c, struct error *e)
{
	int err;

	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		return error_set(e, errno, "cannot create an epoll instance");
	err = open_group(c, e);
	err = err ?: check_targets(c, e);
	err = err ?: prepare_clock(c, e);
	if (c->options.stacks)
		stack_account_begin(&c->stacks);
	if (!wants_mappings(c))
		err = err ?: load_sample(c, e);
	err = err ?: add_targets(c, e);
	err = err ?: sideband_open(counts_everyone(c), &c->sideband, e);
	err = err ?: watch_sideband(c, 0, e);
	if (wants_mappings(c)) {
		err = err ?: take_snapshot(c, e);
		err = err ?: has_histogram(c) ? load_profil(c, e) : load_sample(c, e);
	}
	err = err ?: begin_members(c, e);
	err = err ?: begin_ticks(c, e);
	err = err ?: begin_account(c, e);
	if (!wants_mappings(c)) /* not before: with many threads it takes long */
		err = err ?: take_snapshot(c, e);
	if (!err && c->options.target == CAPTURE_COMMAND)
		err = command_go(&c->command, e);
	if (!err && !has_tick(c))
		c->interrupt_ns = cost_of_interrupt();
	return err;
}

int capture_start(const struct capture_options *options, struct capture **out, struct error *e)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_no_memory(e);
	c->options = *options;
	c->epoll = c->group.fd = -1;
	c->begin_ns = now_ns();
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
	struct epoll_event woken[16];
	int err;

	while (epoll_wait(c->epoll, woken, 16, 0) == 16)
		; /* clears the events; all sources are read below */
	err = has_histogram(c) ? 0 : sample_program_read_ring(&c->sample);
	if (err)
		return error_set(e, -err, "cannot read the samples");
	return take_records(c, e) ?: (c->stopped ? 0 : look_at_cpus(c, e));
}

bool capture_ended(const struct capture *c)
{
	if (c->target_execed)
		return true;
	if (c->options.target == CAPTURE_CGROUP)
		return cgroup_is_gone(&c->group);
	for (size_t i = 0; i < c->target_count; i++)
		if (!has_ended(&c->targets[i]))
			return false;
	return c->target_count > 0;
}

int capture_read_cpu_time(struct capture *c, uint64_t *ns, struct error *e)
{
	if (!counts_everyone(c))
		return c->stopped ? members_end_account(&c->members, ns, e)
				  : members_read_account(&c->members, ns, e);
	*ns = 0;
	if (c->options.target == CAPTURE_SYSTEM)
		*ns = target_system_cpu_ns();
	else if (!c->has_group_ns || cgroup_cpu_ns(&c->group, ns))
		*ns = 0; /* the group is removed by now */
	return 0;
}

static int count_stack(const struct capture_sample *sample, void *context)
{
	struct capture *c = context;

	return stack_account_add(&c->stacks, sample);
}

int capture_count_stacks(struct capture *c)
{
	stack_account_clear(&c->stacks);
	if (c->stacks.limit && capture_each_sample(c, count_stack, c))
		return -ENOMEM;
	stack_account_sort(&c->stacks);
	return 0;
}

/* Adds what the kernel has counted since the last call. */
static int read_counts(struct capture *c, struct error *e)
{
	int err;

	if (has_histogram(c)) {
		counts_clear(&c->counts);
		err = cells_add(&c->histogram, &c->range, c->targets[0].pid, c->start_ns,
				&c->counts);
	} else {
		err = sample_program_read_table(&c->sample);
	}
	return err || capture_count_stacks(c) ? error_no_memory(e) : 0;
}

int capture_read(struct capture *c, struct error *e)
{
	int err = capture_handle(c, e);

	c->stop_ns = now_ns();
	if (!err && jit_look_again(&c->processes))
		err = error_no_memory(e);
	return err ?: read_counts(c, e);
}

int capture_stop(struct capture *c, struct error *e)
{
	uint64_t ns;
	int err;

	c->stopped = true;
	events_stop(&c->events);
	tick_end(&c->tick);
	c->stop_ns = now_ns();
	if (c->options.windows) {
		err = capture_end_window(c, e);
		command_status(&c->command);
		return err;
	}
	err = capture_read_cpu_time(c, &ns, e);
	c->cpu_ns = ns ? ns - c->cpu_start_ns : 0;
	err = err ?: capture_handle(c, e);
	err = err ?: complete_mappings(c, e);
	err = err ?: read_counts(c, e);
	c->own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - c->own_ns;
	command_status(&c->command);
	return err;
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	events_close(&c->events);
	tick_end(&c->tick);
	members_free(&c->members);
	sample_program_free(&c->sample);
	unwind_free(&c->unwind);
	profil_client_free(&c->histogram);
	profil_program_free(&c->profil);
	sideband_free(c->sideband);
	process_table_free(&c->processes);
	counts_free(&c->counts);
	counts_free(&c->gathered);
	stack_account_free(&c->stacks);
	command_release(&c->command);
	for (size_t i = 0; i < c->target_count; i++)
		if (c->targets[i].pidfd >= 0)
			close(c->targets[i].pidfd);
	free(c->targets);
	if (c->group.fd >= 0)
		close(c->group.fd);
	if (c->epoll >= 0)
		close(c->epoll);
	free(c);
}
