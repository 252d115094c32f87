// SPDX-License-Identifier: GPL-2.0-only
#include "capture/capture.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bpf/cell.h"
#include "bpf/profil.h"
#include "bpf/sample.h"
#include "capture/cgroup.h"
#include "capture/command.h"
#include "capture/counts.h"
#include "capture/cpus.h"
#include "capture/events.h"
#include "capture/forget.h"
#include "capture/image.h"
#include "capture/jit_file.h"
#include "capture/members.h"
#include "capture/otel_process.h"
#include "capture/process.h"
#include "capture/resolve.h"
#include "capture/sample_program.h"
#include "capture/sideband.h"
#include "capture/snapshot.h"
#include "capture/target.h"
#include "capture/tick.h"
#include "capture/wall.h"
#include "util/array.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/file_open.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/order.h"

/* --- The cells of a histogram --- */

/*
 * Sets the range of cells, whose scale is set, as for profil(buffer, bufsiz, offset, scale). With
 * bufsiz 0, it is the text of the program in this address space. Returns 0 or a negative errno.
 */
static int cells_find(const struct address_space *space, uint64_t offset, uint64_t bufsiz,
		      struct sample_cells *range, struct error *e)
{
	uint64_t cells = bufsiz / 2, limit, last;
	uint32_t scale = range->scale;

	if (!bufsiz) {
		offset = UINT64_MAX;
		limit = 0;
		for (size_t i = 0; space && i < space->count; i++) {
			const struct capture_mapping *mapping = &space->mappings[i];

			if (mapping->executable && mapping->start < offset)
				offset = mapping->start;
			if (mapping->executable && mapping->limit > limit)
				limit = mapping->limit;
		}
		if (offset >= limit) {
			error_set(e, 0, "cannot find the mappings of the process's executable");
			error_hint(e, "give the addresses with --offset and --bufsiz");
			return -ENOENT;
		}
		cells = cell_index(limit - 1 - offset, scale) + 1;
	}
	if (cells > PROFIL_CELLS)
		return error_usage(
			e,
			bufsiz ? "use a smaller --bufsiz, and with it a smaller --scale"
			       : "use a smaller --scale, or --offset and --bufsiz for a part",
			"a histogram of %" PRIu64 " cells is too large: the limit is %u", cells,
			PROFIL_CELLS);
	last = cell_last_delta(cells, scale);
	if (last > UINT64_MAX - offset)
		last = UINT64_MAX - offset; /* the end of the address space */
	range->first = range->offset = offset;
	range->last = offset + last;
	return 0;
}

/* --- How stacks end --- */

/* How many stacks are complete, and why the others end. Zero-initialised is empty. */
struct stack_account {
	uint32_t limit; /* most frames that the kernel walks, in each mode; 0: no stacks */
	uint64_t truncated, user, complete; /* as in struct capture_totals */
	struct capture_stack_end *ends;
	size_t end_count, end_room;
};

/* To be called when stacks are recorded: sets the limit. */
static void stack_account_begin(struct stack_account *a)
{
	char text[32];
	uint64_t limit;

	a->limit = CAPTURE_DEPTH_MAX;
	/* The kernel's own limit may be lower, but a stack has a leaf in any case. */
	if (file_read_line("/proc/sys/kernel/perf_event_max_stack", text, sizeof(text)) == 0 &&
	    number_parse(text, 0, CAPTURE_DEPTH_MAX, &limit) == 0)
		a->limit = limit ?: 1;
}

/* Adds a sample. Returns 0 or -ENOMEM. */
static int stack_account_add(struct stack_account *a, const struct capture_sample *sample)
{
	uint32_t kernel_depth = sample->depth - sample->user_depth;
	const struct capture_mapping *mapping;
	uint32_t image;
	size_t i = 0;
	bool by_kernel = sample->end == UNWIND_BY_KERNEL || sample->end == UNWIND_32_BIT;

	if (kernel_depth >= a->limit || sample->end == UNWIND_TRUNCATED ||
	    (by_kernel && sample->user_depth >= a->limit))
		a->truncated += sample->ticks.count;
	if (!sample->user_depth || sample->end == UNWIND_NO_STACK)
		return 0;
	a->user += sample->ticks.count;
	if (sample->end == UNWIND_COMPLETE)
		a->complete += sample->ticks.count;
	if (sample->end == UNWIND_COMPLETE || sample->end == UNWIND_BY_KERNEL ||
	    sample->end == UNWIND_TRUNCATED)
		return 0;
	/* A linear search: stacks end in few images, for few causes. */
	mapping = sample->frames[sample->depth - 1].mapping;
	image = mapping ? mapping->image : UINT32_MAX;
	while (i < a->end_count && (a->ends[i].end != sample->end || a->ends[i].image != image))
		i++;
	if (i == a->end_count) {
		if (array_add(a->ends, a->end_count, a->end_room,
			      (struct capture_stack_end){ sample->end, image, 0 }))
			return -ENOMEM;
	}
	a->ends[i].count += sample->ticks.count;
	return 0;
}

ORDER(most_first, struct capture_stack_end, MOST(count))

struct target {
	pid_t pid;
	int pidfd; /* -1 for a thread */
};

/*
 * Memory that a window takes until it is written, here and as a profile, for each process and name
 * of a thread that was added, and for each frame of a stack that no other sample has: measured.
 * Bound: users: bytes of processes, names of threads and stacks of one window; then: the window
 * ends early, and the next begins; again: at once; share: none; seen: windows_full.
 */
#define ADDED_BYTES	 512
#define FRAME_BYTES	 64
#define WINDOW_BYTES_MAX ((size_t)256 << 20)

