// SPDX-License-Identifier: GPL-2.0-only
#include "report/live/live.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/filter.h"
#include "profile/pc_name.h"
#include "profile/tags.h"
#include "record/wait_names.h"
#include "report/text.h"
#include "symbol/symbol.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/sum.h"

/*
 * Bytes of a name that are matched: of malicious ones, which may have megabytes, the beginning.
 * Bound: files: bytes of a name that are matched; then: the rest is not matched; seen: not seen.
 */
#define MATCHED_MAX 4096

void live_path_free(struct live_path *path)
{
	for (size_t i = 0; i < path->depth; i++) {
		free(path->frames[i].name);
		free(path->frames[i].image);
	}
	free(path->frames);
	free(path->function);
	free(path->image);
	*path = (struct live_path){ 0 };
}

static void free_zoom(struct live_zoom *zoom)
{
	free(zoom->text);
	free((char *)zoom->key.image);
	free((char *)zoom->key.comm);
	live_path_free(&zoom->path);
	if (zoom->has_regex)
		regfree(&zoom->regex);
	*zoom = (struct live_zoom){ 0 };
}

/* Adds a zoom, which it takes over in any case. text: what the header says; NULL: no memory. */
static int add_zoom(struct live *l, struct live_zoom *zoom, char *text, struct error *e)
{
	zoom->text = text;
	zoom->from = l->view;
	if (!text || array_add(l->zooms, l->zoom_count, l->zoom_room, *zoom)) {
		free_zoom(zoom);
		return error_no_memory(e);
	}
	l->selected = false;
	return 0;
}

static char *row_text(const struct live *l, const struct row *row)
{
	const struct row_view *view = l->view;
	const struct tag_kind *tag = row_view_tag(view);
	const char *comm = row->comm[0] ? row->comm : row_unknown;
	char *text = NULL;
	int n;

	if (tag && row->key->number)
		n = asprintf(&text, "%s %" PRIu64, tag->key, row->key->number - 1);
	else if (tag)
		n = asprintf(&text, "%s %s", tag->key,
			     *row->key->comm ? row->key->comm : tag->missing ?: row_unknown);
	else if (view->fields & ROW_THREAD)
		n = asprintf(&text, "thread %" PRIu32, row->key->tid);
	else if (view->fields & ROW_PROCESS)
		n = asprintf(&text, "process %" PRIu32, row->key->pid);
	else if (view->fields & ROW_COMM)
		n = asprintf(&text, "threads named %s", comm);
	else
		n = asprintf(&text, "in %s", text_basename(row->key->image));
	return n < 0 ? NULL : text;
}

int live_enter(struct live *l, const struct row *row, struct error *e)
{
	const struct callgraph_key *key = row->key;
	struct live_zoom zoom = { .kind = LIVE_ROW, .key = *key };
	int err;

	zoom.key.function = zoom.key.source = NULL;
	zoom.key.image = key->image ? strdup(key->image) : NULL;
	zoom.key.comm = key->comm ? strdup(key->comm) : NULL;
	if ((key->image && !zoom.key.image) || (key->comm && !zoom.key.comm)) {
		free_zoom(&zoom);
		return error_no_memory(e);
	}
	err = add_zoom(l, &zoom, row_text(l, row), e);
	if (!err)
		live_show(l, row_views);
	return err;
}

int live_enter_path(struct live *l, struct live_path *path, const char *text, struct error *e)
{
	struct live_zoom zoom = { .kind = LIVE_CALLS, .path = *path };

	*path = (struct live_path){ 0 };
	return add_zoom(l, &zoom, strdup(text), e);
}

int live_enter_stack(struct live *l, const char *pattern, struct error *e)
{
	struct live_zoom zoom = { .kind = LIVE_STACK };
	int err = live_compile(&zoom.regex, pattern, e);
	char *text;

	if (err)
		return err;
	zoom.has_regex = true;
	return add_zoom(l, &zoom, asprintf(&text, "stacks with %s", pattern) < 0 ? NULL : text, e);
}

