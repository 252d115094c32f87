// SPDX-License-Identifier: GPL-2.0-only
#include "report/row_key.h"

#include <string.h>

#include "profile/image_name.h"
#include "report/text.h"
#include "util/index.h"
#include "util/sum.h"

const char row_unknown[] = "[unknown]";

const struct row_view row_views[] = {
	{ "function", "functions", ROW_FUNCTION | ROW_IMAGE },
	{ "image", "images", ROW_IMAGE },
	{ "address", "addresses", ROW_ADDRESS | ROW_FUNCTION | ROW_IMAGE },
	{ "source", "sources", ROW_SOURCE | ROW_IMAGE },
	{ "line", "lines", ROW_SOURCE | ROW_LINE | ROW_FUNCTION | ROW_IMAGE },
	{ "thread", "threads", ROW_PROCESS | ROW_THREAD | ROW_COMM },
	{ "process", "processes", ROW_PROCESS | ROW_COMM },
	{ 0 },
};

const struct row_view *row_view_by_name(const char *name)
{
	for (const struct row_view *v = row_views; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

const struct row_view *row_view_of_any_run(const struct row_view *view)
{
	static const struct row_view names[] = {
		{ "process", "processes", ROW_COMM },
		{ "thread", "threads", ROW_COMM },
	};

	return view->fields & ROW_COMM ? &names[!!(view->fields & ROW_THREAD)] : view;
}

bool row_image_is(const char *path, const char *image)
{
	return !image || strcmp(path, image) == 0 || strcmp(row_image_of_any_run(path), image) == 0;
}

const char *row_image_of_any_run(const char *path)
{
	return image_kind(path) == IMAGE_JIT ? "[jit]" : text_basename(path);
}

bool row_function_is(const char *name, const char *function)
{
	size_t size = strlen(function);

	return strncmp(name, function, size) == 0 && (!name[size] || name[size] == '(');
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
	return text ? hash_bytes(text, strlen(text), seed) : seed + 1;
}

uint64_t row_key_hash(const struct row_key *key)
{
	uint64_t hash = hash_text(key->function, hash_text(key->image, key->line));

	hash = hash_text(key->source, hash_u64(key->address, hash));
	return hash_u64((uint64_t)key->pid << 32 | key->tid, hash_text(key->comm, hash));
}

static int compare_text(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? 1 : -1;
	return strcmp(a, b);
}

int row_key_compare(const struct row_key *a, const struct row_key *b)
{
	int order = compare_text(a->image, b->image);

	order = order ?: compare_text(a->source, b->source);
	order = order ?: compare_u64(a->line, b->line);
	order = order ?: compare_u64(a->address, b->address);
	order = order ?: compare_u64(a->pid, b->pid);
	order = order ?: compare_u64(a->tid, b->tid);
	order = order ?: compare_text(a->comm, b->comm);
	return order ?: compare_text(a->function, b->function);
}

static void set_line(const struct profile *p, const struct profile_line *line, struct row_key *key)
{
	const struct profile_function *function = &p->functions[line->function];
	const char *file = line->file ?: function->file;

	key->function = function->name;
	key->line = line->line;
	if (file[0])
		key->source = file;
}

static void set_labels(const struct profile *p, uint32_t labels, struct row_key *key)
{
	key->comm = "";
	if (labels >= p->label_count)
		return;
	key->pid = p->labels[labels].pid;
	key->tid = p->labels[labels].tid;
	key->comm = p->labels[labels].comm;
}

struct row_key row_key_of(const struct profile *p, const struct row_place *place)
{
	struct row_key key = { .function = "[no pc]", .image = row_unknown, .source = row_unknown };

	if (place->location != PROFILE_NONE) {
		const struct profile_location *l = &p->locations[place->location];
		const struct profile_image *image = profile_location_image(p, place->location);

		if (image && image->path[0])
			key.image = image->path;
		key.address = l->image_address;
		key.function = NULL;
		if (l->line_count)
			set_line(p, &p->lines[l->first_line + place->line], &key);
	}
	set_labels(p, place->labels, &key);
	return key;
}

void row_key_reduce(const struct row_view *view, struct row_key *key)
{
	unsigned int fields = view->fields;
	bool unnamed = (fields & ROW_FUNCTION) && !key->function;

	if (!(fields & ROW_ADDRESS) && !unnamed)
		key->address = 0;
	if (!(fields & ROW_FUNCTION))
		key->function = NULL;
	if (!(fields & ROW_IMAGE))
		key->image = NULL;
	if (!(fields & ROW_SOURCE))
		key->source = NULL;
	if (!(fields & ROW_LINE))
		key->line = 0;
	/* Threads of one process may have names of their own. */
	if (!(fields & ROW_COMM) || (!(fields & ROW_THREAD) && key->pid))
		key->comm = NULL;
	if (!(fields & ROW_THREAD))
		key->tid = 0;
	if (!(fields & ROW_PROCESS))
		key->pid = 0;
}
