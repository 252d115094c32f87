// SPDX-License-Identifier: GPL-2.0-only
#include "archive/read.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/tree.h"
#include "archive/window_sum.h"
#include "profile/merge.h"
#include "util/clock.h"
#include "util/sum.h"

/* Bound: size. */
#define MOST_THREADS 16

/*
 * Rows of time at most, and how long they may be.
 * Bound: caller: rows of time of one question; then: rows are longer.
 */
#define MOST_ROWS 200
static const uint64_t steps_s[] = { 60, 300, 600, 1800, 3600, 6 * 3600, 86400 };

struct reading {
	const struct archive_query *query;
	const struct archive_window *windows;
	size_t count;
	uint64_t step_s;
	struct archive_host *hosts;
	uint32_t *host_numbers; /* of each window */

	/* Under the lock: */
	pthread_mutex_t lock;
	struct profile *notes; /* has the warnings about skipped windows */
	bool has_labels;       /* a window has all labels that are wanted */
	const char *lacking;
	size_t skipped;
	int err; /* the first error */
	struct error *e;
};

/*
 * One thread's part of the sum: a window of every `step`, so that the same windows are summed up in
 * the same order each time, whichever thread is faster.
 */
struct part {
	struct reading *r;
	size_t first, step;
	struct profile *sum;
	struct merge_cache cache;
	pthread_t thread;
};