int live_enter_time(struct live *l, const struct time_interval *interval, const char *text,
		    struct error *e)
{
	struct live_zoom zoom = { .kind = LIVE_TIME, .interval = *interval };

	return add_zoom(l, &zoom, strdup(text), e);
}

int live_enter_query(struct live *l, const char *pattern, struct error *e)
{
	struct live_zoom zoom = { .kind = LIVE_QUERY, .pattern = pattern };
	char *text;

	return add_zoom(l, &zoom, asprintf(&text, "query %s", pattern) < 0 ? NULL : text, e);
}

int live_enter_states(struct live *l, const struct profile_filter *filter, struct error *e)
{
	struct live_zoom zoom = { .kind = LIVE_STATE, .filter = filter };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; i < THREAD_STATES && out; i++)
		if (filter->states & 1U << i)
			fprintf(out, "%s ", thread_state_names[i]);
	if (out)
		fprintf(out, "time%s%s%s", filter->reason ? " of waits: " : "",
			filter->reason ?: "", filter->hide_idle ? ", not idle" : "");
	if (out && fclose(out)) {
		free(text);
		text = NULL;
	}
	return add_zoom(l, &zoom, text, e);
}

bool live_leave(struct live *l)
{
	struct live_zoom *last = l->zoom_count ? &l->zooms[l->zoom_count - 1] : NULL;

	l->chosen = NULL;
	free_zoom(&l->left);
	if (!last)
		return false;
	live_show(l, last->from);
	l->left = *last;
	if (last->kind == LIVE_ROW)
		l->chosen = &l->left.key;
	l->zoom_count--;
	l->selected = false;
	return true;
}

int live_compile(regex_t *regex, const char *pattern, struct error *e)
{
	char why[128];
	int code = regcomp(regex, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);

	if (!code)
		return 0;
	regerror(code, regex, why, sizeof(why));
	return error_set_kind(e, ERROR_USAGE, 0, "\"%s\": %s", pattern, why);
}

bool live_matches(const regex_t *regex, const char *text)
{
	regmatch_t part = { 0 };

	if (!text)
		return false;
	part.rm_eo = (regoff_t)strnlen(text, MATCHED_MAX);
	return regexec(regex, text, 1, &part, REG_STARTEND) == 0;
}

const char *live_value(const struct live *l)
{
	return l->value < l->p->value_type_count ? l->p->value_types[l->value].type : NULL;
}

/* Keeps those of a row, or of queries. */
static int keep_labels(struct live *l, const struct live_zoom *zoom)
{
	const struct profile_label_filter filter = { .tags[TAG_QUERY] = zoom->pattern };
	const struct profile *p = l->p;
	bool *labels;

	if (zoom->key.image)
		l->image = zoom->key.image;
	if (!zoom->pattern && !(zoom->from->fields & (ROW_COMM | ROW_TAGS)))
		return 0;
	labels = calloc(p->label_count + 1, sizeof(*labels));
	if (!labels)
		return -ENOMEM;
	if (zoom->pattern)
		profile_match_labels(p, &filter, labels);
	else
		rows_match_labels(p, zoom->from, &zoom->key, labels);
	for (size_t i = 0; i < p->sample_count; i++) {
		uint32_t id = p->samples[i].labels;

		if (!labels[id < p->label_count ? id : p->label_count])
			l->weights[i] = 0;
	}
	for (size_t i = 0; l->labels && i <= p->label_count; i++)
		labels[i] &= l->labels[i];
	free(l->labels);
	l->labels = labels;
	return 0;
}

/* Keeps the stacks that pass through a node, which is looked up by its name. */
static int keep_calls(struct live *l, const struct live_path *path)
{
	const struct call_tree_options o = {
		.function = path->function,
		.image = path->image,
		.inverted = path->inverted,
		.value = live_value(l),
		.weights = l->weights,
	};
	struct call_tree_builder *b;
	struct call_tree tree;
	uint32_t node = 0;
	int err = call_tree_begin(&tree, &b, l->p, &o);

	for (size_t i = 0; i < path->depth && node != CALL_TREE_NONE && !err; i++) {
		err = call_tree_expand(b, node);
		if (!err)
			node = call_tree_child(&tree, node, path->frames[i].name,
					       path->frames[i].image);
	}
	if (!err && node != CALL_TREE_NONE)
		call_tree_weights(b, node, l->weights);
	else if (!err)
		memset(l->weights, 0, l->p->sample_count * sizeof(*l->weights));
	call_tree_builder_free(b);
	call_tree_free(&tree);
	return err;
}

