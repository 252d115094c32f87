// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/coarsen.h"
#include "archive/tree.h"
#include "archive/window_sum.h"
#include "util/clock.h"

/*
 * Coarser windows that one call writes at most: a call is short, and calls after each window keep
 * up with the 7 that an hour of windows becomes.
 */
#define MERGES_PER_CALL 2

/* Windows that one call reads to remove their times at most: each minute there is one more. */
#define TIMES_PER_CALL 4

/* How long after a time its last window is on the disk, at most. Bound: pace. */
#define COMPLETE_S 180

/*
 * Stacks that windows of ten minutes and of an hour have besides one for each function and labels:
 * each takes some 30 bytes on disk.
 */
#define STACKS_10MIN 8000
#define STACKS_HOUR  6000

/*
 * Times of ticks that a window of ten minutes has at most: of 35 CPUs at 97 Hz. Memory for them is
 * 12 bytes each, and several times that while the window is written.
 */
#define TICKS_10MIN 2000000

/*
 * A clock that is more than JUMP_S ahead of all that was recorded before is believed once
 * CONFIRMED_S were recorded by it.
 * Bound: pace.
 */
#define JUMP_S	    (2 * WINDOW_DAY_S)
#define CONFIRMED_S WINDOW_HOUR_S

struct tidy {
	struct tree tree;
	const struct archive_limits *limits;
	uint64_t clock_s; /* now, by the clock */
	uint64_t now_s;	  /* from which ages count: plausible_now() */
	uint64_t keep_fine_from_s;
	uint64_t times_from_s; /* windows that begin from there on keep the times of their ticks */
	uint64_t old_before_s; /* what ended before is over limits->days; 0: nothing is */
	uint64_t bytes;	       /* of all windows */
	const struct archive_beside *beside;
	uint64_t beside_bytes, beside_end_s; /* as measure() has it */
	void (*report)(const struct archive_dropped *dropped, void *context);
	void *context;
	struct error *e;
};

static void forget_window(struct tree *t, size_t i)
{
	t->count--;
	memmove(t->windows + i, t->windows + i + 1, (t->count - i) * sizeof(*t->windows));
}

/* Windows that become one: the tree's from `first` on. */
struct group {
	size_t first, count;
	uint64_t start_s;
	unsigned int grain_s;
};

/* Returns the target grain if the window is old enough to be merged permanently; 0 if not. */
static unsigned int due_grain(const struct tidy *y, const struct window_name *w)
{
	static const struct {
		unsigned int grain_s;
		uint64_t age_s;
	} rules[] = { { WINDOW_HOUR_S, ARCHIVE_10MIN_S }, { WINDOW_10MIN_S, ARCHIVE_FINE_S } };

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		uint64_t end_s = w->start_s - w->start_s % rules[i].grain_s + rules[i].grain_s;

		if (!window_is_apart(w) && !w->sum && w->grain_s < rules[i].grain_s &&
		    end_s + rules[i].age_s <= y->now_s && end_s <= y->keep_fine_from_s)
			return rules[i].grain_s;
	}
	return 0;
}

static uint64_t group_end(const struct group *g)
{
	return g->start_s + g->grain_s;
}

/* Sets the group of a window: all that begin in its time, the sum itself included. */
static void set_group(const struct tidy *y, size_t number, unsigned int grain_s, struct group *g)
{
	const struct tree *t = &y->tree;
	uint64_t start_s = t->windows[number].name.start_s;

	*g = (struct group){ .first = number,
			     .start_s = start_s - start_s % grain_s,
			     .grain_s = grain_s };
	while (g->first > 0 && t->windows[g->first - 1].name.start_s >= g->start_s)
		g->first--;
	while (g->first + g->count < t->count &&
	       t->windows[g->first + g->count].name.start_s < group_end(g))
		g->count++;
}