/* Gives samples the tags for host and time that the query asks for. Returns 0 or -ENOMEM. */
static int tag_samples(const struct reading *r, const struct archive_window *w, struct profile *p,
		       bool time_tag)
{
	uint64_t time_s = p->time_ns / NS_PER_S;
	size_t count = p->label_count, tag_count = 0;
	struct profile_tag tags[2];
	uint32_t *map;
	int err = 0;

	if (r->query->host_tag)
		tags[tag_count++] = (struct profile_tag){ tag_kinds[TAG_HOST].key, w->host, 0, "" };
	if (time_tag)
		tags[tag_count++] = (struct profile_tag){
			.key = tag_kinds[TAG_TIME].key,
			.number = time_s - time_s % r->step_s,
			.unit = "seconds",
		};
	if (!tag_count)
		return 0;
	map = calloc(count + 1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		err = profile_tag_labels(p, i, tags, tag_count, &map[i]);
	if (!err)
		profile_relabel(p, map);
	free(map);
	return err;
}

/* Which ticks of a window are asked for. */
struct window_choice {
	struct tick_choice ticks;
	const struct archive_query *q;
	bool cut; /* some are not */
};

static void choose_ticks(struct tick_choice *ticks, const struct time_interval *recorded)
{
	struct window_choice *c = (struct window_choice *)ticks; /* its first member */
	const struct archive_query *q = c->q;

	c->cut = q->rest || recorded->since_ns < q->since_ns || recorded->until_ns > q->until_ns;
	if (c->cut || q->times)
		ticks->keep = (struct time_interval){ q->since_ns, q->until_ns };
	ticks->outside = q->rest;
}

/*
 * Removes the ticks of a window that were not asked for. Returns true if that cannot be done,
 * because it has no times. *err: 0 or -ENOMEM.
 */
static bool is_uncut(const struct window_choice *c, struct profile *p, int *err)
{
	const struct archive_query *q = c->q;
	const struct time_interval cut = { q->since_ns, q->until_ns };
	uint64_t end_ns = p->time_ns;

	*err = 0;
	if (c->ticks.count) {
		if (c->cut)
			*err = profile_filter_times(p, &cut, q->rest);
		return false;
	}
	if (q->rest)
		p->sample_count = p->wall_count = p->duration_ns = 0;
	/* Windows that begin and end with the interval do so within a second or two. */
	add_u64(&end_ns, p->duration_ns);
	return p->sample_count && (p->time_ns + COVERAGE_SLACK_NS < cut.since_ns ||
				   end_ns > cut.until_ns + COVERAGE_SLACK_NS);
}

static int add_window(struct part *part, size_t number, struct error *e)
{
	struct reading *r = part->r;
	const struct archive_window *w = &r->windows[number];
	struct archive_host *host = &r->hosts[r->host_numbers[number]];
	const char *lacking;
	const struct window_choice none = { .ticks.choose = choose_ticks, .q = r->query };
	struct window_choice choice = none;
	bool uncut, timed;
	struct profile *p;
	int err = window_read_part(w->path, &choice.ticks, r->query->no_code, &p, e);

	/* The delay of a part is a share of each stack's. */
	if (!err && choice.cut && r->query->no_code) {
		profile_free(p);
		choice = none;
		err = window_read_part(w->path, &choice.ticks, false, &p, e);
	}
	if (err == -ENOENT) /* dropped meanwhile */
		return 0;
	if (err == -EINVAL) {
		pthread_mutex_lock(&r->lock);
		r->skipped++;
		err = profile_warn(r->notes, "not read: %s", e->what);
		pthread_mutex_unlock(&r->lock);
		return err ? error_no_memory(e) : 0;
	}
	if (err)
		return err;
	p->warning_count = 0;
	timed = choice.ticks.count > 0;
	uncut = is_uncut(&choice, p, &err);
	if (!r->query->times)
		p->ticks.count = 0;
	for (size_t i = 0; r->query->no_code && i < p->sample_count; i++)
		p->samples[i].depth = 0;
	err = err ?: profile_filter_labels(p, &r->query->labels, &lacking);
	if (!err) {
		pthread_mutex_lock(&r->lock);
		/* Of a window that only seemed to lie in the interval, nothing is left. */
		err = timed && !p->duration_ns ? 0 : coverage_add(&host->coverage, p);
		host->uncut += uncut;
		if (!timed && w->grain_s > host->untimed_s)
			host->untimed_s = w->grain_s;
		if (!w->sum && w->grain_s > host->grain_s)
			host->grain_s = w->grain_s;
		r->has_labels |= !lacking;
		r->lacking = lacking;
		pthread_mutex_unlock(&r->lock);
	}
	/* Times of ticks are better than that of the window. */
	err = err ?: tag_samples(r, w, p, r->query->time_tag && !(timed && r->query->times));
	err = err ? error_no_memory(e) : profile_merge(part->sum, p, &part->cache, e);
	profile_free(p);
	return err;
}

static void *sum_part(void *context)
{
	struct part *part = context;
	struct reading *r = part->r;
	bool failed = false;
	struct error e;

	for (size_t i = part->first; i < r->count && !failed; i += part->step) {
		int err = add_window(part, i, &e);

		pthread_mutex_lock(&r->lock);
		if (err && !r->err) {
			*r->e = e;
			r->err = err;
		}
		failed = r->err;
		pthread_mutex_unlock(&r->lock);
	}
	return NULL;
}

/* Reads by several threads, of which this is the first. */
static int read_all(struct reading *r, struct profile **p)
{
	cpu_set_t set;
	size_t count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set), started = 1;
	struct part *parts;
	int err = 0;

	count = MIN(count, MOST_THREADS);
	count = MIN(count, r->count);
	parts = calloc(count, sizeof(*parts));
	if (!parts)
		return error_no_memory(r->e);
	for (size_t i = 0; i < count && !err; i++) {
		parts[i].r = r;
		parts[i].first = i;
		parts[i].step = count;
		parts[i].sum = profile_new();
		if (!parts[i].sum)
			err = error_no_memory(r->e);
	}
	if (err)
		goto out;
	while (started < count &&
	       pthread_create(&parts[started].thread, NULL, sum_part, &parts[started]) == 0)
		started++;
	sum_part(&parts[0]);
	for (size_t i = started; i < count; i++) /* it takes longer */
		sum_part(&parts[i]);
	for (size_t i = 1; i < started; i++)
		pthread_join(parts[i].thread, NULL);
	err = r->err;
	for (size_t i = 1; i < count && !err; i++) {
		parts[i].sum->warning_count = 0;
		if (parts[i].sum->value_type_count)
			err = profile_merge(parts[0].sum, parts[i].sum, &parts[0].cache, r->e);
	}
out:
	for (size_t i = 0; i < count; i++) {
		merge_cache_free(&parts[i].cache);
		if (i || err)
			profile_free(parts[i].sum);
	}
	if (!err)
		*p = parts[0].sum;
	free(parts);
	return err;
}