static int keep_stacks(struct live *l, const regex_t *regex)
{
	const struct profile *p = l->p;
	bool *functions = calloc(p->function_count + 1, sizeof(*functions));
	bool *locations = calloc(p->location_count + 1, sizeof(*locations));
	int err = functions && locations ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->function_count && !err; i++)
		functions[i] = live_matches(regex, p->functions[i].name);
	for (uint32_t i = 0; i < p->location_count && !err; i++) {
		const struct profile_location *location = &p->locations[i];

		for (uint32_t j = 0; j < location->line_count; j++)
			locations[i] |= functions[p->lines[location->first_line + j].function];
		if (!location->line_count)
			locations[i] = live_matches(regex, row_image_path(p, i));
	}
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *s = &p->samples[i];
		bool found = false;

		for (uint32_t j = 0; j < s->depth && !found && l->weights[i]; j++)
			found = locations[p->frames[s->first_frame + j]];
		if (!found)
			l->weights[i] = 0;
	}
	free(functions);
	free(locations);
	return err;
}

/*
 * Keeps what samples count of an interval: their ticks in it, or all where the window of an archive
 * that they are of begins in it; of waits the part that lies in it.
 */
static int keep_time(struct live *l, const struct time_interval *interval)
{
	const struct profile *p = l->p;
	size_t width = p->value_type_count;
	struct part {
		uint64_t inside, timed, waited_ns;
	} *parts = calloc(p->sample_count + 1, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < p->ticks.count; i++) {
		struct part *part = &parts[p->ticks.numbers[i]];

		part->timed++;
		part->inside += p->ticks.times[i] >= interval->since_ns &&
				p->ticks.times[i] < interval->until_ns;
	}
	for (size_t i = 0; i < p->waits.count; i++) {
		const struct timed_wait *wait = &p->waits.waits[i];
		uint64_t since = wait->since_ns, until = since + wait->length_ns;

		since = MAX(since, interval->since_ns);
		until = MIN(until, interval->until_ns);
		if (since < until)
			add_u64(&parts[wait->sample].waited_ns, until - since);
	}
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_tag *tag = NULL;
		struct part *part = &parts[i];
		uint64_t ticks = magnitude(p->values[i * width + PROFILE_SAMPLES]);
		uint32_t labels = p->samples[i].labels;
		bool wall = profile_sum(p, l->value) == PROFILE_SUM_WALL;

		if (labels < p->label_count)
			tag = profile_find_tag(&p->labels[labels], tag_kinds[TAG_TIME].key);
		if (tag && !tag->text && tag->number * NS_PER_S >= interval->since_ns &&
		    tag->number * NS_PER_S < interval->until_ns && ticks > part->timed)
			part->inside += ticks - part->timed;
		if (wall && part->waited_ns)
			l->weights[i] = l->weights[i] ? (int64_t)part->waited_ns : 0;
		else
			l->weights[i] =
				ticks ? (int64_t)((double)l->weights[i] * part->inside / ticks) : 0;
	}
	free(parts);
	return 0;
}

