// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "archive/archive.h"
#include "archive/tree.h"
#include "archive/window_sum.h"
#include "profile/filter.h"
#include "profile/merge.h"
#include "util/clock.h"

/* A window is an hour long at most (--window), whatever its name says. Bound: format. */
#define LONGEST_S 3600

/*
 * How many seconds that are taken follow each other at most.
 * Bound: users: files of triggers within as many seconds; then: the file is not written; again: at
 * the next trigger; share: --trigger-limit of an hour; seen: triggers_failed.
 */
#define MOST_STEPS 60

/* Stacks of a service, before or after a change, that a file has besides one for each function. */
#define STACKS_CHANGE 20000

/*
 * What is left of a profile is a recording of its own, but what is said of the whole recording is
 * not true for a part of it.
 */
static void forget_rest(struct profile *p)
{
	struct profile_totals *t = &p->totals;

	p->all_samples = p->all_cpu_ns = p->all_duration_ns = 0;
	*t = (struct profile_totals){ .lost = t->lost,
				      .lost_room = t->lost_room,
				      .stack_ends = t->stack_ends,
				      .stack_end_room = t->stack_end_room,
				      .throttled = t->throttled,
				      .throttled_room = t->throttled_room };
}

/* Writes the file of a trigger or change, under the name of the next second that is free. */
static int write_free(const struct tree *t, const struct profile *p, struct window_name *name,
		      struct error *e)
{
	int err = tree_write(t, p, name, false, e);

	for (int steps = 0; err == -EEXIST && steps < MOST_STEPS; steps++) {
		name->start_s++;
		err = tree_write(t, p, name, false, e);
	}
	return err;
}

/* Adds what the windows have of the interval. */
static int add_windows(const struct tree *t, const struct archive_trigger *trigger,
		       struct profile *sum, struct error *e)
{
	const struct time_interval interval = { trigger->since_ns, trigger->until_ns };
	uint64_t since_s = trigger->since_ns / NS_PER_S;
	size_t first = 0;
	int err = 0;

	/* Names have whole seconds: the last window that certainly began before. */
	for (size_t i = 0; i < t->count && t->windows[i].name.start_s < since_s; i++)
		if (!window_is_apart(&t->windows[i].name) &&
		    t->windows[i].name.grain_s == WINDOW_FINE_S)
			first = i;
	for (size_t i = first; i < t->count && !err; i++) {
		const struct window_name *w = &t->windows[i].name;
		char path[PATH_MAX];
		struct profile *p;

		if (window_is_apart(w) || w->grain_s != WINDOW_FINE_S ||
		    w->start_s * NS_PER_S >= trigger->until_ns)
			continue;
		tree_path(t, w, path, sizeof(path));
		err = window_read(path, &p, e);
		if (err == -EINVAL) { /* damaged: merging reports it */
			err = 0;
			continue;
		}
		if (err)
			break;
		/* One that has lost its times has no part in it; one that was idle has. */
		if (p->ticks.count) {
			err = profile_filter_times(p, &interval, false) ? error_no_memory(e) : 0;
			forget_rest(p);
			if (!err && p->duration_ns)
				err = profile_merge(sum, p, NULL, e);
		}
		profile_free(p);
	}
	return err;
}

int archive_write_trigger(const char *directory, const char *host, struct archive_trigger *trigger,
			  char *path, size_t size, struct error *e)
{
	struct window_name name = { .grain_s = WINDOW_FINE_S, .trigger = trigger->kind };
	uint64_t since_s = trigger->since_ns / NS_PER_S;
	struct profile *sum = profile_new();
	char comment[PATH_MAX + 64];
	struct tree tree;
	int err = tree_open(&tree, directory, host, false, e);

	if (!err && !sum)
		err = error_no_memory(e);
	since_s = since_s > LONGEST_S ? since_s - LONGEST_S : 0;
	err = err ?: tree_scan(&tree, since_s, trigger->until_ns / NS_PER_S, false, e);
	err = err ?: add_windows(&tree, trigger, sum, e);
	if (!err && !sum->ticks.count) {
		error_set(e, 0, "%s has no ticks with times of these seconds", tree.path);
		err = -ENOENT;
	}
	snprintf(comment, sizeof(comment), "trigger=%s", trigger->what);
	if (!err && profile_add_comment(sum, comment))
		err = error_no_memory(e);
	name.start_s = trigger->time_ns / NS_PER_S;
	err = err ?: write_free(&tree, sum, &name, e);
	trigger->time_ns += (name.start_s - trigger->time_ns / NS_PER_S) * NS_PER_S;
	if (!err)
		tree_path(&tree, &name, path, size);
	tree_close(&tree);
	profile_free(sum);
	return err;
}

