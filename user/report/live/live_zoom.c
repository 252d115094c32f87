// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/tags.h"
#include "report/live/live.h"
#include "report/text.h"
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
	if (!text ||
	    array_reserve(&l->zooms, &l->zoom_room, l->zoom_count + 1, sizeof(*l->zooms))) {
		free_zoom(zoom);
		return error_no_memory(e);
	}
	l->zooms[l->zoom_count++] = *zoom;
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

static int keep_row(struct live *l, const struct live_zoom *zoom)
{
	const struct profile *p = l->p;
	bool *labels;

	if (zoom->key.image)
		l->image = zoom->key.image;
	if (!(zoom->from->fields & (ROW_COMM | ROW_TAGS)))
		return 0;
	labels = calloc(p->label_count + 1, sizeof(*labels));
	if (!labels)
		return -ENOMEM;
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

		since = since > interval->since_ns ? since : interval->since_ns;
		until = until < interval->until_ns ? until : interval->until_ns;
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

		l->partial |= zoom->kind != LIVE_ROW;
		if (zoom->kind == LIVE_ROW)
			err = keep_row(l, zoom);
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