int live_select(struct live *l)
{
	const struct profile *p = l->p;
	int err = 0;

	if (l->selected)
		return 0;
	free(l->labels);
	free(l->weights);
	l->labels = NULL;
	l->weights = NULL;
	l->image = NULL;
	l->partial = false;
	if (l->zoom_count) {
		l->weights = calloc(p->sample_count + 1, sizeof(*l->weights));
		err = l->weights ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < p->sample_count && l->weights; i++)
		l->weights[i] = p->values[i * p->value_type_count + l->value];
	for (size_t i = 0; i < l->zoom_count && !err; i++) {
		const struct live_zoom *zoom = &l->zooms[i];

		l->partial |= zoom->kind != LIVE_ROW && zoom->kind != LIVE_QUERY;
		if (zoom->kind == LIVE_ROW || zoom->kind == LIVE_QUERY)
			err = keep_labels(l, zoom);
		else if (zoom->kind == LIVE_STATE)
			for (size_t k = 0; k < p->sample_count; k++)
				l->weights[k] *=
					profile_is_in_state(p, &p->samples[k], zoom->filter);
		else if (zoom->kind == LIVE_CALLS)
			err = keep_calls(l, &zoom->path);
		else if (zoom->kind == LIVE_STACK)
			err = keep_stacks(l, &zoom->regex);
		else
			err = keep_time(l, &zoom->interval);
	}
	l->selected = !err;
	return err;
}

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

