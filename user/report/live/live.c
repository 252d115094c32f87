// SPDX-License-Identifier: GPL-2.0-only
#include "report/live/live.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "report/text.h"
#include "symbol/symbol.h"
#include "util/clock.h"
#include "util/sum.h"

/* A sample that has faded to this part of a tick is dropped. */
#define FADED (1.0 / 1024)

/* Threads without samples have a row if they were runnable for this part of the time. */
#define WAIT_LEAST 0.0005

/*
 * Looking up names may take this share of a CPU, more with source lines; at the start, when many
 * are new, half a second. Unused time is saved up to NAMING_MOST_NS.
 * Bound: as NAMING_FIRST_NS.
 */
#define NAMING_SHARE 0.004
#define LINES_SHARE  0.05
/*
 * Bound: users: CPU time for names in `top`: at the start, and saved up; then: further functions
 * have names later; again: as time goes on; share: none; seen: as addresses.
 */
#define NAMING_FIRST_NS ((int64_t)NS_PER_S / 2)
#define NAMING_MOST_NS	((int64_t)(100 * NS_PER_MS))

const char *const live_sort_names[] = { "self", "total", "name", "image", "wait", "delay", NULL };

int live_init(struct live *l, uint64_t half_life_ns)
{
	*l = (struct live){
		.p = profile_new(),
		.value = PROFILE_CPU,
		.half_life_ns = half_life_ns,
		.view = row_views,
		.naming_ns = NAMING_FIRST_NS,
		.named_at_ns = now_ns(),
		.cache = symbol_cache_new(),
	};
	return l->p && l->cache ? 0 : -ENOMEM;
}

void live_free(struct live *l)
{
	live_match(l, NULL, NULL);
	rows_free(&l->rows);
	profile_free(l->p);
	symbol_cache_free(l->cache);
	while (live_leave(l))
		;
	free(l->zooms);
	free(l->labels);
	free(l->weights);
	free(l->shown);
	*l = (struct live){ 0 };
}

void live_fade(struct live *l, uint64_t ns, uint64_t machine_ns)
{
	double factor = l->half_life_ns ? exp2(-(double)ns / l->half_life_ns) : 0;
	size_t width = l->p->value_type_count, delay = profile_find_sum(l->p, PROFILE_SUM_DELAY);
	int64_t least = profile_tick_ns(l->p) * FADED;

	for (size_t i = 0; i < l->p->sample_count; i++) {
		int64_t *values = &l->p->values[i * width];

		values[PROFILE_CPU] *= factor;
		if (values[PROFILE_CPU] <= least)
			values[PROFILE_CPU] = 0;
		if (delay < width)
			values[delay] *= values[PROFILE_CPU] ? factor : 0;
	}
	l->elapsed_ns = l->elapsed_ns * factor + ns;
	l->machine_ns = l->machine_ns * factor + machine_ns;
	l->selected = false;
	l->p->wall_count = 0;
	index_free(&l->p->wall_index);
	l->wall_ns = ns;
}

int live_name(struct live *l, struct error *e)
{
	struct symbol_options o = { .lines = l->lines, .cache = l->cache };
	uint64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID), now = now_ns();
	bool *wanted;
	int err;

	if (l->naming_ns < NAMING_MOST_NS)
		l->naming_ns += (now - l->named_at_ns) * (l->lines ? LINES_SHARE : NAMING_SHARE);
	l->named_at_ns = now;
	if (l->tried == l->p->location_count || l->naming_ns <= 0)
		return 0;
	wanted = calloc(l->p->location_count, sizeof(*wanted));
	if (!wanted)
		return error_no_memory(e);
	for (; l->tried < l->p->location_count; l->tried++)
		wanted[l->tried] = true;
	o.wanted = wanted;
	err = symbol_resolve(l->p, &o, e);
	free(wanted);
	l->naming_ns -= clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
	return err;
}

const char *live_unnamed(const struct live *l, const struct row *row)
{
	if (!(l->view->fields & ROW_FUNCTION) ||
	    (row->key->function && !profile_is_pc_name(row->key->function, row->key->image)))
		return NULL;
	for (size_t i = 0; i < l->p->image_count; i++)
		if (l->p->images[i].unnamed && strcmp(l->p->images[i].path, row->key->image) == 0)
			return l->p->images[i].unnamed;
	return NULL;
}

static const char *name_of(const struct row *row)
{
	if (row->name)
		return row->name;
	return row->comm[0] ? row->comm : row->key->image ?: "";
}

