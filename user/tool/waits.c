// SPDX-License-Identifier: GPL-2.0-only
#include "tool/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/cgroup.h"
#include "capture/target.h"
#include "tool/tool.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"

/*
 * Bound: caller: groups of threads that are printed, and threads that are looked at; then: further
 * ones are left out; seen: not seen.
 */
#define MOST_GROUPS  5	   /* that are printed */
#define MOST_THREADS 10000 /* examined: some 10 us each */

/* Threads that do the same. */
struct group {
	struct target_wait wait;
	size_t threads;
};

struct waits {
	struct group *groups;
	size_t count, room;
	size_t threads; /* examined */
};

static int add_thread(struct waits *w, pid_t tid)
{
	struct target_wait wait;
	size_t i = 0;

	if (w->threads == MOST_THREADS || target_wait(tid, &wait))
		return 0; /* it may have ended */
	while (i < w->count && (w->groups[i].wait.state != wait.state ||
				strcmp(w->groups[i].wait.where, wait.where) != 0))
		i++;
	if (i == w->count) {
		if (array_add(w->groups, w->count, w->room, (struct group){ .wait = wait }))
			return -1;
	}
	w->groups[i].threads++;
	w->threads++;
	return 0;
}

ORDER(compare_groups, struct group,
      MOST(threads) ?: strcmp(a->wait.where, b->wait.where) ?: LEAST(wait.state))

/* proc(5) has the states. */
static void describe_group(const struct group *g, bool single, char *text, size_t size)
{
	const char *in = *g->wait.where ? " in " : "", *where = g->wait.where;

	switch (g->wait.state) {
	case 'R':
		snprintf(text, size, "%s running", single ? "is" : "are");
		break;
	case 'T':
	case 't':
		snprintf(text, size, "%s %s", single ? "is" : "are",
			 g->wait.state == 'T' ? "stopped by a signal" : "stopped by a tracer");
		break;
	case 'Z':
	case 'X':
		snprintf(text, size, "%s ended", single ? "has" : "have");
		break;
	case 'D':
		snprintf(text, size, "%s%s%s, uninterruptibly", single ? "waits" : "wait", in,
			 where);
		break;
	default:
		snprintf(text, size, "%s%s%s", single ? "waits" : "wait", in, where);
	}
}

/* Describes what tasks are doing. thread: pids are TIDs. */
static void describe_tasks(const pid_t *pids, size_t count, bool thread, char *text, size_t size)
{
	struct waits w = { 0 };
	struct error ignored;
	size_t printed = 0;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		pid_t *tids;
		size_t tid_count;

		if (thread) {
			err = add_thread(&w, pids[i]);
			continue;
		}
		if (target_list_threads(pids[i], &tids, &tid_count, &ignored))
			continue;
		for (size_t j = 0; j < tid_count && !err; j++)
			err = add_thread(&w, tids[j]);
		free(tids);
	}
	if (!err && w.count)
		qsort(w.groups, w.count, sizeof(*w.groups), compare_groups);
	*text = '\0';
	for (size_t i = 0; !err && i < w.count && i < MOST_GROUPS; i++) {
		const struct group *g = &w.groups[i];
		const char *unit = "";
		char what[128];

		describe_group(g, g->threads == 1, what, sizeof(what));
		printed += g->threads;
		if (w.threads == 1) {
			text_append(text, size, "", "it %s", what);
			continue;
		}
		if (i == 0)
			unit = g->threads == 1 ? " thread" : " threads";
		text_append(text, size, ", ", "%zu%s %s", g->threads, unit, what);
	}
	if (!err && printed < w.threads)
		text_append(text, size, ", ", "and %zu elsewhere", w.threads - printed);
	free(w.groups);
}

void waits_describe(const struct tool_target *t, pid_t command, char *text, size_t size)
{
	pid_t *tids;
	size_t count;

	*text = '\0';
	if (command) {
		describe_tasks(&command, 1, false, text, size);
	} else if (t->tid) {
		describe_tasks(&t->tid, 1, true, text, size);
	} else if (t->of_user || t->group_count) {
		if (t->of_user ? target_list_of_user(t->uid, &tids, &count)
			       : cgroup_list_threads((const char *const *)t->groups, t->group_count,
						     &tids, &count))
			return;
		if (count)
			describe_tasks(tids, count, !t->of_user, text, size);
		else
			snprintf(text, size, "it has no processes");
		free(tids);
	} else {
		describe_tasks(t->pids, t->pid_count, false, text, size);
	}
}

void waits_warn(const char *target, const struct idleness *idle)
{
	if (idle->excluded)
		tool_warn("no samples: no tick fell into %s on the side that was asked for",
			  target);
	else if (idle->out_of_range)
		tool_warn("no samples: no tick fell into %s at an address that the histogram has",
			  target);
	else if (idle->event)
		tool_warn("no samples: no %s of %s in %.2f s", idle->event, target,
			  (double)idle->duration_ns / 1e9);
	else if (idle->no_cpu_time)
		tool_warn("no samples: no tick fell into %s in %.2f s%s%s", target,
			  (double)idle->duration_ns / 1e9, *idle->waits ? ": " : "", idle->waits);
	else
		tool_warn(
			"no samples: no tick fell into %s, which used %.3f s of CPU in %.2f s%s%s",
			target, (double)idle->cpu_ns / 1e9, (double)idle->duration_ns / 1e9,
			*idle->waits ? ": " : "", idle->waits);
}

void unrecorded_list(struct unrecorded *u, const struct tool_target *t)
{
	/* Out of memory, only this warning is missing. */
	if (t->pid_count && !t->no_inherit && !t->children)
		target_list_children(t->pids, t->pid_count, &u->children, &u->count);
}

/* Children that used less are not worth a line. Bound: pace. */
#define CHILDREN_MIN_NS (10 * NS_PER_MS)

void unrecorded_say(const struct unrecorded *u)
{
	if (u->count)
		tool_warn("%zu child process%s, and %s not recorded: --children takes %s, too",
			  u->count, u->count == 1 ? " runs already" : "es run already",
			  u->count == 1 ? "is" : "are", u->count == 1 ? "it" : "them");
}

void unrecorded_warn(const struct unrecorded *u, uint64_t target_ns)
{
	uint64_t used_ns = 0;
	size_t busy = 0;

	for (size_t i = 0; i < u->count; i++) {
		uint64_t ns = target_used_since(&u->children[i]);

		used_ns += ns;
		busy += ns > 0;
	}
	/* A tenth of all. */
	if (used_ns < CHILDREN_MIN_NS || used_ns * 9 < target_ns)
		return;
	tool_warn("%zu child process%s, which ran before, used %.2f s of CPU, and %s not recorded: "
		  "add --children",
		  busy, busy == 1 ? "" : "es", used_ns / 1e9, busy == 1 ? "is" : "are");
}

void unrecorded_free(struct unrecorded *u)
{
	free(u->children);
	*u = (struct unrecorded){ 0 };
}