static bool is_wanted_host(const struct archive_query *q, const char *host)
{
	for (size_t i = 0; i < q->host_count; i++)
		if (fnmatch(q->hosts[i], host, 0) == 0)
			return true;
	return !q->host_count;
}

/* Windows are ordered by host. */
static int find_hosts(struct reading *r, struct archive_result *result)
{
	r->host_numbers = calloc(r->count, sizeof(*r->host_numbers));
	result->hosts = calloc(r->count, sizeof(*result->hosts));
	if (!r->host_numbers || !result->hosts)
		return error_no_memory(r->e);
	for (size_t i = 0; i < r->count; i++) {
		if (i == 0 || strcmp(r->windows[i].host, r->windows[i - 1].host) != 0) {
			result->hosts[result->host_count].name = strdup(r->windows[i].host);
			if (!result->hosts[result->host_count++].name)
				return error_no_memory(r->e);
		}
		r->host_numbers[i] = result->host_count - 1;
	}
	r->hosts = result->hosts;
	return 0;
}

/* Sets e to the reason for which there is no window, and to the times that there are. */
static int explain_no_window(const struct archive_query *q, struct error *e)
{
	struct archive_window *all;
	struct error later;
	size_t count;
	uint64_t first = UINT64_MAX, last = 0;
	bool host = false;

	error_set(e, 0, "%s has no windows of this time", q->directory);
	if (archive_list(q->directory, NULL, 0, UINT64_MAX, &all, &count, &later))
		return -ENOENT;
	for (size_t i = 0; i < count; i++) {
		if (!is_wanted_host(q, all[i].host))
			continue;
		host = true;
		first = MIN(all[i].start_ns, first);
		last = MAX(all[i].limit_ns, last);
	}
	if (!count) {
		error_set(e, 0, "%s has no windows", q->directory);
		error_hint(e, "profild --continuous writes them");
	} else if (!host) {
		error_set(e, 0, "%s has no host \"%s\"", q->directory, q->hosts[0]);
		error_hint(e, "the first of its hosts is %s", all[0].host);
	} else {
		error_hint(e, "it has windows from %s to %s",
			   time_text(first / NS_PER_S, false, "%Y-%m-%d %H:%M %Z").text,
			   time_text(last / NS_PER_S, false, "%Y-%m-%d %H:%M %Z").text);
	}
	archive_list_free(all, count);
	return -ENOENT;
}

static int read_windows(struct reading *r, struct archive_result *result)
{
	int err = find_hosts(r, result);

	result->step_s = r->step_s;
	r->notes = profile_new();
	pthread_mutex_init(&r->lock, NULL);
	if (!err && !r->notes)
		err = error_no_memory(r->e);
	err = err ?: read_all(r, &result->p);
	if (!err && !result->p->value_type_count) {
		err = error_set(r->e, 0, "none of the %zu windows can be read", r->count);
		if (r->notes->warning_count)
			error_hint(r->e, "%s", r->notes->warnings[0]);
	}
	for (size_t i = 0; !err && i < r->notes->warning_count; i++)
		if (profile_warn(result->p, "%s", r->notes->warnings[i]))
			err = error_no_memory(r->e);
	if (!err)
		result->p->salvaged |= r->skipped > 0;
	for (size_t i = 0; i < result->host_count; i++)
		coverage_join(&result->hosts[i].coverage);
	result->lacking = r->has_labels ? NULL : r->lacking;
	pthread_mutex_destroy(&r->lock);
	profile_free(r->notes);
	free(r->host_numbers);
	return err;
}

