// SPDX-License-Identifier: GPL-2.0-only
#include "report/call_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "report/row_key.h"
#include "report/text.h"
#include "util/array.h"
#include "util/sum.h"

/* What is needed while the frames of one profile are collected. */
struct collector {
	struct call_places *places;
	struct call_tree *t;
	struct call_frames *frames;
	const struct profile *p;
	const struct call_tree_options *o;
	const char **names, **bases; /* of functions and images: equal ones are the same pointer */
};

static bool text_equal(const void *array, uint32_t id, const void *key)
{
	return strcmp(((const char *const *)array)[id], key) == 0;
}

/* The first of the texts that equal this one. */
static int find_text(struct call_frames *f, const char *text, const char **first)
{
	uint64_t hash = hash_bytes(text, strlen(text), 0);
	uint32_t id = index_find(&f->text_index, hash, text_equal, f->texts, text);

	if (id == INDEX_NONE) {
		if (array_reserve(&f->texts, &f->text_room, f->text_count + 1, sizeof(*f->texts)) ||
		    index_add(&f->text_index, hash, f->text_count))
			return -ENOMEM;
		id = f->text_count++;
		f->texts[id] = text;
	}
	*first = f->texts[id];
	return 0;
}

static bool key_equal(const void *array, uint32_t id, const void *key)
{
	const struct call_frame_key *a = (const struct call_frame_key *)array + id, *b = key;

	return a->name == b->name && a->base == b->base;
}

/* Takes a name that was made; NULL, when there was no memory for it, stays so. */
static const char *keep_name(struct call_tree *t, char *name)
{
	if (!name || array_reserve(&t->made, &t->made_room, t->made_count + 1, sizeof(*t->made))) {
		free(name);
		return NULL;
	}
	t->made[t->made_count++] = name;
	return name;
}

static const char *image_name(struct call_tree *t, const char *image)
{
	const char *base = text_basename(image);
	char *name;

	if (image_is_bracketed(base))
		return base;
	return keep_name(t, asprintf(&name, "[%s]", base) < 0 ? NULL : name);
}

static int add_frame(struct collector *c, const struct call_frame *frame,
		     const struct call_frame_key *key, uint32_t *id)
{
	uint64_t hash = hash_u64((uintptr_t)key->name, (uintptr_t)key->base);
	struct call_frames *f = c->frames;
	struct call_tree *t = c->t;

	*id = index_find(&f->index, hash, key_equal, f->keys, key);
	if (*id != INDEX_NONE) {
		t->frames[*id].inlined &= frame->inlined;
		return 0;
	}
	if (array_reserve(&t->frames, &t->frame_room, t->frame_count + 1, sizeof(*t->frames)) ||
	    array_reserve(&f->keys, &f->key_room, t->frame_count + 1, sizeof(*f->keys)) ||
	    index_add(&f->index, hash, t->frame_count))
		return -ENOMEM;
	*id = t->frame_count++;
	f->keys[*id] = *key;
	t->frames[*id] = *frame;
	if (!frame->named)
		t->frames[*id].name = image_name(t, frame->image);
	return t->frames[*id].name ? 0 : -ENOMEM;
}

/* The upper half of the addresses is the kernel's, but for what it shows to all processes. */
static bool is_kernel(const struct profile_location *l, const char *image)
{
	return image_is_in_kernel(image) ||
	       (l->address >> 63 && image_kind(image) != IMAGE_VSYSCALL);
}

/* Whether the options name this function; NULL: code of the image that has no name. */
static bool is_wanted(const struct collector *c, const struct call_frame *f,
		      const struct profile_function *function)
{
	const char *wanted = c->o->function;

	if (!wanted || !row_image_is(f->image, c->o->image))
		return false;
	if (function)
		return row_function_is(function->name, wanted) ||
		       row_function_is(function->system_name, wanted);
	return strcmp(f->name, wanted) == 0;
}

/* One line of a location; of one without any, the location itself. */
static int add_line(struct collector *c, uint32_t location, uint32_t line, uint32_t *id)
{
	const struct profile_location *l = &c->p->locations[location];
	const struct profile_image *image = profile_location_image(c->p, location);
	const struct profile_function *function = NULL;
	struct call_frame frame = { .image = image && image->path[0] ? image->path : row_unknown };
	struct call_frame_key key = { .base = row_unknown };
	int err;

	if (frame.image != row_unknown)
		key.base = c->bases[image - c->p->images];
	if (l->line_count) {
		uint32_t number = c->p->lines[l->first_line + line].function;

		function = &c->p->functions[number];
		key.name = c->names[number];
		frame.name = function->name;
		frame.named = true;
	}
	frame.kernel = is_kernel(l, frame.image);
	frame.inlined = line + 1 < l->line_count;
	err = add_frame(c, &frame, &key, id);
	if (!err && is_wanted(c, &c->t->frames[*id], function))
		c->frames->keys[*id].wanted = true;
	return err;
}