struct capture {
	struct capture_options options;
	struct sample_program sample;
	struct unwind unwind;	 /* of sample, for call stacks */
	struct event_set events; /* in use, or else tick */
	struct tick tick;
	struct wall wall;
	struct members members; /* whose ticks count, unless everyone's do */
	struct sideband *sideband;
	struct process_table processes;
	size_t room;	      /* bytes that a window may take: capture_is_full() */
	struct counts counts; /* the last window's */
	struct counts waits, wakers;
	char no_waits[256];	/* why the kernel cannot follow them; "": it can */
	struct counts gathered; /* from ring buffers: the next one's */
	struct command command;
	struct target *targets;
	size_t target_count, target_room;
	struct whom whom;
	struct sample_victim victim;
	int epoll;
	uint64_t begin_ns, start_ns, stop_ns; /* CLOCK_MONOTONIC; stop: the last reading */
	uint64_t next_cpus_ns;		      /* when to look for CPUs again */
	bool stopped;
	uint64_t start_time_ns; /* since the epoch */
	struct tick_cost interrupt;
	uint64_t own_start_ns; /* CPU time of this process when the window began */
	uint64_t cpu_start_ns; /* CPU time before */
	struct member_times times_before;
	bool has_group_ns; /* the kernel reports the CPU time of the groups */
	struct stack_account stacks;
	/* The last window, and what was there before it. */
	struct sample_window window;
	struct sample_window taken; /* the next one's, of banks that were full before it ends */
	int64_t not_gathered;	    /* samples sent through ring buffers: in no window yet */
	uint64_t next_start_ns, next_start_time_ns;
	struct account account; /* of the window; what nothing else counts */
	uint64_t records_lost_before, children_lost_before;
	struct refusals refusals; /* of the window */
	bool target_execed;	  /* the target whose cells count has called exec */
};

static bool has_tick(const struct capture *c)
{
	return c->options.event == CAPTURE_TICK;
}

/* Whether stacks are walked by call frame information. */
static bool has_unwind(const struct capture *c)
{
	return c->options.stacks == CAPTURE_STACKS_CFI || c->options.stacks == CAPTURE_STACKS_AUTO;
}

