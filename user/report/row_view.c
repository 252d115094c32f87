// SPDX-License-Identifier: GPL-2.0-only
#include "report/row_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "report/text.h"
#include "util/index.h"

#define ROWS "rows" /* of several fields that --by separates */

const char row_unknown[] = "[unknown]";

#define LINE_FIELDS (ROW_SOURCE | ROW_LINE | ROW_FUNCTION | ROW_IMAGE)

const struct row_view row_views[] = {
	{ "function", "functions", ROW_FUNCTION | ROW_IMAGE },
	{ "image", "images", ROW_IMAGE },
	{ "address", "addresses", ROW_ADDRESS | ROW_FUNCTION | ROW_IMAGE },
	{ "source", "sources", ROW_SOURCE | ROW_IMAGE },
	{ "line", "lines", LINE_FIELDS },
	{ "thread", "threads", ROW_PROCESS | ROW_THREAD | ROW_COMM },
	{ "process", "processes", ROW_PROCESS | ROW_COMM },
	{ "comm", "comms", ROW_COMM },
	{ 0 },
};

/* By what threads did: a wait is in the function that waits. */
static const struct row_view state_views[] = {
	{ "reason", "reasons", ROW_STATE },
	{ "wait", ROWS, ROW_STATE | ROW_FUNCTION | ROW_IMAGE },
	{ 0 },
};

/* One for each tag. */
static const struct row_view tag_views[TAG_COUNT] = {
#define TAG_VIEW(number, key, plural, ...) { key, plural, ROW_OF_TAG(TAG_##number) },
	PROFILE_TAGS(TAG_VIEW)
#undef TAG_VIEW
};

/* Views of code by who ran it: name is that of --by, with the fields of both. */
#define BY_CODE(name, fields)                                                    \
	{ name ",image", ROWS, (fields) | ROW_IMAGE },                           \
		{ name ",function", ROWS, (fields) | ROW_FUNCTION | ROW_IMAGE }, \
		{ name ",source", ROWS, (fields) | ROW_SOURCE | ROW_IMAGE },     \
	{                                                                        \
		name ",line", ROWS, (fields) | LINE_FIELDS                       \
	}

static const struct row_view combined[] = {
	BY_CODE("comm", ROW_COMM),
	BY_CODE("process", ROW_PROCESS | ROW_COMM),
	BY_CODE("thread", ROW_PROCESS | ROW_THREAD | ROW_COMM),
	{ 0 },
};