static int find_texts(struct collector *c)
{
	const char *(*base)(const char *) =
		c->t->column_count > 1 ? row_image_of_any_run : text_basename;
	const struct profile *p = c->p;
	int err = 0;

	c->names = calloc(p->function_count + 1, sizeof(*c->names));
	c->bases = calloc(p->image_count + 1, sizeof(*c->bases));
	if (!c->names || !c->bases)
		return -ENOMEM;
	for (size_t i = 0; i < p->function_count && !err; i++)
		err = find_text(c->frames, p->functions[i].name, &c->names[i]);
	for (size_t i = 0; i < p->image_count && !err; i++)
		err = find_text(c->frames, base(p->images[i].path), &c->bases[i]);
	return err;
}

static int add_locations(struct collector *c)
{
	const struct profile *p = c->p;
	size_t total = 0;

	for (size_t i = 0; i < p->location_count; i++)
		total += p->locations[i].line_count ?: 1;
	c->places->first = calloc(p->location_count + 1, sizeof(*c->places->first));
	c->places->frames = calloc(total + 1, sizeof(*c->places->frames));
	if (!c->places->first || !c->places->frames)
		return -ENOMEM;
	total = 0;
	for (size_t i = 0; i < p->location_count; i++) {
		uint32_t lines = p->locations[i].line_count ?: 1;

		for (uint32_t line = 0; line < lines; line++)
			if (add_line(c, i, line, &c->places->frames[total++]))
				return -ENOMEM;
		c->places->first[i + 1] = total;
	}
	return 0;
}

/* "node 1234", as far as it is known. */
static int add_runner(struct collector *c, const char *comm, uint32_t number, uint32_t *id)
{
	struct call_frame frame = { .image = "", .named = true };
	struct call_frame_key key = { .base = "" };
	char *name;
	int n;

	if (!comm[0])
		comm = row_unknown;
	n = number ? asprintf(&name, "%s %" PRIu32, comm, number) : asprintf(&name, "%s", comm);
	frame.name = keep_name(c->t, n < 0 ? NULL : name);
	if (!frame.name || find_text(c->frames, frame.name, &key.name))
		return -ENOMEM;
	return add_frame(c, &frame, &key, id);
}

/* The process of each label, then the main thread before its others. */
static int compare_labels(const void *one, const void *other, void *context)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	const struct profile_labels *labels = context, *x = &labels[a], *y = &labels[b];
	int order = compare_u64(x->pid, y->pid);

	order = order ?: (x->tid != x->pid) - (y->tid != y->pid);
	return order ?: compare_u64(a, b);
}

/* Threads may have names of their own: a process has its main thread's, or its first one's. */
static int add_runners(struct collector *c, const uint32_t *order)
{
	const struct profile_labels *labels = c->p->labels;
	const char *comm = "";

	for (size_t i = 0; i < c->p->label_count; i++) {
		const struct profile_labels *l = &labels[order[i]];

		if (i == 0 || !l->pid || l->pid != labels[order[i - 1]].pid)
			comm = l->comm;
		if (add_runner(c, comm, l->pid, &c->places->process[order[i]]) ||
		    add_runner(c, l->comm, l->tid, &c->places->thread[order[i]]))
			return -ENOMEM;
	}
	if (add_runner(c, "", 0, &c->places->process[c->p->label_count]))
		return -ENOMEM;
	c->places->thread[c->p->label_count] = c->places->process[c->p->label_count];
	return 0;
}

static int add_labels(struct collector *c)
{
	size_t count = c->p->label_count;
	uint32_t *order = calloc(count + 1, sizeof(*order));
	int err = -ENOMEM;

	c->places->process = calloc(count + 1, sizeof(*c->places->process));
	c->places->thread = calloc(count + 1, sizeof(*c->places->thread));
	if (order && c->places->process && c->places->thread) {
		for (size_t i = 0; i < count; i++)
			order[i] = i;
		if (count)
			qsort_r(order, count, sizeof(*order), compare_labels, c->p->labels);
		err = add_runners(c, order);
	}
	free(order);
	return err;
}

int call_places_make(struct call_places *places, struct call_tree *t, struct call_frames *frames,
		     const struct profile *p, const struct call_tree_options *o)
{
	struct collector c = { .places = places, .t = t, .frames = frames, .p = p, .o = o };
	int err = find_texts(&c);

	err = err ?: add_locations(&c);
	if (!err && o->roots != CALL_TREE_FUNCTIONS && !o->function)
		err = add_labels(&c);
	free(c.names);
	free(c.bases);
	return err;
}

void call_places_free(struct call_places *places)
{
	free(places->first);
	free(places->frames);
	free(places->process);
	free(places->thread);
}

void call_frames_free(struct call_frames *frames)
{
	free(frames->keys);
	free(frames->texts);
	index_free(&frames->index);
	index_free(&frames->text_index);
}
