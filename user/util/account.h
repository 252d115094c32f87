/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_ACCOUNT_H
#define PROFIL_UTIL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The counters of a recording's account: ticks = counted + out_of_range + excluded + what was lost
 * by causes that have names (struct profile_lost). Captures count them; profiles, formats, dump,
 * JSON, summaries, --status and metrics go through this table, so a new one is a line here, and
 * what counts it. They are written and printed in this order. Files have the names: a released one
 * never changes.
 *
 * X(name, what it counts, .member = value, ...), with members of struct account_counter.
 */
/* clang-format off */
#define ACCOUNT_COUNTERS(X) \
	X(ticks, "ticks, counted or not", .callgrind = "Ticks", .zero = true, .basic = true, .metric = "ticks_total") \
	X(counted, "ticks counted", .callgrind = "Counted", .zero = true, .basic = true, .metric = "samples_total") \
	X(out_of_range, "ticks at a pc without a cell", .callgrind = "Out of range", .zero = true, .basic = true) \
	X(excluded, "ticks in a mode that is not recorded", .callgrind = "Excluded", .zero = true, .basic = true) \
	X(kernel, "ticks counted in the kernel", .callgrind = "Kernel", .zero = true, .basic = true) \
	X(times_lost, "ticks counted without their times: no room", .said = true, .metric = "lost_times_total") \
	X(codes_lost, "functions of scripts without a name, for want of room", .said = true, .loss = true, \
	  .metric = "lost_script_names_total") \
	X(context_others, "ticks and waits labelled [others]: there were too many different texts", .said = true, .loss = true) \
	X(context_cut, "ticks and waits without some of their labels, or with part of a label's name: the thread had too many, " \
	  "or too long ones", .said = true, .loss = true) \
	X(in_doubt, "ticks in doubt: function, thread or program may have changed by then, but records or times were lost", \
	  .said = true, .metric = "samples_in_doubt_total") \
	X(mapping_records_lost, "records of mappings that the kernel lost", .metric = "lost_mapping_records_total") \
	X(children_lost, "processes not recorded: too many at once", .said = true, .loss = true, \
	  .metric = "lost_processes_total") \
	X(crowded, "process # has more mappings of code than are kept, which is 1 MiB of them with their paths, less if " \
	  "other processes have very many: addresses in the others have no name until they are read again", \
	  .merge = ACCOUNT_FIRST, .said = true, .loss = true) \
	X(no_answer, "files or pieces of memory not read: no answer from them", .said = true, .loss = true) \
	X(unwind_time, "images whose call frame information was read later: no time", .said = true, .loss = true) \
	X(unwind_room, "images whose call frame information had no room", .said = true, .loss = true) \
	X(unwind_process, "processes that the kernel does not walk until their next tick", .said = true, .loss = true) \
	X(waits, "waits of threads", .group = "wall", .zero = true) \
	X(waits_spared, "waits without a stack, as that would have cost too much", .group = "wall", .zero = true) \
	X(waits_no_room, "waits without a stack, as there were too many of these", .group = "wall", .zero = true, \
	  .metric = "wall_waits_no_room_total") \
	X(waits_lost, "waits in no reason, for want of memory", .group = "wall", .zero = true, .said = true) \
	X(waits_user_ns, "time of waits that are to have a user stack, with CFI", .group = "wall", .zero = true) \
	X(waits_complete_ns, "time of these whose stack reaches its start", .group = "wall", .zero = true) \
	X(waits_cost_ns, "CPU time that following waits took, about", .group = "wall", .zero = true) \
	X(wait_times_lost, "waits without their times: no room", .group = "wall", .zero = true, .said = true, \
	  .metric = "wall_lost_wait_times_total") \
	X(wakers_lost, "waits without a waker, for want of room", .group = "wall", .zero = true, .said = true, \
	  .metric = "wall_lost_wakers_total") \
	X(calls_lost, "calls of the function that are not recorded: no room", .group = "wall", .said = true, .loss = true) \
	X(peers_lost, "waits whose peer is \"[others]\", as there were too many of these", .group = "wall", .said = true) \
	X(wall_lost, "threads that ended unseen, as there was no room for so many at once: their time is \"unknown\", or " \
	  "missing", .group = "wall", .json = "lost", .said = true, .loss = true, .metric = "wall_lost_threads_total") \
	X(throttled_lost, "times that a control group with a quota found no room to be followed", .group = "wall", \
	  .said = true, .loss = true, .metric = "wall_throttled_lost_total") \
	X(cpu_ns, "CPU time of the target, by the kernel's account", .callgrind = "CPU time", .basic = true) \
	X(threads, "threads of the target, of which the next two are", .merge = ACCOUNT_SUM) \
	X(wall_ns, "time of these threads, on a CPU or not", .merge = ACCOUNT_SUM) \
	X(runnable_ns, "time in which they were runnable, and no CPU was free", .merge = ACCOUNT_SUM) \
	X(bpf_ns_per_tick, "time of the eBPF program in a tick", .callgrind = "BPF time per tick", .group = "cost", \
	  .merge = ACCOUNT_MEAN) \
	X(interrupt_ns, "what a tick's interrupt costs without the program", .callgrind = "Interrupt time", \
	  .merge = ACCOUNT_MEAN) \
	X(interrupts, "of the clock, on all CPUs, for the target or not; 0: unknown", .callgrind = "Interrupts") \
	X(own_ns, "CPU time of the recorder itself meanwhile; 0: unknown", .callgrind = "Recorder's CPU time") \
	X(machine_ns, "time of all CPUs, idle or not", .callgrind = "Machine time", .metric = "machine_nanoseconds_total") \
	X(stack_limit, "most frames of user space, and of the kernel, in a stack; 0: no stacks", .group = "stacks", \
	  .json = "limit", .merge = ACCOUNT_MAX) \
	X(stacks_truncated, "samples whose stack was cut off there, at the root's end", .group = "stacks", \
	  .json = "truncated", .zero = true) \
	X(stacks_user, "samples with call stacks in user space", .group = "stacks", .json = "user", .zero = true, \
	  .metric = "user_stacks_total") \
	X(stacks_complete, "of these, those up to the start of the program", .group = "stacks", .json = "complete", \
	  .metric = "whole_user_stacks_total")