int archive_find_triggers(const char *directory, const char *host, uint64_t since_s,
			  uint64_t until_s, uint64_t *times_s, size_t most, struct error *e)
{
	struct tree tree;
	size_t count = 0;
	int err = tree_open(&tree, directory, host, false, e);

	memset(times_s, 0, most * sizeof(*times_s));
	err = err ?: tree_scan(&tree, since_s, until_s, false, e);
	for (size_t i = 0; i < tree.count && !err; i++) {
		const struct window_name *w = &tree.windows[i].name;

		if (w->trigger && w->trigger < WINDOW_TRIGGERS && w->start_s >= since_s &&
		    w->start_s <= until_s)
			times_s[count++ % most] = w->start_s;
	}
	tree_close(&tree);
	return err;
}

/* Adds up what a service did in an interval. */
static int sum_service(const char *directory, const char *host, const struct archive_change *change,
		       const struct time_interval *interval, struct window_sum *sum,
		       struct error *e)
{
	struct archive_window *windows = NULL;
	size_t count = 0;
	char comment[PATH_MAX];
	int err = archive_list(directory, host, interval->since_ns, interval->until_ns, &windows,
			       &count, e);

	snprintf(comment, sizeof(comment), "change=%s", change->what);
	for (size_t i = 0; i < count && !err; i++) {
		struct profile *p;

		if (windows[i].start_ns < interval->since_ns ||
		    windows[i].limit_ns > interval->until_ns)
			continue;
		err = window_read(windows[i].path, &p, e);
		if (err == -EINVAL || err == -ENOENT) { /* damaged, or merged meanwhile */
			err = 0;
			continue;
		}
		if (err)
			break;
		if (profile_filter_labels(p, &change->service, NULL) ||
		    profile_add_comment(p, comment)) {
			profile_free(p);
			err = error_no_memory(e);
			break;
		}
		forget_rest(p);
		err = window_sum_add(sum, p, e);
	}
	archive_list_free(windows, count);
	if (!err && !sum->p)
		return error_set(e, ENOENT, "%s has no windows of a change", directory);
	return err;
}

int archive_write_change(const char *directory, const char *host,
			 const struct archive_change *change, char (*paths)[PATH_MAX],
			 struct error *e)
{
	struct window_name before = { .grain_s = WINDOW_FINE_S, .trigger = WINDOW_CHANGE_BEFORE };
	struct window_name after = { .grain_s = WINDOW_FINE_S, .trigger = WINDOW_CHANGE_AFTER };
	struct window_sum sums[] = { { .most = STACKS_CHANGE, .tasks = true },
				     { .most = STACKS_CHANGE, .tasks = true } };
	const struct profile *profiles[] = { NULL, NULL };
	struct tree tree;
	int err = tree_open(&tree, directory, host, false, e);

	err = err ?: sum_service(directory, host, change, &change->before, &sums[0], e);
	err = err ?: sum_service(directory, host, change, &change->after, &sums[1], e);
	err = err ?: window_sum_finish(&sums[0], &profiles[0], e);
	err = err ?: window_sum_finish(&sums[1], &profiles[1], e);
	before.start_s = change->time_ns / NS_PER_S;
	err = err ?: write_free(&tree, profiles[0], &before, e);
	/* One without the other is left of a process that was killed. */
	after.start_s = before.start_s;
	err = err ?: tree_write(&tree, profiles[1], &after, true, e);
	if (!err) {
		tree_path(&tree, &before, paths[0], PATH_MAX);
		tree_path(&tree, &after, paths[1], PATH_MAX);
	}
	tree_close(&tree);
	window_sum_free(&sums[0]);
	window_sum_free(&sums[1]);
	return err;
}