const struct row_view *row_view_by_name(const char *name)
{
	for (const struct row_view *v = row_views; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	for (const struct row_view *v = state_views; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	for (size_t i = 0; i < TAG_COUNT; i++)
		if (tag_views[i].plural && strcmp(tag_views[i].name, name) == 0)
			return &tag_views[i];
	return NULL;
}

const struct row_view *row_view_find(const char *name, struct row_view *label)
{
	static const char prefix[] = "label:";
	const struct row_view *view = row_view_by_name(name);
	bool is_plain = strncmp(name, prefix, strlen(prefix)) != 0;

	if (!is_plain)
		name += strlen(prefix);
	/* Any is found with the prefix: files have what others call their labels. */
	if (view || !*name ||
	    (is_plain && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_.-")]))
		return view;
	*label = (struct row_view){ name, "labels", ROW_LABEL };
	return label;
}

void row_view_list(bool tags, char *text, size_t size)
{
	*text = '\0';
	for (const struct row_view *v = row_views; v->name; v++)
		text_append(text, size, ", ", "%s", v->name);
	for (const struct row_view *v = state_views; tags && v->name; v++)
		text_append(text, size, ", ", "%s", v->name);
	for (size_t i = 0; i < TAG_COUNT && tags; i++)
		if (tag_views[i].plural)
			text_append(text, size, ", ", "%s", tag_views[i].name);
}

/* Of all views by a label: their names are the keys. */
static const struct tag_kind label_kind = { "label", "labels", "[no label]", TAG_TEXT, false };

const struct tag_kind *row_view_tag(const struct row_view *view)
{
	for (size_t i = 0; i < TAG_COUNT; i++)
		if (view->fields & ROW_OF_TAG(i))
			return &tag_kinds[i];
	return view->fields & ROW_LABEL ? &label_kind : NULL;
}

bool row_view_has_tag(const struct row_view *view, const struct profile *p)
{
	if (view && view->fields & ROW_STATE)
		return profile_find_sum(p, PROFILE_SUM_WALL) < p->value_type_count;
	if (!view || !row_view_tag(view))
		return true;
	for (size_t i = 0; i < p->label_count; i++)
		if (profile_find_tag(&p->labels[i], view->name))
			return true;
	return false;
}

static const struct row_view *find_fields(const struct row_view *views, uint64_t fields)
{
	while (views->name && views->fields != fields)
		views++;
	return views->name ? views : NULL;
}

const struct row_view *row_view_by_fields(uint64_t fields)
{
	return find_fields(row_views, fields) ?: find_fields(combined, fields);
}

const char *row_view_noun(const struct row_view *view, size_t count)
{
	if (count != 1)
		return view->plural;
	return strcmp(view->plural, ROWS) == 0 ? "row" : view->name;
}

const struct row_view *row_view_of_any_run(const struct row_view *view)
{
	static const struct row_view names[] = {
		{ "process", "processes", ROW_COMM },
		{ "thread", "threads", ROW_COMM },
	};

	if (!(view->fields & ROW_PROCESS))
		return view;
	if (view->fields & ROW_CODE)
		return row_view_by_fields((view->fields & ROW_CODE) | ROW_COMM);
	return &names[!!(view->fields & ROW_THREAD)];
}

const char *row_image_path(const struct profile *p, uint32_t location)
{
	const struct profile_image *image =
		location == PROFILE_NONE ? NULL : profile_location_image(p, location);

	return image && image->path[0] ? image->path : row_unknown;
}

bool row_image_is(const char *path, const char *image)
{
	return !image || strcmp(path, image) == 0 || strcmp(row_image_of_any_run(path), image) == 0;
}

const char *row_image_of_any_run(const char *path)
{
	return image_kind(path) == IMAGE_JIT ? "[jit]" : text_basename(path);
}

static bool name_is(const char *name, const char *wanted)
{
	size_t size = strlen(wanted);

	if (strncmp(name, wanted, size) != 0)
		return false;
	/* "lookup[abi:cxx11](int)": the tag is none that anybody writes in a source. */
	while (strncmp(name + size, "[abi:", strlen("[abi:")) == 0)
		size += strcspn(name + size, "]") + (strchr(name + size, ']') != NULL);
	return !name[size] || name[size] == '(';
}

bool row_function_is(const struct profile_function *f, const char *name)
{
	return name_is(f->name, name) || name_is(f->system_name, name);
}

/* A name of a process, how much its samples under this name weigh, and for how long it had it. */
struct process_name {
	uint32_t pid, generation;
	const char *name;
	magnitude_sum weight;
	uint64_t wall_ns;
};

EQUAL(is_of_process, struct process_name, struct process_name, SAME(pid) && SAME(generation))

EQUAL(is_of_name, struct process_name, struct process_name,
      SAME(pid) && SAME(generation) && strcmp(a->name, b->name) == 0)

int row_process_names(const struct profile *p, const char **names)
{
	struct process_name *all = calloc(p->label_count + 1, sizeof(*all));
	magnitude_sum *weights = calloc(p->label_count + 1, sizeof(*weights));
	uint64_t *walls = calloc(p->label_count + 1, sizeof(*walls));
	struct index by_name = { 0 }, chosen = { 0 };
	size_t value = profile_value(p, NULL);
	uint32_t count = 0, number, best;
	int err = all && weights && walls ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->wall_count && !err; i++)
		walls[p->walls[i].labels] += p->walls[i].wall_ns;

	for (size_t i = 0; i < p->sample_count && !err; i++)
		if (p->samples[i].labels < p->label_count)
			weights[p->samples[i].labels] +=
				magnitude(p->values[i * p->value_type_count + value]);
	for (uint32_t id = 0; id < p->label_count && !err; id++) {
		const struct profile_labels *l = &p->labels[id];
		struct process_name key = { l->pid, l->generation, profile_tag_text(l, TAG_PROCESS),
					    0, 0 };
		uint64_t hash;

		names[id] = l->comm;
		/* Our recordings have the tag where the thread has a name of its own. */
		if (!key.name && (p->totals.known || l->tid == l->pid))
			key.name = l->comm;
		if (!l->pid || !key.name)
			continue;
		hash = hash_bytes(key.name, strlen(key.name), hash_u64(l->pid, l->generation));
		number = index_find(&by_name, hash, is_of_name, all, &key);
		if (number == INDEX_NONE) {
			number = count++;
			all[number] = key;
			err = index_add(&by_name, hash, number);
		}
		all[number].weight += weights[id];
		all[number].wall_ns += walls[id];
	}
	for (number = 0; number < count && !err; number++) {
		uint64_t hash = hash_u64(all[number].pid, all[number].generation);

		best = index_find(&chosen, hash, is_of_process, all, &all[number]);
		if (best != INDEX_NONE && (all[best].weight > all[number].weight ||
					   (all[best].weight == all[number].weight &&
					    all[best].wall_ns > all[number].wall_ns)))
			continue;
		if (best != INDEX_NONE)
			index_remove(&chosen, hash, best);
		err = index_add(&chosen, hash, number);
	}
	for (uint32_t id = 0; id < p->label_count && !err; id++) {
		const struct profile_labels *l = &p->labels[id];
		struct process_name key = { l->pid, l->generation, l->comm, 0, 0 };
		uint64_t hash = hash_u64(l->pid, l->generation);

		if (!l->pid)
			continue;
		best = index_find(&chosen, hash, is_of_process, all, &key);
		if (best == INDEX_NONE) {
			best = count++;
			all[best] = key;
			err = index_add(&chosen, hash, best);
		}
		names[id] = all[best].name;
	}
	index_free(&by_name);
	index_free(&chosen);
	free(weights);
	free(walls);
	free(all);
	return err;
}