#define ACCOUNT_NUMBER(name, ...) ACCOUNT_##name,
enum account_number { ACCOUNT_COUNTERS(ACCOUNT_NUMBER) ACCOUNT_COUNT };

#define ACCOUNT_MEMBER(name, ...) uint64_t name;
struct account {
	union {
		struct { ACCOUNT_COUNTERS(ACCOUNT_MEMBER) };
		uint64_t values[ACCOUNT_COUNT]; /* by enum account_number */
	};
};

/* Makes them members of another struct: of t, they are t.ticks, and all together t.account. */
#define ACCOUNT_MEMBERS \
	union { \
		struct account account; \
		struct { ACCOUNT_COUNTERS(ACCOUNT_MEMBER) }; \
	}
/* clang-format on */

struct account_counter {
	const char *name; /* in nanoseconds if _ns is in it */
	const char *what; /* it counts, to follow the number; or # stands for that */
	enum account_merge {
		ACCOUNT_SUM,
		ACCOUNT_MAX,
		ACCOUNT_MEAN,  /* weighted by ticks; 0: not measured */
		ACCOUNT_FIRST, /* the first that is not 0 */
	} merge;	       /* how those of two recordings become one */
	bool zero;	       /* dump and JSON have it when it is 0, too */
	bool basic;	       /* every format that has an account holds it */
	bool said;	       /* summaries and --status have a line for it, when it is not 0 */
	bool loss;	       /* also the short summary, and record -q */
	const char *callgrind; /* its key in Callgrind files; NULL: its name */
	const char *group;     /* the object of JSON that it is in; NULL: none */
	const char *json;      /* its key there; NULL: its name */
	const char *metric;    /* its name as a metric, which only grows; NULL: it is none */
};

extern const struct account_counter account_counters[ACCOUNT_COUNT];

/* Adds a later recording's account. */
void account_merge(struct account *to, const struct account *from);

/* Prints a line for each counter that is to be said. losses: of losses alone. */
void account_say(const struct account *a, bool losses, const char *prefix, FILE *out);

#endif