/* Returns the existing sum of a group, with or_coarser also a coarser window; or NULL. */
static struct tree_window *find_sum(struct tidy *y, const struct group *g, bool or_coarser)
{
	for (size_t i = g->first; i < g->first + g->count; i++) {
		struct tree_window *w = &y->tree.windows[i];

		if (!w->name.damaged && w->name.grain_s == g->grain_s &&
		    (w->name.sum || or_coarser))
			return w;
		if (or_coarser && !w->name.damaged && !w->name.sum && w->name.grain_s > g->grain_s)
			return w;
	}
	return NULL;
}

/* Renames and reports a window that cannot be read, for the reason in y->e. */
static int set_aside(struct tidy *y, struct tree_window *w)
{
	struct archive_dropped dropped = {
		.reason = ARCHIVE_DAMAGED,
		.count = 1,
		.bytes = w->bytes,
		.first_ns = w->name.start_s * NS_PER_S,
		.limit_ns = (w->name.start_s + w->name.grain_s) * NS_PER_S,
	};
	struct window_name aside = w->name;
	char path[PATH_MAX], why[sizeof(y->e->what)];
	int err;

	strcpy(why, y->e->what);
	aside.damaged = true;
	err = tree_rename(&y->tree, &w->name, &aside, y->e);
	if (err)
		return err;
	w->name = aside;
	tree_path(&y->tree, &w->name, path, sizeof(path));
	dropped.path = path;
	dropped.why = why;
	y->report(&dropped, y->context);
	return 0;
}

/* Adds up the windows of a group, of which damaged ones are set aside, and writes the sum. */
static int sum_group(struct tidy *y, const struct group *g, bool parts_stay)
{
	struct window_name name = { g->start_s, g->grain_s, .sum = parts_stay };
	struct window_sum sum = {
		.most = g->grain_s >= WINDOW_HOUR_S ? STACKS_HOUR : STACKS_10MIN,
		.tasks = g->grain_s >= WINDOW_HOUR_S,
		.most_ticks = g->grain_s >= WINDOW_HOUR_S ? 0 : TICKS_10MIN,
		.share = user_share_of(y->limits, g->grain_s, 0),
	};
	bool *chosen = calloc(y->tree.count + 1, sizeof(*chosen));
	int err = chosen ? 0 : error_no_memory(y->e);

	if (chosen)
		tree_choose(&y->tree, g->start_s, group_end(g), g->grain_s, chosen);
	/* A window that began before reaches into it, but is no part. */
	for (size_t i = g->first; i < g->first + g->count && !err; i++) {
		struct tree_window *w = &y->tree.windows[i];
		struct profile *p;
		char path[4096];

		if (!chosen[i])
			continue;
		tree_path(&y->tree, &w->name, path, sizeof(path));
		err = window_read(path, &p, y->e);
		if (err == -EINVAL)
			err = set_aside(y, w);
		else if (!err)
			err = window_sum_add(&sum, p, y->e);
	}
	if (!err && sum.p) {
		const struct profile *p;

		err = window_sum_finish(&sum, &p, y->e);
		err = err ?: tree_write(&y->tree, p, &name, true, y->e);
	}
	window_sum_free(&sum);
	free(chosen);
	return err;
}

/* Replaces the windows of a group by their sum. */
static int merge_group(struct tidy *y, const struct group *g)
{
	struct tree_window *sum = find_sum(y, g, false);
	int err;

	if (sum) {
		struct window_name final = sum->name;

		final.sum = false;
		err = tree_rename(&y->tree, &sum->name, &final, y->e);
		sum->name = final;
	} else {
		err = sum_group(y, g, false);
	}
	/* Sums that contain this group stay. */
	for (size_t i = g->first; i < g->first + g->count && !err; i++) {
		const struct window_name *w = &y->tree.windows[i].name;

		if (!window_is_apart(w) && w->grain_s < g->grain_s)
			err = tree_remove(&y->tree, w, y->e);
	}
	return err;
}

static int rescan(struct tidy *y)
{
	return tree_scan(&y->tree, 0, UINT64_MAX, false, y->e);
}