/* Lists the windows of the hosts that are wanted, with sums up to this grain. */
static int list_windows(const struct archive_query *q, unsigned int most_grain_s,
			struct archive_window **windows, size_t *count, struct error *e)
{
	size_t kept = 0;
	int err = archive_list_sums(q->directory, NULL, q->since_ns, q->until_ns, most_grain_s,
				    windows, count, e);

	if (err)
		return err;
	for (size_t i = 0; i < *count; i++) {
		if (is_wanted_host(q, (*windows)[i].host))
			(*windows)[kept++] = (*windows)[i];
		else
			free((*windows)[i].path);
	}
	*count = kept;
	return 0;
}

int archive_read(const struct archive_query *query, struct archive_result *result, struct error *e)
{
	struct archive_window *windows = NULL;
	struct reading r = { .query = query, .e = e };
	unsigned int most_grain_s = query->time_tag || query->fine ? 0 : WINDOW_DAY_S;
	int err = list_windows(query, most_grain_s, &windows, &r.count, e);

	*result = (struct archive_result){ 0 };
	if (!err && query->time_tag && r.count) {
		uint64_t first = UINT64_MAX, last = 0, coarsest = 0, span;
		size_t i = 0;

		r.windows = windows;
		/*
		 * The step: the shortest that no window exceeds, and that makes MOST_ROWS at most.
		 */
		for (size_t j = 0; j < r.count; j++) {
			const struct archive_window *w = &r.windows[j];

			first = MIN(w->start_ns, first);
			last = MAX(w->limit_ns, last);
			coarsest = MAX(w->grain_s, coarsest);
		}
		span = (last - first) / NS_PER_S;
		while (i + 1 < sizeof(steps_s) / sizeof(*steps_s) &&
		       (steps_s[i] < coarsest || span / steps_s[i] > MOST_ROWS))
			i++;
		r.step_s = steps_s[i];
		if (query->step_ns)
			r.step_s = query->step_ns / NS_PER_S ?: 1;
		/* With TAG_TIME, sums of a step at most, and of which none lies in two. */
		most_grain_s = r.step_s;
		if (query->step_ns && query->step_ns % (WINDOW_10MIN_S * NS_PER_S))
			most_grain_s = 0;
		else if (query->step_ns && query->step_ns % (WINDOW_HOUR_S * NS_PER_S))
			most_grain_s = WINDOW_10MIN_S;
		if (!query->fine) {
			archive_list_free(windows, r.count);
			err = list_windows(query, most_grain_s, &windows, &r.count, e);
		}
	}
	if (err)
		return err;
	r.windows = windows;
	err = r.count ? read_windows(&r, result) : explain_no_window(query, e);
	archive_list_free(windows, r.count);
	if (err) {
		profile_free(result->p);
		result->p = NULL;
	}
	return err;
}

void archive_result_free(struct archive_result *result)
{
	for (size_t i = 0; i < result->host_count; i++) {
		free(result->hosts[i].name);
		coverage_free(&result->hosts[i].coverage);
	}
	free(result->hosts);
	*result = (struct archive_result){ 0 };
}

static int is_day(int fd, const char *name, void *context)
{
	uint64_t day_s;

	(void)fd;
	(void)context;
	return window_parse_day(name, &day_s) ? -EEXIST : 0;
}

static bool has_days(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && tree_visit(fd, is_day, NULL) == -EEXIST;
}

static int is_host(int fd, const char *name, void *context)
{
	(void)context;
	return *name != '.' && has_days(fd, name) ? -EEXIST : 0;
}

bool archive_find(const char *path, char **directory, char **host)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *slash;

	*directory = *host = NULL;
	if (fd < 0)
		return false;
	if (!has_days(fd, ".")) {
		if (tree_visit(fd, is_host, NULL) != -EEXIST)
			return false;
		*directory = strdup(path);
		return *directory;
	}
	close(fd);
	*directory = realpath(path, NULL);
	slash = *directory ? strrchr(*directory, '/') : NULL;
	if (!slash || slash == *directory) {
		free(*directory);
		*directory = NULL;
		return false;
	}
	*slash = '\0';
	*host = strdup(slash + 1);
	return *host;
}