static int compare_shown(const void *one, const void *other, void *context)
{
	const struct live *l = context;
	const struct row *a = &l->rows.rows[*(const size_t *)one];
	const struct row *b = &l->rows.rows[*(const size_t *)other];
	int order = 0;

	if (l->sort == LIVE_BY_DELAY && l->rows.delay)
		order = compare_u64(magnitude(b->counts[l->rows.delay].self),
				    magnitude(a->counts[l->rows.delay].self));
	else if (l->sort == LIVE_BY_TOTAL)
		order = compare_u64(magnitude(b->counts->total), magnitude(a->counts->total));
	else if (l->sort == LIVE_BY_WAIT && a->wall)
		order = compare_u64(b->wall->runnable_ns, a->wall->runnable_ns);
	else if (l->sort == LIVE_BY_NAME)
		order = strcmp(name_of(a), name_of(b));
	else if (l->sort == LIVE_BY_IMAGE && a->key->image)
		order = strcmp(text_basename(a->key->image), text_basename(b->key->image));
	else if (l->sort == LIVE_BY_IMAGE)
		order = callgraph_key_compare(a->key, b->key);
	return order ?: rows_compare(a, b);
}

const struct row *live_row(const struct live *l)
{
	return l->cursor < l->shown_count ? &l->rows.rows[l->shown[l->cursor]] : NULL;
}

/* Lists the rows that match the pattern; the cursor stays on `chosen`, which is NULL at the top. */
static int list_rows(struct live *l, const struct callgraph_key *chosen)
{
	size_t *shown = reallocarray(l->shown, l->rows.count + 1, sizeof(*shown));

	l->shown_count = 0;
	if (!shown)
		return -ENOMEM;
	l->shown = shown;
	for (size_t i = 0; i < l->rows.count; i++) {
		const struct row *r = &l->rows.rows[i];

		if (!r->counts->self && !r->counts->total && r->wall &&
		    r->wall->runnable_ns < l->wall_ns * WAIT_LEAST)
			continue;
		if (!l->pattern || live_matches(&l->regex, r->name) ||
		    live_matches(&l->regex, r->comm) || live_matches(&l->regex, r->key->image))
			shown[l->shown_count++] = i;
	}
	if (l->sort != LIVE_BY_SELF)
		qsort_r(shown, l->shown_count, sizeof(*shown), compare_shown, l);
	l->chosen = NULL;
	for (size_t i = 0; chosen && i < l->shown_count; i++)
		if (callgraph_key_compare(l->rows.rows[shown[i]].key, chosen) == 0) {
			l->cursor = i;
			return 0;
		}
	if (l->cursor >= l->shown_count)
		l->cursor = l->shown_count ? l->shown_count - 1 : 0;
	return 0;
}

/* The key of the row at the cursor; at the top that stays there, whatever row is first. */
static const struct callgraph_key *chosen_key(const struct live *l, struct callgraph_key *copy)
{
	const struct row *row = l->cursor ? live_row(l) : NULL;

	if (row)
		*copy = *row->key;
	return row ? copy : l->chosen;
}

int live_list(struct live *l)
{
	struct callgraph_key copy;

	return list_rows(l, chosen_key(l, &copy));
}

int live_collect(struct live *l)
{
	int err = live_select(l);
	const struct rows_options o = {
		.view = l->view,
		.image = l->image,
		.labels = l->labels,
		.weights = l->weights,
		.filtered = l->filtered,
		.walls = !l->partial,
	};
	size_t delay = profile_find_sum(l->p, PROFILE_SUM_DELAY), width = l->p->value_type_count;
	/* Where only some samples are shown, their delay is unknown. */
	bool has_delay = delay < width && delay != l->value && !l->weights;
	struct callgraph_key copy;
	const struct callgraph_key *chosen = chosen_key(l, &copy);

	rows_free(&l->rows);
	err = err ?: rows_begin(&l->rows, &o, has_delay ? 2 : 1);
	if (!err && width)
		err = rows_add(&l->rows, l->p, &o, l->value, 0);
	if (!err && has_delay) {
		l->rows.delay = 1;
		err = rows_add(&l->rows, l->p, &o, delay, 1);
	}
	err = err ?: rows_finish(&l->rows);
	if (err)
		rows_free(&l->rows);
	l->sum = l->kernel = 0;
	for (size_t i = 0; i < l->p->sample_count; i++) {
		uint64_t weight = magnitude(l->p->values[i * width + l->value]);
		uint32_t labels = l->p->samples[i].labels;

		add_u64(&l->sum, weight);
		if (labels < l->p->label_count && l->p->labels[labels].kernel)
			add_u64(&l->kernel, weight);
	}
	return list_rows(l, chosen) ?: err;
}

int live_match(struct live *l, const char *pattern, struct error *e)
{
	regex_t regex;
	char *copy = NULL;
	int err;

	if (pattern && *pattern) {
		err = live_compile(&regex, pattern, e);
		if (err)
			return err;
		copy = strdup(pattern);
		if (!copy) {
			regfree(&regex);
			return error_no_memory(e);
		}
	}
	if (l->pattern)
		regfree(&l->regex);
	free(l->pattern);
	l->pattern = copy;
	if (copy)
		l->regex = regex;
	return 0;
}

void live_show(struct live *l, const struct row_view *view)
{
	l->view = view;
	l->cursor = 0;
	if (l->lines || !(view->fields & ROW_SOURCE))
		return;
	l->lines = true;
	l->tried = 0;
}