static int merge_windows(struct tidy *y)
{
	static const unsigned int grains_s[] = { WINDOW_10MIN_S, WINDOW_HOUR_S, WINDOW_DAY_S };
	int merged = 0, before, err = 0;
	struct group g;

	for (size_t i = 0; !err && merged < MERGES_PER_CALL && i < y->tree.count;) {
		unsigned int grain_s = due_grain(y, &y->tree.windows[i].name);

		if (!grain_s) {
			i++;
			continue;
		}
		set_group(y, i, grain_s, &g);
		i = g.first + g.count;
		err = merge_group(y, &g);
		merged++;
	}
	if (!err && merged)
		err = rescan(y);
	/* Sums beside their parts, finer ones first: coarser ones are made of them. */
	for (size_t grain = 0; grain < sizeof(grains_s) / sizeof(*grains_s) && !err; grain++) {
		before = merged;
		for (size_t i = 0; !err && merged < MERGES_PER_CALL && i < y->tree.count;) {
			bool damaged = y->tree.windows[i].name.damaged;

			if (y->tree.windows[i].name.trigger) {
				i++;
				continue;
			}
			set_group(y, i, grains_s[grain], &g);
			i = g.first + g.count;
			if (damaged || group_end(&g) + COMPLETE_S > y->now_s ||
			    find_sum(y, &g, true))
				continue;
			err = sum_group(y, &g, true);
			merged++;
		}
		if (!err && merged > before)
			err = rescan(y);
	}
	if (merged)
		malloc_trim(0);
	return err;
}

static bool may_have_times(const struct window_name *w)
{
	return !window_is_apart(w) && w->grain_s <= WINDOW_10MIN_S;
}

/* Returns y->times_from_s. The newest window keeps its times, unless none is to. */
static uint64_t find_times_start(const struct tidy *y)
{
	const struct archive_limits *l = y->limits;
	uint64_t from_s = l->times_s < y->now_s ? y->now_s - l->times_s : 0, bytes = 0;

	for (size_t i = y->tree.count; i > 0; i--) {
		const struct tree_window *w = &y->tree.windows[i - 1];

		if (w->name.start_s < from_s)
			break;
		if (!may_have_times(&w->name))
			continue;
		if (l->times_bytes && bytes && bytes + w->bytes > l->times_bytes)
			return w->name.start_s + 1;
		bytes += w->bytes;
	}
	return from_s;
}

/* Removes times of ticks. *from_s: windows that begin before have none, now and afterwards. */
static int drop_times(struct tidy *y, uint64_t *from_s)
{
	const uint64_t known_s = *from_s;
	int left = TIMES_PER_CALL, err = 0;
	bool dropped = false;

	for (size_t i = 0; i < y->tree.count && !err; i++) {
		const struct window_name *w = &y->tree.windows[i].name;
		char path[PATH_MAX];
		struct profile *p;

		if (w->start_s >= y->times_from_s || w->start_s >= y->keep_fine_from_s)
			break;
		if (!may_have_times(w) || due_grain(y, w) || w->start_s < known_s)
			continue;
		/* All that begin at the same time: a sum and its first part. */
		if (left <= 0 && w->start_s >= *from_s)
			break;
		left--;
		*from_s = w->start_s + 1;
		tree_path(&y->tree, w, path, sizeof(path));
		err = window_read(path, &p, y->e);
		if (err == -EINVAL) { /* damaged: merging reports it */
			err = 0;
		} else if (!err) {
			if (p->ticks.count || p->waits.count) {
				err = coarsen_drop_times(p) ? error_no_memory(y->e) : 0;
				err = err ?: tree_write(&y->tree, p, w, true, y->e);
				dropped = true;
			}
			profile_free(p);
		}
	}
	return err ?: dropped ? rescan(y) : 0;
}

static bool is_too_large(const struct tidy *y)
{
	return y->limits->bytes && y->bytes + y->beside_bytes > y->limits->bytes;
}

static bool is_old(const struct tidy *y, const struct window_name *w)
{
	/* A sum goes with its first part. */
	return w->start_s + (w->sum ? 0 : w->grain_s) < y->old_before_s;
}

static bool is_too_old(const struct tidy *y)
{
	return y->tree.count > 1 && is_old(y, &y->tree.windows->name);
}