const char *const live_sort_names[] = {
	"self", "total", "name", "image", "runnable", "delay", NULL
};

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
	size_t wall = profile_find_sum(l->p, PROFILE_SUM_WALL);
	size_t woke = profile_find_sum(l->p, PROFILE_SUM_WOKE);
	int64_t least = profile_tick_ns(l->p) * FADED;

	for (size_t i = 0; i < l->p->sample_count; i++) {
		int64_t *values = &l->p->values[i * width];
		size_t faded[] = { PROFILE_CPU, wall, woke };

		for (size_t k = 0; k < sizeof(faded) / sizeof(*faded); k++) {
			if (faded[k] >= width)
				continue;
			values[faded[k]] *= factor;
			if (values[faded[k]] <= least)
				values[faded[k]] = 0;
		}
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

int live_name_waits(struct live *l, struct profile *window, struct error *e)
{
	const struct symbol_options o = { .lines = l->lines, .cache = l->cache };
	int err = symbol_resolve(window, &o, e);

	return err ?: wait_names_apply(window) ? error_no_memory(e) : 0;
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
	else if (l->sort == LIVE_BY_RUNNABLE && a->wall)
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
	size_t delay = profile_find_sum(l->p, PROFILE_SUM_DELAY), width = l->p->value_type_count;
	size_t wall = profile_find_sum(l->p, PROFILE_SUM_WALL);
	struct rows_options o = { .view = l->view, .filtered = l->filtered };
	struct callgraph_key copy;
	bool has_delay;
	int err;
	const struct callgraph_key *chosen = chosen_key(l, &copy);

	if (l->waits && wall < width)
		l->value = wall;
	err = live_select(l);
	o.image = l->image;
	o.labels = l->labels;
	o.weights = l->weights;
	o.walls = !l->partial;
	/* Where only some samples are shown, their delay is unknown. */
	has_delay = delay < width && delay != l->value && !l->weights;
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

struct copier {
	struct profile *from, *to;
	uint32_t *images, *mappings; /* of each of `from`, its number in `to` + 1; 0: not copied */
	uint32_t *locations;	     /* of each of `from`, its number in `to` */
	struct profile_line *lines;  /* scratch: those of one location */
	size_t line_room;
	uint32_t *frames; /* scratch: one stack */
	size_t frame_room;
};

/*
 * Stores the number in `to` of a mapping of `from`, which may be PROFILE_NONE; copies it, and its
 * image with the open files, the first time. Returns 0 or -ENOMEM.
 */
static int copy_mapping(struct copier *c, uint32_t number, uint32_t *id)
{
	struct profile_image *from, *image;
	struct profile_mapping m;
	const char *path;
	uint32_t image_id;

	*id = number == PROFILE_NONE ? PROFILE_NONE : c->mappings[number] - 1;
	if (number == PROFILE_NONE || c->mappings[number])
		return 0;
	m = c->from->mappings[number];
	image_id = c->images[m.image] - 1;
	if (!c->images[m.image]) {
		from = &c->from->images[m.image];
		if (profile_add_image_like(c->to, from, &image_id))
			return -ENOMEM;
		c->images[m.image] = image_id + 1;
		image = &c->to->images[image_id];
		path = image->path;
		*image = *from;
		image->path = path;
		image->unnamed = NULL;
		from->fd = from->root = -1; /* the copy owns them now */
		if (from->unnamed && profile_string(c->to, from->unnamed, &image->unnamed))
			return -ENOMEM;
	}
	if (profile_add_mapping(c->to, m.start, m.limit, m.offset, image_id, id))
		return -ENOMEM;
	c->to->mappings[*id].linked = m.linked;
	c->mappings[number] = *id + 1;
	return 0;
}

static int copy_location(struct copier *c, uint32_t number)
{
	const struct profile_location *from = &c->from->locations[number];
	uint32_t mapping, *id = &c->locations[number];

	if (copy_mapping(c, from->mapping, &mapping) ||
	    profile_add_location(c->to, from->address, mapping, id))
		return -ENOMEM;
	c->to->locations[*id].image_address = from->image_address;
	c->to->locations[*id].folded = from->folded;
	if (!from->line_count)
		return 0;
	if (array_reserve(&c->lines, &c->line_room, from->line_count, sizeof(*c->lines)))
		return -ENOMEM;
	for (uint32_t i = 0; i < from->line_count; i++) {
		struct profile_line *line = &c->lines[i];

		*line = c->from->lines[from->first_line + i];
		if (profile_add_function(c->to, &c->from->functions[line->function],
					 &line->function))
			return -ENOMEM;
	}
	return profile_set_lines(c->to, *id, c->lines, from->line_count);
}

static bool has_faded(const struct profile *p, size_t sample)
{
	const int64_t *values = &p->values[sample * p->value_type_count];
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);

	return values[PROFILE_CPU] <= 0 && (wall == p->value_type_count || values[wall] <= 0);
}

int live_compact(struct live *l)
{
	struct profile *p = l->p;
	struct copier c = { .from = p, .to = profile_new() };
	uint32_t tried = l->tried;
	int err = -ENOMEM;

	c.images = calloc(p->image_count + 1, sizeof(*c.images));
	c.mappings = calloc(p->mapping_count + 1, sizeof(*c.mappings));
	c.locations = calloc(p->location_count + 1, sizeof(*c.locations));
	if (c.to && c.images && c.mappings && c.locations) {
		c.to->bits = p->bits;
		err = profile_string(c.to, p->event, &c.to->event);
		err = err ?: profile_string(c.to, p->host, &c.to->host);
	}
	for (size_t i = 0; i < p->value_type_count && !err; i++)
		err = profile_add_value_like(c.to, &p->value_types[i]);
	for (size_t i = 0; i < p->sample_count && !err; i++)
		for (uint32_t j = 0; j < p->samples[i].depth && !has_faded(p, i); j++)
			c.locations[p->frames[p->samples[i].first_frame + j]] = PROFILE_NONE;
	/* In their order, so that locations that were looked up stay before the others. */
	for (uint32_t i = 0; i < p->location_count && !err; i++) {
		if (c.locations[i] == PROFILE_NONE)
			err = copy_location(&c, i);
		if (i + 1 == tried)
			l->tried = c.to->location_count;
	}
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *sample = &p->samples[i];
		uint32_t labels;

		if (has_faded(p, i))
			continue;
		err = array_reserve(&c.frames, &c.frame_room, sample->depth, sizeof(*c.frames));
		err = err ?: profile_add_labels(c.to, &p->labels[sample->labels], &labels);
		for (uint32_t j = 0; j < sample->depth && !err; j++)
			c.frames[j] = c.locations[p->frames[sample->first_frame + j]];
		if (!err)
			err = profile_add_sample(c.to, c.frames, sample->depth, labels,
						 &p->values[i * p->value_type_count]);
	}
	for (size_t i = 0; i < p->wall_count && !err; i++) {
		struct profile_wall wall = p->walls[i];

		err = profile_add_labels(c.to, &p->labels[wall.labels], &wall.labels);
		err = err ?: profile_add_wall(c.to, &wall);
	}
	rows_free(&l->rows);
	l->shown_count = 0;
	l->selected = false;
	profile_free(p);
	l->p = c.to;
	free(c.images);
	free(c.mappings);
	free(c.locations);
	free(c.lines);
	free(c.frames);
	return err;
}