/* Whether the ticks of all, or of all that c->whom has, count, or only those of members. */
static bool counts_everyone(const struct capture *c)
{
	return c->options.target == CAPTURE_SYSTEM || c->options.target == CAPTURE_CGROUP ||
	       c->options.target == CAPTURE_USER;
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

static int add_target(struct capture *c, pid_t pid, struct error *e)
{
	bool thread = c->options.target == CAPTURE_THREAD;
	struct target *target;

	for (size_t i = 0; i < c->target_count; i++)
		if (c->targets[i].pid == pid)
			return 0; /* given twice */
	if (array_reserve(&c->targets, &c->target_room, c->target_count + 1, sizeof(*target)))
		return error_no_memory(e);
	target = &c->targets[c->target_count];
	target->pid = pid;
	target->pidfd = thread ? -1 : target_open(pid);
	if (!thread && target->pidfd < 0)
		return error_set(e, errno, "cannot watch process %d", pid);
	c->target_count++;
	return thread ? 0 : watch(c, target->pidfd, e);
}

/*
 * Adds the descendants that the targets have now, and which are no members: those have been
 * followed from their fork on. member: as which targets are followed; NULL: none is yet.
 */
static int add_children(struct capture *c, const struct member *member, struct error *e)
{
	pid_t *pids = calloc(c->target_count + 1, sizeof(*pids));
	struct target_process *children = NULL;
	size_t count = 0;
	int err = 0;

	for (size_t i = 0; i < c->target_count && pids; i++)
		pids[i] = c->targets[i].pid;
	if (!pids || target_list_children(pids, c->target_count, &children, &count))
		err = error_no_memory(e);
	for (size_t i = 0; i < count && !err; i++) {
		if (member && members_has(&c->members, children[i].pid))
			continue;
		err = add_target(c, children[i].pid, e);
		if (err == -ESRCH) /* it has just ended */
			err = 0;
	}
	free(children);
	free(pids);
	return err;
}

static int add_targets(struct capture *c, struct error *e)
{
	struct rlimit limit;
	int err = 0;

	if (c->options.target == CAPTURE_COMMAND) {
		err = command_prepare(&c->command, c->options.command, c->options.command_to_stderr,
				      e);
		err = err ?: add_target(c, c->command.pid, e);
	}
	/*
	 * Each CPU needs some descriptors, and each file that the targets map one. After the fork:
	 * the command keeps the usual limit.
	 */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (size_t i = 0; i < c->options.pid_count && !err; i++)
		err = add_target(c, c->options.pids[i], e);
	if (c->options.children)
		err = err ?: add_children(c, NULL, e);
	return err;
}

/* Makes the targets members: their forks are followed from here on. */
static int begin_members(struct capture *c, struct error *e)
{
	const struct member member = {
		.state = c->options.target == CAPTURE_COMMAND || c->options.from_exec
				 ? MEMBER_FROM_EXEC
				 : MEMBER_COUNTS,
	};
	size_t added = 0, before = 0;
	int err;

	if (counts_everyone(c))
		return 0;
	c->members.one_thread = c->options.target == CAPTURE_THREAD;
	err = members_begin(&c->members, sample_program_object(&c->sample), true, e);
	err = err ?: watch(c, members_fd(&c->members), e);
	/* Children that were forked before their parent was a member are found by listing again. */
	while (before < c->target_count && !err) {
		size_t count = c->target_count;

		for (size_t i = before; i < count && !err; i++) {
			err = members_add(&c->members, c->targets[i].pid, &member, e);
			/* One that has ended is none: another process may get its PID. */
			if (err || !has_ended(&c->targets[i]))
				added++;
			else
				members_remove(&c->members, c->targets[i].pid);
		}
		before = count;
		if (c->options.children)
			err = err ?: add_children(c, &member, e);
		for (size_t i = count; i < c->target_count && !err; i++)
			if (snapshot_process(&c->processes, c->targets[i].pid, 0))
				err = error_no_memory(e);
	}
	if (!err && !added)
		err = error_set(e, ESRCH, "cannot profile process %d: it ended just now",
				c->targets[0].pid);
	return err ?: members_look(&c->members, e);
}

static int begin_ticks(struct capture *c, struct error *e)
{
	const struct bpf_program *program = sample_program_on_tick(&c->sample);

	if (has_tick(c))
		return tick_begin(&c->tick, program, e);
	return events_open(&c->events, counts_everyone(c) ? NULL : &c->members,
			   bpf_program__fd(program), e);
}

/*
 * The recording begins when its ticks do, and its account of CPU time; those of waits follow, as
 * attaching their programs takes long.
 */
static int begin_account(struct capture *c, struct error *e)
{
	uint64_t before_ns = now_ns();
	int err = begin_ticks(c, e);

	if (err)
		return err;
	c->own_start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + children_cpu_ns();
	c->start_ns = c->next_start_ns = has_tick(c) ? before_ns : c->events.begin_ns;
	c->next_cpus_ns = c->start_ns + CPUS_LOOK_NS;
	c->start_time_ns = c->next_start_time_ns = time_of_day_ns(c->start_ns);
	if (!counts_everyone(c))
		err = members_begin_account(&c->members, e);
	else if (c->options.target == CAPTURE_CGROUP)
		c->has_group_ns = whom_cpu_ns(&c->whom, &c->cpu_start_ns) == 0;
	else if (c->options.target == CAPTURE_SYSTEM)
		c->cpu_start_ns = target_system_cpu_ns();
	if (!err && c->options.waits)
		err = waits_attach(&c->sample.waits, c->sample.bpf, has_unwind(c),
				   c->sample.cpu_count, e);
	if (!err && c->options.wall)
		err = wall_begin(&c->wall, e);
	if (!err && c->options.waits)
		err = waits_begin(&c->sample.waits, wall_clock_offset(&c->wall),
				  has_unwind(c) ? &c->unwind : NULL, e);
	if (!err && c->options.calls)
		err = calls_attach(&c->sample.calls, c->sample.bpf, c->options.calls, e);
	return err;
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

/* Cells end at their target's exec: records of the target from then on are ignored. */
static int take_record(const struct sideband_record *record, void *context)
{
	struct capture *c = context;

	if (c->options.scale && record->pid == c->targets[0].pid) {
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

/*
 * Reads the targets' current mappings; later ones come as records. For a control group or
 * a user it reads those of all processes, since any of them may become theirs later.
 */
static int take_snapshot(struct capture *c, struct error *e)
{
	int err = 0;

	c->processes.everyone = counts_everyone(c);
	c->processes.opener.refusals = &c->processes.refusals;
	/* What an owned recording has is its user's, also of a process that becomes another's. */
	c->processes.of_user = c->whom.by_user || c->options.owned;
	c->processes.uid = c->whom.by_user ? c->whom.uid : getuid();
	c->processes.notes_changes = has_unwind(c) || c->options.stacks == CAPTURE_STACKS_SCRIPTS;
	c->processes.inherit = c->options.inherit;
	c->processes.notes_origins = c->options.always_on || c->options.origins;
	c->processes.notes_titles = c->options.origins;
	c->processes.notes_otel = c->options.wishes && c->options.wishes->knows_programs;
	c->processes.bytes_max = memory_available() / TABLE_SHARE;
	c->room = c->options.window_bytes ?: WINDOW_BYTES_MAX;
	if (!c->options.window_bytes && c->processes.bytes_max &&
	    c->processes.bytes_max < WINDOW_BYTES_MAX)
		c->room = c->processes.bytes_max;
	if (c->options.always_on && c->processes.bytes_max > TABLE_BYTES_ALWAYS_ON)
		c->processes.bytes_max = TABLE_BYTES_ALWAYS_ON;
	if (c->processes.everyone)
		err = snapshot_all(&c->processes, 0);
	for (size_t i = 0; i < c->target_count && !err; i++) {
		pid_t pid = target_process_of(c->targets[i].pid);

		if (pid > 0) /* else it has just ended, which add_members() reports */
			err = snapshot_process(&c->processes, pid, 0);
	}
	c->processes.added = 0; /* what runs already is no window's */
	return err ? error_no_memory(e) : 0;
}

/* The first target's last address space; NULL: none. */
static const struct address_space *first_space(const struct capture *c)
{
	const struct process *process = NULL;

	if (c->target_count)
		process = process_find(&c->processes, c->options.target == CAPTURE_THREAD
							      ? c->processes.processes[0].pid
							      : c->targets[0].pid);
	return process ? process->spaces[process->count - 1] : NULL;
}

/* --- Programs --- */

static int load_sample_as_asked(struct capture *c, struct error *e)
{
	bool user = c->options.user, kernel = c->options.kernel, both = !user && !kernel;
	struct sample_cells cells = { .scale = c->options.scale };
	struct member_owner owner;
	const struct context_wishes *wishes = has_unwind(c) ? c->options.wishes : NULL;
	int err = c->options.owned ? owner_find(&owner, &c->sample.types, e) : 0;
	struct sample_settings settings = {
		.sides = (user || both ? SAMPLE_USER : 0) | (kernel || both ? SAMPLE_KERNEL : 0) |
			 (kernel ? SAMPLE_KERNEL_PC : 0),
		.stacks = c->options.stacks,
		.unwind = has_unwind(c) ? &c->unwind : NULL,
		.everyone = counts_everyone(c),
		.whom = c->whom,
		.victim = c->victim,
		.one_thread = c->options.target == CAPTURE_THREAD,
		.inherit = c->options.inherit,
		.tick = has_tick(c) ? &c->tick : NULL,
		.point = c->events.point,
		.windows = c->options.windows,
		.waits = c->options.waits,
		.every_wait = c->options.every_wait,
		.calls = c->options.calls,
		.waits_percent = c->options.waits_percent,
		.contexts = wishes,
		.cpus = c->options.cpus,
		.always_on = c->options.always_on,
		.tick_ns = capture_tick_ns(c),
		.owner = c->options.owned ? &owner : NULL,
	};

	c->unwind.read = c->options.read_rows;
	c->unwind.trim = c->options.trim_code;
	c->unwind.parser = c->options.parser;
	c->unwind.wishes = wishes;
	c->unwind.processes = &c->processes;
	c->unwind.always_on = c->options.always_on;
	c->unwind.tick_ns = capture_tick_ns(c);
	c->unwind.native = c->options.native;
	c->unwind.spare_mib = c->options.unwind_mib;
	c->unwind.counts = &c->gathered;
	c->unwind.waits = &c->sample.waits;
	if (cells.scale && !err) {
		cells.process = c->targets[0].pid;
		err = cells_find(first_space(c), c->options.offset, c->options.bufsiz, &cells, e);
		settings.cells = &cells;
	}
	err = err ?: sample_program_load(&c->sample, &settings, &c->gathered, e);
	if (!err && c->victim.kind && !c->sample.knows_waiting) {
		err = error_set_kind(e, ERROR_KERNEL_LACKS, EOPNOTSUPP,
				     "this kernel does not let ticks know who is runnable");
		error_hint(e, "it requires CONFIG_FAIR_GROUP_SCHED; or omit --victim");
	}
	return err;
}

/* Sets c->victim as the options say. */
static int choose_victim(struct capture *c, struct error *e)
{
	struct cgroup group = { .path = c->options.victim_name };
	int err;

	switch (c->options.victim) {
	case CAPTURE_ALL_VICTIMS:
		return 0;
	case CAPTURE_VICTIM_PID:
		if (members_pid_namespace())
			return error_set(e, 0,
					 "the process that waits cannot be found by its PID in a "
					 "PID namespace");
		c->victim.kind = SAMPLE_VICTIM_PID;
		c->victim.pid = c->options.victim_pid;
		return target_check(c->options.victim_pid, false, false, e);
	case CAPTURE_VICTIM_COMM:
		c->victim.kind = SAMPLE_VICTIM_COMM;
		snprintf(c->victim.comm, sizeof(c->victim.comm), "%s", c->options.victim_name);
		return 0;
	case CAPTURE_VICTIM_CGROUP:
		err = cgroup_open(&group, e);
		if (err)
			return err;
		close(group.fd);
		c->victim.kind = SAMPLE_VICTIM_GROUP;
		c->victim.group = group.id;
		c->victim.group_is_v1 = group.is_v1;
		return 0;
	}
	return 0;
}

static int load_sample_again(struct capture *c, struct error *e)
{
	sample_program_free(&c->sample);
	unwind_free(&c->unwind);
	*e = (struct error){ 0 };
	return load_sample_as_asked(c, e);
}

/*
 * Does without waits where the kernel cannot follow them, and falls back to frame pointers where it
 * rejects the walk by call frame information.
 */
static int load_sample(struct capture *c, struct error *e)
{
	int err;

	/* The kernel would reject their programs after a look at them that takes seconds. */
	if (c->options.waits && !program_has_loops()) {
		snprintf(c->no_waits, sizeof(c->no_waits), "BPF programs have no loops here");
		c->options.waits = c->options.every_wait = false;
	}
	if (c->options.calls && !c->options.waits)
		return error_set_kind(e, ERROR_KERNEL_LACKS, 0,
				      "calls of a function cannot be recorded: %s", c->no_waits);
	err = load_sample_as_asked(c, e);
	if (err && c->options.waits && !c->options.calls && e->kind == ERROR_KERNEL_LACKS) {
		snprintf(c->no_waits, sizeof(c->no_waits), "%.255s", e->what);
		c->options.waits = c->options.every_wait = false;
		err = load_sample_again(c, e);
	}
	if (err && c->options.stacks == CAPTURE_STACKS_AUTO && e->kind == ERROR_KERNEL_LACKS) {
		c->options.stacks = CAPTURE_STACKS_FP;
		c->processes.notes_changes = false;
		err = load_sample_again(c, e);
	}
	err = err ?: watch(c, sample_program_ring_fd(&c->sample), e);
	if (!err && has_unwind(c)) {
		c->options.stacks = CAPTURE_STACKS_CFI;
		err = watch(c, unwind_fd(&c->unwind), e);
	}
	return err;
}

ORDER(compare_pids, pid_t, COMPARE(*a, *b))

/*
 * Chooses whether stacks are recorded: by the files that the targets have mapped now, however they
 * were chosen. Returns 0 or -ENOMEM.
 */
static int choose_stacks(struct capture *c, struct error *e)
{
	bool *looked = calloc(c->processes.image_count + 1, sizeof(*looked)), scripts = false;
	size_t count = 0;
	pid_t *pids = NULL;

	if (!looked)
		return error_no_memory(e);
	/* A thread that moves meanwhile may be missed. */
	if (c->whom.group_count &&
	    cgroup_list_threads(c->options.cgroups, c->options.cgroup_count, &pids, &count) == 0)
		qsort(pids, count, sizeof(*pids), compare_pids);
	for (size_t i = 0; i < c->processes.count && !scripts; i++) {
		struct process *process = &c->processes.processes[i];
		const struct address_space *space = process_space(process);

		if ((c->whom.by_user && process->uid != c->whom.uid) ||
		    (c->whom.group_count &&
		     !(count && bsearch(&process->pid, pids, count, sizeof(*pids), compare_pids))))
			continue;
		for (size_t k = 0; k < space->count && !scripts; k++) {
			uint32_t image = space->mappings[k].image;

			scripts = !looked[image] && c->processes.images[image].fd >= 0 &&
				  c->options.is_interpreter(c->processes.images[image].fd);
			looked[image] = true;
		}
	}
	c->options.stacks = scripts ? CAPTURE_STACKS_AUTO : CAPTURE_NO_STACKS;
	c->processes.notes_changes = scripts;
	free(pids);
	free(looked);
	return 0;
}

/* --- Recording --- */

int capture_start(const struct capture_options *options, struct capture **out, struct error *e)
{
	struct capture *c = calloc(1, sizeof(*c));
	/* Whether the BPF program is loaded after the targets' mappings have been read. */
	bool wants_mappings, is_thread = options->target == CAPTURE_THREAD;
	int err = 0;

	if (!c)
		return error_no_memory(e);
	c->options = *options;
	c->options.cpus |= options->always_on;
	c->begin_ns = now_ns();
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		err = error_set(e, errno, "cannot create an epoll instance");
	if (!err && options->target == CAPTURE_CGROUP) {
		err = whom_open_groups(&c->whom, options->cgroups, options->cgroup_count, e);
		if (!err && !c->whom.group_count)
			c->options.target = CAPTURE_SYSTEM;
	}
	if (c->options.stacks == CAPTURE_STACKS_SCRIPTS &&
	    (c->options.target == CAPTURE_SYSTEM || c->options.target == CAPTURE_COMMAND))
		c->options.stacks = CAPTURE_NO_STACKS;
	wants_mappings =
		c->options.scale || has_unwind(c) || c->options.stacks == CAPTURE_STACKS_SCRIPTS;
	if (options->target == CAPTURE_USER)
		c->whom = (struct whom){ .by_user = true, .uid = options->uid };
	if (!err)
		err = choose_victim(c, e);
	if (options->target == CAPTURE_PROCESSES || is_thread)
		for (size_t i = 0; i < options->pid_count && !err; i++)
			err = target_check(options->pids[i], is_thread, options->kernel, e);
	if (has_tick(c))
		err = err ?: tick_prepare(&c->tick, options->frequency, &c->sample.types, e);
	else
		err = err
			      ?: events_prepare(&c->events, options->event, options->point,
						options->frequency, e);
	if (!wants_mappings)
		err = err ?: load_sample(c, e);
	err = err ?: add_targets(c, e);
	err = err ?: sideband_open(counts_everyone(c), &c->sideband, e);
	err = err ?: watch_sideband(c, 0, e);
	if (wants_mappings) {
		err = err ?: take_snapshot(c, e);
		if (!err && c->options.stacks == CAPTURE_STACKS_SCRIPTS)
			err = choose_stacks(c, e);
		err = err ?: load_sample(c, e);
	}
	if (c->options.stacks)
		stack_account_begin(&c->stacks);
	/* Before the members are followed: it follows their exits, too. */
	if (!err && options->wall) {
		const struct wall_settings settings = {
			.everyone = counts_everyone(c),
			.one_thread = is_thread,
			.members = sample_program_object(&c->sample),
			.types = &c->sample.types,
			.whom = c->whom,
		};

		err = wall_open(&c->wall, &settings, e) ?: watch(c, wall_fd(&c->wall), e);
	}
	err = err ?: begin_members(c, e);
	err = err ?: begin_account(c, e);
	if (!wants_mappings) /* not before: with many threads it takes long */
		err = err ?: take_snapshot(c, e);
	if (!err && options->target == CAPTURE_COMMAND)
		err = command_go(&c->command, e);
	if (!err && capture_has_rate(c->options.event))
		tick_cost_update(&c->interrupt, now_ns());
	if (err)
		capture_free(c);
	else
		*out = c;
	return err;
}

const struct capture_options *capture_options(const struct capture *c)
{
	return &c->options;
}

int capture_fd(const struct capture *c)
{
	return c->epoll;
}

/*
 * Reading mappings again, after records were lost, may take 1 / this of the time.
 * Bound: users: the part of the time in which mappings are read again after records were lost;
 * then: they are read later; again: as time goes on; share: none; seen: lost_mapping_records,
 * samples in doubt.
 */
#define LOST_PART	    20
#define LOST_PART_ALWAYS_ON 500

/*
 * How often the mappings of a process that has too many are read again: what it had before is
 * forgotten with the windows of a recording without an end, but kept for the ticks of others.
 * Bound: users: readings of a process's mappings in a recording with an end; then: what it maps
 * from then on has no image; again: never; share: the process's own; seen: a warning of record.
 */
#define CROWDED_READS 8

/* Reads all but the bank in which ticks count. */
static int read_all(struct capture *c, struct error *e)
{
	struct epoll_event woken[16];
	uint64_t until_ns;
	size_t count;
	int err;

	while (epoll_wait(c->epoll, woken, 16, 0) == 16)
		; /* clears the events; all sources are read below */
	err = sample_program_read(&c->sample);
	if (err)
		return error_set(e, -err, "cannot read the samples");
	err = c->options.wall ? wall_handle(&c->wall, e) : 0;
	if (!err && c->options.waits && waits_read(&c->sample.waits, wall_clock_offset(&c->wall)))
		err = error_no_memory(e);
	if (err)
		return err;
	until_ns = now_ns();
	if (members_read(&c->members, take_member_record, c) ||
	    sideband_read(c->sideband, until_ns, take_record, c))
		return error_no_memory(e);
	if (!c->target_execed &&
	    (snapshot_if_lost(&c->processes, sideband_lost(c->sideband),
			      sideband_complete_ns(c->sideband), until_ns,
			      c->options.always_on ? LOST_PART_ALWAYS_ON : LOST_PART) ||
	     snapshot_if_crowded(&c->processes, until_ns,
				 c->options.always_on ? UINT_MAX : CROWDED_READS)))
		return error_no_memory(e);
	if (image_open_again(&c->processes) || jit_look_soon(&c->processes) ||
	    otel_look_soon(&c->processes))
		return error_no_memory(e);
	if (has_unwind(c) && c->unwind.ring && unwind_update(&c->unwind, until_ns))
		return error_no_memory(e);
	if (c->stopped || now_ns() < c->next_cpus_ns)
		return 0;
	/* CPUs come and go, and the targets may move to other CPUs: opens events there. */
	c->next_cpus_ns = now_ns() + CPUS_LOOK_NS;
	sideband_fds(c->sideband, &count);
	err = sideband_open_cpus(c->sideband, e) ?: watch_sideband(c, count, e);
	if (err || has_tick(c))
		return err;
	err = c->events.incomplete ? members_look(&c->members, e) : 0;
	return err ?: begin_ticks(c, e);
}

static void add_window(struct sample_window *to, const struct sample_window *part)
{
	to->ticks += part->ticks;
	to->counted += part->counted;
	to->times_lost += part->times_lost;
	to->counters.excluded += part->counters.excluded;
	to->counters.out_of_range += part->counters.out_of_range;
	to->counters.ring += part->counters.ring;
	to->counters.nested += part->counters.nested;
	to->counters.ring_full += part->counters.ring_full;
	to->counters.timed += part->counters.timed;
	to->counters.timed_ns += part->counters.timed_ns;
}

int capture_handle(struct capture *c, struct error *e)
{
	struct sample_window part;
	int err = read_all(c, e);

	if (err || c->stopped || !sample_program_fills_up(&c->sample))
		return err;
	err = sample_program_switch(&c->sample);
	err = err ?: sample_program_read(&c->sample);
	err = err ?: sample_program_take(&c->sample, &c->gathered, &part);
	if (err)
		return error_set(e, -err, "cannot take the counts of a full table");
	add_window(&c->taken, &part);
	return 0;
}

bool capture_ended(const struct capture *c)
{
	if (c->target_execed)
		return true;
	if (c->options.target == CAPTURE_CGROUP)
		return whom_is_gone(&c->whom);
	/* A target that executed a program with other credentials is no member any more. */
	for (size_t i = 0; i < c->target_count; i++)
		if (!has_ended(&c->targets[i]) &&
		    (!c->options.owned || members_has(&c->members, c->targets[i].pid)))
			return false;
	return c->target_count > 0;
}

static int account_for(const struct capture_sample *sample, void *context)
{
	struct capture *c = context;

	c->account.in_doubt += sample->in_doubt ? sample->ticks.count : 0;
	return c->stacks.limit ? stack_account_add(&c->stacks, sample) : 0;
}

/* How many records of mappings, forks and exits were lost so far. */
static uint64_t records_lost(const struct capture *c)
{
	return sideband_lost(c->sideband) + members_lost(&c->members);
}

/* --- Windows --- */

static void take_crowded(struct capture *c)
{
	c->account.crowded = c->account.crowded ?: (uint64_t)c->processes.crowded;
	c->processes.crowded = 0;
}

/* Takes the window's counts, and forgets processes and images that no tick comes to any more. */
static int take_window(struct capture *c)
{
	uint64_t kernel, blocked_ns = 0;
	uint64_t from_ring = counts_sum(&c->gathered, &kernel) - c->taken.counted;
	const struct counts *const samples[] = { &c->counts, &c->waits, &c->wakers };
	int64_t moved;
	int err = 0;

	counts_free(&c->counts);
	c->counts = c->gathered;
	c->gathered = (struct counts){ 0 };
	for (size_t i = 0; i < c->wall.row_count; i++)
		blocked_ns += c->wall.rows[i].blocked_ns;
	counts_free(&c->waits);
	counts_free(&c->wakers);
	if (c->options.waits)
		err = waits_take(&c->sample.waits, c->sample.arena, blocked_ns, &c->waits,
				 &c->wakers)
			      ?: counts_group_waits(&c->waits)
			      ?: (c->stopped ? counts_group_waits(&c->sample.calls.counts) : 0)
			      ?: counts_group_ticks(&c->wakers);
	err = err ?: sample_program_take(&c->sample, &c->counts, &c->window);
	add_window(&c->window, &c->taken);
	c->taken = (struct sample_window){ 0 };
	/*
	 * A tick that went through a ring buffer is in the window in which it was read. Those that
	 * were read before the cut, or are still to be read, are moved from one window's ticks to
	 * the other's. At the end all have been read, or were lost: then counts and ticks differ.
	 */
	moved = c->stopped ? -c->not_gathered : (int64_t)(c->window.counters.ring - from_ring);
	c->window.ticks -= moved;
	c->not_gathered += moved;
	c->window.counters.ring = from_ring;
	err = err ?: counts_group_ticks(&c->counts);
	err = err
		      ?: forget_choose(&c->processes, samples, sizeof(samples) / sizeof(*samples),
				       c->stop_ns);
	if (c->stopped)
		return err;
	err = err ?: unwind_forget(&c->unwind);
	err = err ?: forget_processes(&c->processes, c->start_ns, c->stop_ns);
	return err ?: unwind_forget_images(&c->unwind, c->start_ns);
}

int capture_cut(struct capture *c, struct error *e)
{
	struct member_times times = { 0 };
	uint64_t ns = 0, lost, dropped, own_ns;
	int err = 0;

	/* Before waits of the next window begin, which have the values that are added from now on.
	 */
	err = sample_program_renew_contexts(&c->sample);
	if (err)
		return error_set(e, -err, "cannot wait for the ticks of a window");
	/* First, as it takes some milliseconds: ticks of the next window must not come to this one.
	 */
	if (c->options.waits)
		err = waits_end(&c->sample.waits, wall_clock_offset(&c->wall), c->sample.arena,
				c->stopped, &c->sample.barrier, e);
	if (c->stopped)
		calls_stop(&c->sample.calls);
	if (!err && c->options.waits && !c->stopped)
		err = waits_begin(&c->sample.waits, wall_clock_offset(&c->wall),
				  has_unwind(c) ? &c->unwind : NULL, e);
	if (!err && c->options.wall)
		err = wall_look(&c->wall, e);
	if (err)
		return err;
	/* From here on ticks are of the next window. */
	c->start_ns = c->next_start_ns;
	c->start_time_ns = c->next_start_time_ns;
	if (!c->stopped)
		c->stop_ns = now_ns();
	c->next_start_ns = c->stop_ns;
	c->next_start_time_ns = time_of_day_ns(c->next_start_ns);
	err = sample_program_switch(&c->sample);
	if (err)
		return error_set(e, -err, "cannot wait for the ticks of a window");
	/* The CPU time that the kernel has charged to the targets so far; 0: unknown. */
	if (!counts_everyone(c)) {
		err = c->stopped ? members_end_account(&c->members, &times, e)
				 : members_read_account(&c->members, &times, e);
		ns = times.cpu_ns;
	} else if (c->options.target == CAPTURE_SYSTEM) {
		ns = target_system_cpu_ns();
	} else if (!c->has_group_ns || whom_cpu_ns(&c->whom, &ns)) {
		ns = 0; /* a group is removed by now, or it is a user */
	}
	c->account.cpu_ns = ns ? ns - c->cpu_start_ns : 0;
	c->cpu_start_ns = ns ?: c->cpu_start_ns;
	c->account.runnable_ns = times.runnable_ns - c->times_before.runnable_ns;
	c->account.wall_ns = times.wall_ns - c->times_before.wall_ns;
	c->account.threads = times.threads;
	c->times_before = times;
	err = err ?: read_all(c, e);
	if (err)
		return err;
	lost = records_lost(c);
	c->account.mapping_records_lost = lost - c->records_lost_before;
	c->records_lost_before = lost;
	dropped = members_dropped(&c->members);
	c->account.children_lost = dropped - c->children_lost_before;
	c->children_lost_before = dropped;
	c->account.crowded = 0;
	take_crowded(c);
	c->account.codes_lost = scripts_take_losses(&c->unwind.scripts, &c->processes.refusals);
	c->refusals = c->processes.refusals;
	c->processes.refusals.count = 0;
	/*
	 * Where records were lost since it was last done, the mappings of the remaining processes
	 * are read at the end. A recording that is always on may not take the time.
	 */
	if (c->stopped && !c->options.always_on && !c->target_execed && c->processes.lacks_records)
		err = snapshot_again(&c->processes, c->stop_ns);
	if (err || jit_look_again(&c->processes))
		return error_no_memory(e);
	/* Before the processes that have ended are forgotten. */
	err = c->options.wall ? wall_cut(&c->wall, &c->processes, e) : 0;
	if (err)
		return err;
	if (take_window(c))
		return error_no_memory(e);
	c->stacks.truncated = c->stacks.user = c->stacks.complete = c->stacks.end_count = 0;
	c->account.in_doubt = 0;
	if (capture_each_sample(c, CAPTURE_TICKS, account_for, c))
		return error_no_memory(e);
	if (c->stacks.end_count)
		qsort(c->stacks.ends, c->stacks.end_count, sizeof(*c->stacks.ends), most_first);
	take_crowded(c);
	own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + children_cpu_ns();
	c->account.own_ns = own_ns - c->own_start_ns;
	c->own_start_ns = own_ns;
	if (!c->stopped && capture_has_rate(c->options.event))
		tick_cost_update(&c->interrupt, now_ns());
	return 0;
}

bool capture_is_full(const struct capture *c)
{
	return c->processes.added * ADDED_BYTES + c->gathered.pc_count * FRAME_BYTES > c->room;
}

bool capture_clock_moved(const struct capture *c)
{
	/* Both clocks follow corrections of their speed; CLOCK_MONOTONIC stands still in a
	 * suspension. */
	uint64_t time = time_of_day_ns(c->next_start_ns), expected = c->next_start_time_ns;

	return time > expected + NS_PER_S / 2 || expected > time + NS_PER_S / 2;
}

int capture_stop(struct capture *c, struct error *e)
{
	int err;

	c->stopped = true;
	events_stop(&c->events);
	tick_end(&c->tick);
	c->stop_ns = now_ns();
	err = capture_cut(c, e);
	command_status(&c->command);
	return err;
}

int capture_find_names(struct capture *c, struct error *e)
{
	return jit_look_again(&c->processes) ? error_no_memory(e) : 0;
}

void capture_each_nameless(const struct capture *c,
			   void (*visit)(pid_t pid, uint32_t generation, void *context),
			   void *context)
{
	for (size_t i = 0; i < c->processes.count; i++) {
		const struct process *process = &c->processes.processes[i];

		if (!process->ended && process->jit.image != INDEX_NONE &&
		    process->jit.dump == INDEX_NONE)
			visit(process->pid, process->generation, context);
	}
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	events_close(&c->events);
	tick_end(&c->tick);
	wall_free(&c->wall);
	members_free(&c->members);
	sample_program_free(&c->sample);
	unwind_free(&c->unwind);
	sideband_free(c->sideband);
	process_table_free(&c->processes);
	counts_free(&c->counts);
	counts_free(&c->gathered);
	counts_free(&c->waits);
	counts_free(&c->wakers);
	free(c->stacks.ends);
	command_release(&c->command);
	for (size_t i = 0; i < c->target_count; i++)
		file_close(c->targets[i].pidfd);
	free(c->targets);
	whom_close(&c->whom);
	file_close(c->epoll);
	free(c);
}

/* --- The result --- */

uint64_t capture_ticks(const struct capture *c)
{
	return sample_program_ticks(&c->sample) + c->taken.ticks;
}

/* So many ticks or waits have the labels of this number. */
static void count_context(const struct capture *c, uint16_t context, uint64_t count,
			  struct capture_totals *totals)
{
	const struct context_value *values = c->unwind.tables.context_values;

	if (context && context < CONTEXT_IMAGES)
		totals->context_others += count;
	else if (context && values && context_is_cut(&values[context]))
		totals->context_cut += count;
}

void capture_totals(const struct capture *c, struct capture_totals *totals)
{
	size_t cpus = has_tick(c) || c->events.point ? (size_t)sysconf(_SC_NPROCESSORS_ONLN)
						     : c->events.count;
	const struct sample_counters *sum = &c->window.counters;
	uint64_t kernel;

	*totals = (struct capture_totals){
		.account = c->account,
		.start_time_ns = c->start_time_ns,
		.start_ns = c->start_ns,
		.duration_ns = c->stop_ns - c->start_ns,
	};
	totals->ticks = c->window.ticks;
	totals->counted = counts_sum(&c->counts, &kernel);
	totals->times_lost = c->window.times_lost;
	totals->interrupt_ns = c->interrupt.ns;
	totals->stack_limit = c->stacks.limit;
	totals->stacks_truncated = c->stacks.truncated;
	totals->stacks_user = c->stacks.user;
	totals->stacks_complete = c->stacks.complete;
	totals->wall_lost = c->wall.exits_lost;
	totals->throttled_lost = c->wall.quotas_lost;
	totals->machine_ns = totals->duration_ns * cpus;
	if (!has_tick(c) && c->events.kind == CAPTURE_CPU_CLOCK)
		totals->interrupts = totals->machine_ns / c->events.tick_ns;
	/* Of a user's recording, only what that user was refused. Functions were counted. */
	for (size_t i = 0; i < c->refusals.count; i++) {
		const struct refusal *refusal = &c->refusals.all[i];

		if (refusal->cause != REFUSAL_SCRIPT_NAMES &&
		    (!c->options.owned || refusal->uid == getuid()))
			totals->account.values[refusal_counters[refusal->cause]] += refusal->count;
	}
	if (c->options.waits) {
		const struct wait_counters waits = c->sample.waits.taken.counters;
		struct wait_share most;

		totals->waits = waits.waits;
		totals->waits_spared = waits.spared;
		totals->waits_no_room = waits_no_room(&c->sample.waits, &most);
		totals->waits_refused = most.refused;
		totals->waits_refused_uid = most.uid;
		totals->waits_lost = waits.no_storage;
		totals->waits_cost_ns = waits.timed_ns * WAIT_TIMED_PART;
		totals->wakers_lost = waits.wakes_lost;
		totals->wait_times_lost = waits.records_lost;
		totals->calls_lost = waits.calls_lost + c->sample.calls.lost;
	}
	totals->kernel = kernel;
	totals->excluded = sum->excluded;
	totals->out_of_range = sum->out_of_range;
	totals->ring_full = sum->ring_full;
	totals->nested = sum->nested + (c->events.point ? sample_program_missed(&c->sample) : 0);
	totals->ticks += totals->nested;
	totals->ring = sum->ring;
	totals->bpf_ns_per_tick = sum->timed ? sum->timed_ns / sum->timed : 0;
	for (size_t i = 0; i < c->waits.count; i++)
		count_context(c, c->waits.samples[i].context, c->waits.samples[i].waiting, totals);
	for (size_t i = 0; i < c->counts.count; i++) {
		count_context(c, c->counts.samples[i].context, c->counts.samples[i].count, totals);
		uint64_t after = c->counts.samples[i].first_ns - c->begin_ns;

		if (!totals->first_tick_ns || after < totals->first_tick_ns)
			totals->first_tick_ns = after;
	}
}

enum capture_rows capture_rows(const struct capture *c, uint32_t image, const char **why)
{
	return unwind_rows_state(&c->unwind, image, why);
}

void capture_tables(const struct capture *c, struct capture_tables *tables)
{
	unwind_used(&c->unwind, tables);
	tables->users_bytes += process_users_bytes(&c->processes);
	tables->users_room_bytes += c->processes.bytes_max + IMAGE_COPIES_BYTES;
}

const struct capture_stack_end *capture_stack_ends(const struct capture *c, size_t *count)
{
	*count = c->stacks.end_count;
	return c->stacks.ends;
}

int capture_open(struct capture *c, uid_t user, int root, const char *path, struct stat *status)
{
	const struct opener_target target = { .uid = user };
	struct opened_file file;
	int fd = opener_open_path(&c->processes.opener, &target, root, path, true, &file);

	*status = file.status;
	return fd;
}

const struct refusals *capture_refusals(const struct capture *c)
{
	return &c->refusals;
}

const char *capture_event_name(const struct capture *c)
{
	return c->events.point ? c->events.point->name
			       : capture_event_names[has_tick(c) ? CAPTURE_TICK : c->events.kind];
}

uint64_t capture_tick_ns(const struct capture *c)
{
	return has_tick(c) ? c->tick.tick_ns : c->events.tick_ns;
}

const struct capture_wall *capture_wall(const struct capture *c, size_t *count)
{
	*count = c->wall.row_count;
	return c->wall.rows;
}

const struct capture_throttled *capture_throttled(const struct capture *c, size_t *count)
{
	*count = c->wall.throttled_count;
	return c->wall.throttled;
}

bool capture_knows_waiting(const struct capture *c)
{
	return c->sample.knows_waiting;
}

int capture_command_status(const struct capture *c)
{
	return c->command.ended ? c->command.status : -1;
}

pid_t capture_command_pid(const struct capture *c)
{
	return c->options.target == CAPTURE_COMMAND && !c->command.ended ? c->command.pid : 0;
}

const struct capture_image *capture_images(const struct capture *c, size_t *count)
{
	*count = c->processes.image_count;
	return c->processes.images;
}

unsigned int capture_bits(const struct capture *c)
{
	const struct address_space *space = first_space(c);
	unsigned int bits = 0;

	for (size_t i = 0; space && i < space->count && !bits; i++)
		if (space->mappings[i].executable)
			bits = c->processes.images[space->mappings[i].image].bits;
	return bits ?: 64;
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

int capture_each_sample(struct capture *c, enum capture_kind kind,
			int (*visit)(const struct capture_sample *sample, void *context),
			void *context)
{
	const struct counts *const counts[] = {
		[CAPTURE_TICKS] = &c->counts,
		[CAPTURE_WAITS] = &c->waits,
		[CAPTURE_WAKERS] = &c->wakers,
		[CAPTURE_CALLS] = &c->sample.calls.counts,
	};
	/* The records of an earlier window that were lost have been read again. */
	bool incomplete = c->account.mapping_records_lost ||
			  c->processes.records_lost != sideband_lost(c->sideband);

	return resolve_each(counts[kind], kind, &c->processes, &c->unwind.scripts, incomplete,
			    c->options.always_on ? c->start_ns : 0, visit, context);
}

size_t capture_context(const struct capture *c, const struct capture_sample *sample,
		       struct context_text texts[static CONTEXT_TEXTS_MAX])
{
	const struct context_value *values = c->unwind.tables.context_values;
	size_t count = 0;

	if (!values || !sample->context || sample->context >= CONTEXT_VALUES)
		count = 0;
	else if (sample->context < CONTEXT_IMAGES)
		count = context_read_others(&c->unwind.tables.contexts[sample->context],
					    c->options.wishes, texts);
	else
		count = context_read_value(&values[sample->context], c->options.wishes,
					   sample->otel, texts);
	return context_read_service(sample->otel, texts, count);
}

bool capture_has_label(const struct capture *c, size_t wish)
{
	const struct unwind_tables *t = &c->unwind.tables;

	for (uint32_t i = 1; i <= t->context_count; i++)
		for (uint32_t k = 0; k < t->contexts[i].count; k++)
			if (t->contexts[i].variables[k].label == wish)
				return true;
	return false;
}

bool capture_lacks_thread_locals(const struct capture *c)
{
	return sample_program_lacks_thread_locals(&c->sample);
}

const char *capture_no_waits(const struct capture *c)
{
	return c->no_waits[0] ? c->no_waits : NULL;
}

const struct capture_mapping *capture_interpreter(const struct capture_sample *sample)
{
	for (uint32_t i = sample->depth - sample->user_depth + 1; i < sample->depth; i++)
		if (language_of_word(sample->frames[i].pc))
			return sample->frames[i - 1].mapping;
	return NULL;
}

const struct wait_peer *capture_peer(const struct capture *c, const struct capture_waits *wait)
{
	const struct wait_peer *peers = c->sample.waits.taken.peers;
	const struct wait_peer *peer = peers ? &peers[wait->whom] : NULL;

	if (peer && !peer->family)
		peer = &peers[wait->entry];
	return peer && peer->family && !peer->several ? peer : NULL;
}

_Static_assert(CAPTURE_WAKERS_MAX == WAIT_ENTRIES, "CAPTURE_WAKERS_MAX is part of capture.h");