static bool is_too_full(const struct tidy *y)
{
	struct statvfs status;

	if (!y->limits->free_bytes || fstatvfs(y->tree.fd, &status))
		return false;
	return (uint64_t)status.f_bavail * status.f_frsize < y->limits->free_bytes;
}

/*
 * Returns the time from which ages count: now; or, while a clock that jumped ahead is not
 * confirmed, the end of the last window before. Each file counts for a minute, whatever its name
 * says.
 */
static uint64_t plausible_now(const struct tree *t, uint64_t now_s)
{
	uint64_t plausible_s = now_s, next_s = now_s, recorded_s = 0;

	for (size_t i = t->count; i > 0 && recorded_s < CONFIRMED_S; i--) {
		const struct window_name *w = &t->windows[i - 1].name;
		uint64_t end_s = w->start_s + w->grain_s;

		if (w->sum || w->trigger || w->start_s > now_s)
			continue;
		if (end_s + JUMP_S < next_s)
			plausible_s = end_s;
		recorded_s +=
			next_s - w->start_s < WINDOW_FINE_S ? next_s - w->start_s : WINDOW_FINE_S;
		next_s = w->start_s;
	}
	return plausible_s;
}

/*
 * True if most of what is recorded is over limits->days at once, and a gap that a clock leaves when
 * it jumps lies between that and now: the clock may be wrong, or the machine was off for long.
 * Reports it.
 */
static bool keep_most(const struct tidy *y)
{
	struct archive_dropped kept = { .reason = ARCHIVE_MOST_OLD, .path = y->tree.path };
	uint64_t old_s = 0, all_s = 0, next_s = y->now_s;
	bool jumped = false;

	for (size_t i = y->tree.count; i > 0; i--) {
		const struct window_name *w = &y->tree.windows[i - 1].name;
		uint64_t end_s = w->start_s + w->grain_s;

		if (w->sum || w->trigger || w->start_s > y->now_s)
			continue;
		jumped = jumped || end_s + JUMP_S < next_s;
		next_s = w->start_s;
		all_s += w->grain_s;
		if (!is_old(y, w))
			continue;
		if (!jumped)
			return false;
		old_s += w->grain_s;
		if (!kept.count++)
			kept.limit_ns = end_s * NS_PER_S;
		kept.first_ns = w->start_s * NS_PER_S;
		kept.bytes += y->tree.windows[i - 1].bytes;
	}
	if (old_s <= all_s / 2)
		return false;
	y->report(&kept, y->context);
	return true;
}

static int measure_beside(struct tidy *y)
{
	y->beside_bytes = 0;
	y->beside_end_s = UINT64_MAX;
	return y->beside ? y->beside->measure(y->beside->context, &y->beside_bytes,
					      &y->beside_end_s, y->e)
			 : 0;
}

/* Removes the oldest of what is beside the windows, if that is to go first. False: it is not. */
static bool drop_beside(struct tidy *y, enum archive_reason reason)
{
	const struct tree *t = &y->tree;
	const uint64_t bytes = y->beside_bytes, end_s = y->beside_end_s;

	if (end_s == UINT64_MAX || reason == ARCHIVE_OVER_DAYS ||
	    (reason == ARCHIVE_NO_SPACE && y->beside->other_disk) ||
	    (bytes <= y->limits->bytes / 2 && t->count > 1 &&
	     end_s > t->windows->name.start_s + t->windows->name.grain_s))
		return false;
	y->beside->drop_before(y->beside->context, end_s);
	/* What cannot be removed is not tried again and again. */
	return measure_beside(y) == 0 && y->beside_end_s != end_s;
}

/*
 * The oldest go first; but if room is needed, before them what a wrong clock has dated in the
 * future: it would never be the oldest, and all others would make room for it.
 */
static int drop_while(struct tidy *y, bool (*is_over)(const struct tidy *y),
		      enum archive_reason reason)
{
	struct archive_dropped dropped = { .reason = reason };
	struct tree *t = &y->tree;
	char day[WINDOW_DAY_SIZE];
	int err = 0;

