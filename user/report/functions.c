// SPDX-License-Identifier: GPL-2.0-only
#include "report/functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "util/array.h"
#include "util/index.h"

static const char unknown_image[] = "[unknown]";
static const char no_pc[] = "[no pc]";

/* What is needed while rows are collected. */
struct collector {
	const struct profile *p;
	struct functions *f;
	struct index index;
	uint32_t *line_rows;	 /* each line's row, INDEX_NONE when not yet known */
	uint32_t *location_rows; /* the same for locations without lines */
};

/* Strings of the profile are interned: equal ones are the same pointer. */
static bool row_equal(const void *array, uint32_t id, const void *key)
{
	const struct function_row *a = (const struct function_row *)array + id, *b = key;

	return a->name == b->name && a->image == b->image && a->address == b->address;
}

/* The row with the name, image and address of `key`: found or made. */
static int find_row(struct collector *c, const struct function_row *key, uint32_t *row)
{
	struct functions *f = c->f;
	uint64_t hash = hash_u64((uintptr_t)key->name, (uintptr_t)key->image);

	hash = hash_u64(key->address, hash);
	*row = index_find(&c->index, hash, row_equal, f->rows, key);
	if (*row != INDEX_NONE)
		return 0;
	if (array_reserve(&f->rows, &f->room, f->count + 1, sizeof(*f->rows)) ||
	    index_add(&c->index, hash, f->count))
		return -ENOMEM;
	*row = f->count++;
	f->rows[*row] = *key;
	return 0;
}

static const char *location_image(const struct profile *p, uint32_t location)
{
	const struct profile_image *image = profile_location_image(p, location);

	return image && image->path[0] ? image->path : unknown_image;
}

/* The row of a location's line, or of the location when it has none. */
static int location_row(struct collector *c, uint32_t location, uint32_t line, uint32_t *row)
{
	const struct profile *p = c->p;
	const struct profile_location *l = &p->locations[location];
	uint32_t *known = &c->location_rows[location];
	struct function_row key = { .image = location_image(p, location) };
	int err = 0;

	if (l->line_count) {
		known = &c->line_rows[l->first_line + line];
		key.name = p->functions[p->lines[l->first_line + line].function].name;
	} else {
		key.address = l->image_address;
	}
	if (*known == INDEX_NONE)
		err = find_row(c, &key, known);
	*row = *known;
	return err;
}

static void add_saturating(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* Recursion brings a function several times into one stack: last_sample tells. */
static void add_total(struct function_row *row, size_t sample, uint64_t value)
{
	if (row->total && row->last_sample == sample)
		return;
	row->last_sample = sample;
	add_saturating(&row->total, value);
}

static int add_frame(struct collector *c, size_t sample, uint32_t depth, uint64_t value)
{
	uint32_t location = c->p->frames[c->p->samples[sample].first_frame + depth];
	uint32_t lines = c->p->locations[location].line_count;
	uint32_t line = 0;

	do {
		uint32_t row;
		int err = location_row(c, location, line, &row);

		if (err)
			return err;
		if (depth == 0 && line == 0)
			add_saturating(&c->f->rows[row].self, value);
		add_total(&c->f->rows[row], sample, value);
		/* Without stacks, the functions around an inlined one have no total either. */
	} while (c->f->stacks && ++line < lines);
	return 0;
}

static int add_sample(struct collector *c, size_t sample, uint64_t value)
{
	uint32_t depth = c->p->samples[sample].depth;
	struct function_row key = { .name = no_pc, .image = unknown_image };
	uint32_t row;
	int err = 0;

	add_saturating(&c->f->samples, value);
	if (depth == 0) {
		err = find_row(c, &key, &row);
		if (err)
			return err;
		add_saturating(&c->f->rows[row].self, value);
		add_total(&c->f->rows[row], sample, value);
	}
	for (uint32_t i = 0; i < depth && !err; i++)
		err = add_frame(c, sample, i, value);
	return err;
}

static int add_samples(struct collector *c)
{
	const struct profile *p = c->p;
	size_t count_value = profile_count_value(p);

	for (size_t i = 0; i < p->sample_count; i++)
		c->f->stacks |= p->samples[i].depth > 1;
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t value = p->values[i * p->value_type_count + count_value];
		int err = value > 0 ? add_sample(c, i, value) : 0;

		if (err)
			return err;
	}
	return 0;
}

