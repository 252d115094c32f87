/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CAPTURE_STATE_H
#define PROFIL_CAPTURE_CAPTURE_STATE_H

#include "capture/capture.h"
#include "capture/cgroup.h"
#include "capture/command.h"
#include "capture/counts.h"
#include "capture/events.h"
#include "capture/members.h"
#include "capture/process.h"
#include "capture/profil_program.h"
#include "capture/sample_program.h"
#include "capture/sideband.h"
#include "capture/stack_account.h"
#include "capture/tick.h"

/* What capture.c, capture_cut.c and capture_result.c share. */

struct target {
	pid_t pid;
	int pidfd; /* -1 for a thread */
};

struct capture {
	struct capture_options options;
	struct sample_program sample; /* in use, or else profil */
	struct unwind unwind;	      /* of sample, for call stacks */
	struct profil_program profil;
	struct profil_client histogram; /* of profil */
	struct profil_range range;	/* of the histogram */
	struct event_set events;	/* in use, or else tick */
	struct tick tick;
	struct members members; /* whose ticks count, unless everyone's do */
	struct sideband *sideband;
	struct process_table processes;
	struct counts counts;	/* the result */
	struct counts gathered; /* with windows: from ring buffers, for the next result */
	struct command command;
	struct target *targets;
	size_t target_count;
	struct cgroup group; /* fd -1: none */
	int epoll;
	uint64_t begin_ns, start_ns, stop_ns; /* CLOCK_MONOTONIC; stop: the last reading */
	uint64_t next_cpus_ns;		      /* when to look for CPUs again */
	bool stopped;
	uint64_t start_time_ns; /* since the epoch */
	uint64_t interrupt_ns;
	uint64_t own_ns;       /* CPU time of this process: when recording began, then since */
	uint64_t cpu_start_ns; /* CPU time before, of the group or of the machine */
	bool has_group_ns;     /* the kernel reports the group's CPU time */
	uint64_t cpu_ns;
	struct stack_account stacks;
	/* With windows: the last one, and what was there before it. */
	struct sample_window window;
	int64_t not_gathered; /* samples sent through ring buffers: in no window yet */
	uint64_t next_start_ns, next_start_time_ns;
	uint64_t lost, lost_before; /* records */
	uint64_t again_ns;	    /* CPU time of reading mappings again */
	size_t next_again;	    /* the number of the process that is next, about */
	bool lacks_room;	    /* processes have more mappings than are kept */
	pid_t crowded;		    /* one of them in the window; 0: none */
	uint64_t dropped, dropped_before;
	bool target_execed; /* the target of a histogram has called exec */
};

static inline bool has_histogram(const struct capture *c)
{
	return c->options.scale != 0;
}

static inline bool has_tick(const struct capture *c)
{
	return c->options.event == CAPTURE_TICK;
}

/* Whether stacks are walked by call frame information. */
static inline bool has_unwind(const struct capture *c)
{
	return c->options.stacks == CAPTURE_STACKS_CFI || c->options.stacks == CAPTURE_STACKS_AUTO;
}

/* Whether all ticks count, or only those of members. */
static inline bool counts_everyone(const struct capture *c)
{
	return c->options.target == CAPTURE_SYSTEM || c->options.target == CAPTURE_CGROUP;
}

/* The first target's last address space; NULL: none. */
const struct address_space *capture_first_space(const struct capture *c);

/* How many records of mappings, forks and exits were lost so far. */
uint64_t capture_records_lost(const struct capture *c);

/* Sums up why stacks end, from the counts. Returns 0 or -ENOMEM. */
int capture_count_stacks(struct capture *c);

/*
 * Sets *ns to the CPU time that the kernel has charged to the targets so far; 0: unknown. Returns 0
 * or a negative errno, as do the calls below.
 */
int capture_read_cpu_time(struct capture *c, uint64_t *ns, struct error *e);

/* Ends a window at stop_ns. */
int capture_end_window(struct capture *c, struct error *e);

#endif