	while (is_over(y)) {
		struct tree_window w;
		uint64_t first_ns, limit_ns, day_number;
		size_t i = 0;

		if (drop_beside(y, reason))
			continue;
		if (t->count <= 1)
			break;
		if (reason != ARCHIVE_OVER_DAYS &&
		    t->windows[t->count - 1].name.start_s > y->clock_s + WINDOW_HOUR_S)
			i = t->count - 1;
		w = t->windows[i];
		day_number = w.name.start_s / WINDOW_DAY_S;
		first_ns = w.name.start_s * NS_PER_S;
		limit_ns = first_ns + w.name.grain_s * NS_PER_S;
		err = tree_remove(t, &w.name, y->e);
		if (err)
			break;
		if (!w.name.sum) {
			if (!dropped.count++ || first_ns < dropped.first_ns)
				dropped.first_ns = first_ns;
			dropped.limit_ns = MAX(dropped.limit_ns, limit_ns);
		}
		dropped.bytes += w.bytes;
		y->bytes -= w.bytes;
		forget_window(t, i);
		/* The windows next to it are of other days. */
		if ((i == 0 || t->windows[i - 1].name.start_s / WINDOW_DAY_S != day_number) &&
		    (i == t->count || t->windows[i].name.start_s / WINDOW_DAY_S != day_number) &&
		    window_day_name(w.name.start_s, day))
			unlinkat(t->fd, day, AT_REMOVEDIR);
	}
	if (dropped.count || dropped.bytes)
		y->report(&dropped, y->context);
	return err;
}

int archive_tidy(const char *directory, const char *host, const struct archive_limits *limits,
		 const struct archive_beside *beside, uint64_t now_ns, uint64_t keep_fine_from_ns,
		 void (*report)(const struct archive_dropped *dropped, void *context),
		 void *context, struct archive_tidied *tidied, struct error *e)
{
	struct archive_dropped jump = { .reason = ARCHIVE_CLOCK_JUMPED };
	struct error later = { 0 };
	struct tidy y = {
		.limits = limits,
		.beside = beside,
		.clock_s = now_ns / NS_PER_S,
		.keep_fine_from_s = keep_fine_from_ns / NS_PER_S,
		.report = report,
		.context = context,
		.e = e,
	};
	int err = tree_open(&y.tree, directory, host, false, e), merged;

	err = err ?: tree_scan(&y.tree, 0, UINT64_MAX, false, e);
	/* Windows that a killed process has merged, but not removed. */
	for (size_t i = y.tree.count; i > 0 && !err; i--) {
		if (!y.tree.windows[i - 1].covered)
			continue;
		err = tree_remove(&y.tree, &y.tree.windows[i - 1].name, e);
		if (!err)
			forget_window(&y.tree, i - 1);
	}
	if (!err) {
		const uint64_t days = y.limits->days;
		uint64_t times_from_s = tidied->times_from_ns / NS_PER_S;

		y.now_s = plausible_now(&y.tree, now_ns / NS_PER_S);
		jump.first_ns = y.now_s * NS_PER_S;
		jump.limit_ns = now_ns;
		if (y.now_s != now_ns / NS_PER_S)
			report(&jump, context);
		y.times_from_s = find_times_start(&y);
		merged = merge_windows(&y) ?: drop_times(&y, &times_from_s);
		tidied->times_from_ns = times_from_s * NS_PER_S;
		y.e = merged ? &later : e;
		if (days && days < y.now_s / WINDOW_DAY_S)
			y.old_before_s = y.now_s - days * WINDOW_DAY_S;
		if (keep_most(&y))
			y.old_before_s = 0;
		y.bytes = 0;
		for (size_t i = 0; i < y.tree.count; i++)
			y.bytes += y.tree.windows[i].bytes;
		err = measure_beside(&y);
		err = err ?: drop_while(&y, is_too_large, ARCHIVE_OVER_BYTES);
		err = err ?: drop_while(&y, is_too_old, ARCHIVE_OVER_DAYS);
		err = err ?: drop_while(&y, is_too_full, ARCHIVE_NO_SPACE);
		err = merged ?: err;
	}
	tidied->old_before_ns = y.old_before_s * NS_PER_S;
	tree_close(&y.tree);
	return err;
}