/* A call comes from the innermost function at its pc, and goes to the one whose code begins. */
static int add_arc(struct collector *c, const struct profile_arc *arc, uint64_t value)
{
	uint32_t lines = c->p->locations[arc->to].line_count;
	uint32_t from, to;
	int err = location_row(c, arc->from, 0, &from);

	if (!err)
		err = location_row(c, arc->to, lines ? lines - 1 : 0, &to);
	if (err || from == to)
		return err;
	add_saturating(&c->f->rows[from].calling, value);
	add_saturating(&c->f->rows[to].called, value);
	c->f->rows[to].counted |= arc->count > 0;
	return 0;
}

static uint64_t inclusive(const struct functions *f, const struct function_row *row)
{
	uint64_t total = row->called;

	if (!row->counted || !row->called) {
		total = row->self;
		add_saturating(&total, row->calling);
	}
	return total < f->samples ? total : f->samples;
}

static void finish_totals(struct functions *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		f->rows[i].total = inclusive(f, &f->rows[i]);
		if (f->rows[i].total)
			f->rows[kept++] = f->rows[i];
	}
	f->count = kept;
	f->stacks = true;
}

/* Totals by calls that were counted apart, if anything is known to have been spent in them. */
static int add_arcs(struct collector *c)
{
	const struct profile *p = c->p;
	const int64_t *values = p->arc_values + profile_count_value(p);
	bool known = false;
	int err = 0;

	for (size_t i = 0; i < p->arc_count && !known; i++)
		known = p->arcs[i].kind == PROFILE_CALL && values[i * p->value_type_count] > 0;
	if (!known || c->f->stacks)
		return 0;
	for (size_t i = 0; i < p->arc_count && !err; i++) {
		int64_t value = values[i * p->value_type_count];

		if (p->arcs[i].kind == PROFILE_CALL)
			err = add_arc(c, &p->arcs[i], value > 0 ? value : 0);
	}
	if (!err)
		finish_totals(c->f);
	return err;
}

/* What a pc without a name is called; the caller's to free(), or NULL. */
static char *make_name(const struct function_row *row)
{
	const char *image = text_basename(row->image);
	size_t size = strlen(image) + sizeof("+0x") + 16;
	char *name = malloc(size);

	if (name && row->image == unknown_image)
		snprintf(name, size, "0x%" PRIx64, row->address);
	else if (name)
		snprintf(name, size, "%s+0x%" PRIx64, image, row->address);
	return name;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_rows(const void *one, const void *other)
{
	const struct function_row *a = one, *b = other;
	int order = compare_u64(b->self, a->self);

	if (!order)
		order = compare_u64(b->total, a->total);
	if (!order)
		order = strcmp(a->name, b->name);
	if (!order)
		order = strcmp(a->image, b->image);
	/* A function may be called like a pc without a name. */
	return order ? order : compare_u64(a->address, b->address);
}

static int finish_rows(struct functions *f)
{
	uint64_t cumulative = 0;

	for (size_t i = 0; i < f->count; i++) {
		struct function_row *row = &f->rows[i];

		if (row->name)
			continue;
		row->made_name = make_name(row);
		if (!row->made_name)
			return -ENOMEM;
		row->name = row->made_name;
	}
	if (f->count)
		qsort(f->rows, f->count, sizeof(*f->rows), compare_rows);
	for (size_t i = 0; i < f->count; i++) {
		add_saturating(&cumulative, f->rows[i].self);
		f->rows[i].cumulative = cumulative;
	}
	return 0;
}

/* An array of `count` times INDEX_NONE, never NULL but when memory runs out. */
static uint32_t *no_rows(size_t count)
{
	uint32_t *rows = reallocarray(NULL, count + 1, sizeof(*rows));

	if (rows)
		memset(rows, 0xff, (count + 1) * sizeof(*rows));
	return rows;
}

int functions_collect(const struct profile *p, struct functions *f)
{
	struct collector c = { .p = p, .f = f };
	int err = -ENOMEM;

	*f = (struct functions){ 0 };
	c.line_rows = no_rows(p->line_count);
	c.location_rows = no_rows(p->location_count);
	if (c.line_rows && c.location_rows)
		err = add_samples(&c);
	if (!err)
		err = add_arcs(&c);
	if (!err)
		err = finish_rows(f);
	if (err)
		functions_free(f);
	free(c.line_rows);
	free(c.location_rows);
	index_free(&c.index);
	return err;
}

void functions_free(struct functions *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->rows[i].made_name);
	free(f->rows);
	*f = (struct functions){ 0 };
}
