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
	{ "comm", "names", ROW_COMM },
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
	for (size_t i = 0; i < TAG_COUNT; i++)
		if (tag_views[i].plural && strcmp(tag_views[i].name, name) == 0)
			return &tag_views[i];
	return NULL;
}

void row_view_list(bool tags, char *text, size_t size)
{
	size_t used = 0;

	for (const struct row_view *v = row_views; v->name && used < size; v++)
		used += snprintf(text + used, size - used, "%s%s", used ? ", " : "", v->name);
	for (size_t i = 0; i < TAG_COUNT && tags && used < size; i++)
		if (tag_views[i].plural)
			used += snprintf(text + used, size - used, ", %s", tag_views[i].name);
}

const struct tag_kind *row_view_tag(const struct row_view *view)
{
	for (size_t i = 0; i < TAG_COUNT; i++)
		if (view->fields & ROW_OF_TAG(i))
			return &tag_kinds[i];
	return NULL;
}

bool row_view_has_tag(const struct row_view *view, const struct profile *p)
{
	if (!view || !row_view_tag(view))
		return true;
	for (size_t i = 0; i < p->label_count; i++)
		if (profile_find_tag(&p->labels[i], view->name))
			return true;
	return false;
}

static const struct row_view *find_fields(const struct row_view *views, unsigned int fields)
{
	while (views->name && views->fields != fields)
		views++;
	return views->name ? views : NULL;
}

const struct row_view *row_view_by_fields(unsigned int fields)
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

	return strncmp(name, wanted, size) == 0 && (!name[size] || name[size] == '(');
}

bool row_function_is(const struct profile_function *f, const char *name)
{
	return name_is(f->name, name) || name_is(f->system_name, name);
}

static bool is_of_process(const void *array, uint32_t id, const void *key)
{
	const struct profile_labels *a = (const struct profile_labels *)array + id, *b = key;

	return a->pid == b->pid && a->generation == b->generation;
}

static bool is_of_name(const void *array, uint32_t id, const void *key)
{
	const struct profile_labels *a = (const struct profile_labels *)array + id, *b = key;

	return is_of_process(array, id, key) && strcmp(a->comm, b->comm) == 0;
}

int row_process_labels(const struct profile *p, uint32_t *names)
{
	const struct profile_labels *labels = p->labels;
	magnitude_sum *weights = calloc(p->label_count + 1, sizeof(*weights));
	size_t value = profile_value(p, NULL);
	struct index by_name = { 0 }, index = { 0 };
	int err = weights ? 0 : -ENOMEM;

	/* The samples of a main thread under each of its names, added up at the first label. */
	for (uint32_t id = 0; id < p->label_count && !err; id++) {
		const struct profile_labels *l = &labels[id];
		uint64_t hash =
			hash_bytes(l->comm, strlen(l->comm), hash_u64(l->pid, l->generation));

		names[id] = id;
		if (!l->pid || l->tid != l->pid)
			continue;
		names[id] = index_find(&by_name, hash, is_of_name, labels, l);
		if (names[id] == INDEX_NONE) {
			names[id] = id;
			err = index_add(&by_name, hash, id);
		}
	}
	for (size_t i = 0; i < p->sample_count && !err; i++)
		if (p->samples[i].labels < p->label_count)
			weights[names[p->samples[i].labels]] +=
				magnitude(p->values[i * p->value_type_count + value]);
	/* First the names of main threads, of which the one with most samples stays, then all
	 * labels. */
	for (size_t i = 0; i < 2 * p->label_count && !err; i++) {
		uint32_t id = i % p->label_count, best;
		const struct profile_labels *l = &labels[id];
		uint64_t hash = hash_u64(l->pid, l->generation);

		if (!l->pid || (i < p->label_count && l->tid != l->pid))
			continue;
		best = index_find(&index, hash, is_of_process, labels, l);
		if (best == INDEX_NONE) {
			best = id;
			err = index_add(&index, hash, id);
		} else if (i < p->label_count && weights[id] > weights[best]) {
			index_remove(&index, hash, best);
			best = id;
			err = index_add(&index, hash, id);
		}
		names[id] = best;
	}
	index_free(&by_name);
	index_free(&index);
	free(weights);
	return err;
}
