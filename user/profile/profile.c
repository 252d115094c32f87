// SPDX-License-Identifier: GPL-2.0-only
#include "profile/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/array.h"

#define RESERVE(p, array, room, need) \
	array_reserve(&(p)->array, &(p)->room, (need), sizeof(*(p)->array))

struct profile *profile_new(void)
{
	struct profile *p = calloc(1, sizeof(*p));
	const char *empty;

	if (p && profile_string(p, "", &empty)) {
		profile_free(p);
		return NULL;
	}
	if (p)
		p->event = empty;
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->image_count; i++)
		if (p->images[i].fd >= 0)
			close(p->images[i].fd);
	for (size_t i = 0; i < p->string_count; i++)
		free(p->strings[i]);
	free(p->strings);
	free(p->totals.lost);
	free(p->value_types);
	free(p->images);
	free(p->mappings);
	free(p->functions);
	free(p->lines);
	free(p->locations);
	free(p->labels);
	free(p->frames);
	free(p->samples);
	free(p->values);
	free(p->comments);
	free(p->warnings);
	index_free(&p->string_index);
	index_free(&p->image_index);
	index_free(&p->location_index);
	index_free(&p->function_index);
	index_free(&p->label_index);
	index_free(&p->sample_index);
	free(p);
}

struct text {
	const char *start;
	size_t size;
};

static bool string_equal(const void *array, uint32_t id, const void *key)
{
	const char *const *strings = array;
	const struct text *text = key;

	return strncmp(strings[id], text->start, text->size) == 0 &&
	       strings[id][text->size] == '\0';
}

int profile_string_n(struct profile *p, const char *start, size_t size, const char **interned)
{
	struct text text = { start, strnlen(start, size) };
	uint64_t hash = hash_bytes(start, text.size, 0);
	uint32_t id = index_find(&p->string_index, hash, string_equal, p->strings, &text);
	char *copy;

	if (id != INDEX_NONE) {
		*interned = p->strings[id];
		return 0;
	}
	if (RESERVE(p, strings, string_room, p->string_count + 1))
		return -ENOMEM;
	copy = strndup(start, text.size);
	if (!copy)
		return -ENOMEM;
	if (index_add(&p->string_index, hash, p->string_count)) {
		free(copy);
		return -ENOMEM;
	}
	p->strings[p->string_count++] = copy;
	*interned = copy;
	return 0;
}

int profile_string(struct profile *p, const char *text, const char **interned)
{
	return profile_string_n(p, text, strlen(text), interned);
}

int profile_add_value_type(struct profile *p, const char *type, const char *unit)
{
	struct profile_value_type entry;

	if (profile_string(p, type, &entry.type) || profile_string(p, unit, &entry.unit) ||
	    RESERVE(p, value_types, value_type_room, p->value_type_count + 1))
		return -ENOMEM;
	p->value_types[p->value_type_count++] = entry;
	return 0;
}

static bool image_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_image *a = (const struct profile_image *)array + id, *b = key;

	return a->path == b->path && a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

int profile_add_image(struct profile *p, const char *path, const uint8_t *build_id,
		      size_t build_id_size, uint32_t *id)
{
	struct profile_image entry = { .fd = -1 };
	uint64_t hash;

	if (build_id_size > sizeof(entry.build_id))
		build_id_size = sizeof(entry.build_id);
	if (build_id_size)
		memcpy(entry.build_id, build_id, build_id_size);
	entry.build_id_size = build_id_size;
	if (profile_string(p, path, &entry.path))
		return -ENOMEM;
	hash = hash_bytes(entry.build_id, build_id_size, (uintptr_t)entry.path);
	*id = index_find(&p->image_index, hash, image_equal, p->images, &entry);
	if (*id != INDEX_NONE)
		return 0;
	if (RESERVE(p, images, image_room, p->image_count + 1) ||
	    index_add(&p->image_index, hash, p->image_count))
		return -ENOMEM;
	*id = p->image_count++;
	p->images[*id] = entry;
	return 0;
}

int profile_add_mapping(struct profile *p, uint64_t start, uint64_t limit, uint64_t offset,
			uint32_t image, uint32_t *id)
{
	if (RESERVE(p, mappings, mapping_room, p->mapping_count + 1))
		return -ENOMEM;
	*id = p->mapping_count++;
	p->mappings[*id] = (struct profile_mapping){ start, limit, offset, image };
	return 0;
}

static bool function_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_function *a = (const struct profile_function *)array + id, *b = key;

	return a->name == b->name && a->system_name == b->system_name && a->file == b->file &&
	       a->start_line == b->start_line;
}

int profile_add_function(struct profile *p, const struct profile_function *f, uint32_t *id)
{
	struct profile_function entry = { .start_line = f->start_line };
	uint64_t hash;

	if (profile_string(p, f->name, &entry.name) ||
	    profile_string(p, f->system_name, &entry.system_name) ||
	    profile_string(p, f->file, &entry.file))
		return -ENOMEM;
	hash = hash_u64((uintptr_t)entry.name, (uintptr_t)entry.file);
	hash = hash_u64((uintptr_t)entry.system_name, hash + entry.start_line);
	*id = index_find(&p->function_index, hash, function_equal, p->functions, &entry);
	if (*id != INDEX_NONE)
		return 0;
	if (RESERVE(p, functions, function_room, p->function_count + 1) ||
	    index_add(&p->function_index, hash, p->function_count))
		return -ENOMEM;
	*id = p->function_count++;
	p->functions[*id] = entry;
	return 0;
}

static bool location_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_location *a = (const struct profile_location *)array + id, *b = key;

	return a->address == b->address && a->mapping == b->mapping;
}

int profile_add_location(struct profile *p, uint64_t address, uint32_t mapping, uint32_t *id)
{
	struct profile_location entry = {
		.address = address,
		.image_address = address,
		.mapping = mapping,
	};
	uint64_t hash = hash_u64(address, mapping);

	*id = index_find(&p->location_index, hash, location_equal, p->locations, &entry);
	if (*id != INDEX_NONE)
		return 0;
	if (RESERVE(p, locations, location_room, p->location_count + 1) ||
	    index_add(&p->location_index, hash, p->location_count))
		return -ENOMEM;
	if (mapping != PROFILE_NONE)
		entry.image_address += p->mappings[mapping].offset - p->mappings[mapping].start;
	*id = p->location_count++;
	p->locations[*id] = entry;
	return 0;
}

int profile_set_lines(struct profile *p, uint32_t location, const struct profile_line *lines,
		      uint32_t count)
{
	if (RESERVE(p, lines, line_room, p->line_count + count))
		return -ENOMEM;
	p->locations[location].first_line = p->line_count;
	p->locations[location].line_count = count;
	if (count)
		memcpy(p->lines + p->line_count, lines, count * sizeof(*lines));
	p->line_count += count;
	return 0;
}

static bool labels_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_labels *a = (const struct profile_labels *)array + id, *b = key;

	return a->pid == b->pid && a->tid == b->tid && a->comm == b->comm && a->kernel == b->kernel;
}

int profile_add_labels(struct profile *p, const struct profile_labels *labels, uint32_t *id)
{
	struct profile_labels entry = *labels;
	uint64_t hash;

	if (profile_string(p, labels->comm, &entry.comm))
		return -ENOMEM;
	hash = hash_u64((uint64_t)entry.pid << 32 | entry.tid,
			(uintptr_t)entry.comm + entry.kernel);
	*id = index_find(&p->label_index, hash, labels_equal, p->labels, &entry);
	if (*id != INDEX_NONE)
		return 0;
	if (RESERVE(p, labels, label_room, p->label_count + 1) ||
	    index_add(&p->label_index, hash, p->label_count))
		return -ENOMEM;
	*id = p->label_count++;
	p->labels[*id] = entry;
	return 0;
}

struct stack {
	const uint32_t *frames;
	uint32_t depth;
	uint32_t labels;
};

static bool sample_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile *p = array;
	const struct profile_sample *sample = &p->samples[id];
	const struct stack *stack = key;

	return sample->depth == stack->depth && sample->labels == stack->labels &&
	       (stack->depth == 0 || memcmp(p->frames + sample->first_frame, stack->frames,
					    stack->depth * sizeof(*stack->frames)) == 0);
}

static void add_saturating(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = value < 0 ? INT64_MIN : INT64_MAX;
}

static int new_sample(struct profile *p, const struct stack *stack, uint64_t hash)
{
	size_t value_size = (p->value_type_count ?: 1) * sizeof(*p->values);

	if (RESERVE(p, samples, sample_room, p->sample_count + 1) ||
	    RESERVE(p, frames, frame_room, p->frame_count + stack->depth) ||
	    array_reserve(&p->values, &p->value_room, p->sample_count + 1, value_size) ||
	    index_add(&p->sample_index, hash, p->sample_count))
		return -ENOMEM;
	if (stack->depth)
		memcpy(p->frames + p->frame_count, stack->frames,
		       stack->depth * sizeof(*stack->frames));
	p->samples[p->sample_count] = (struct profile_sample){
		.first_frame = p->frame_count,
		.depth = stack->depth,
		.labels = stack->labels,
	};
	p->frame_count += stack->depth;
	memset(p->values + p->sample_count * p->value_type_count, 0, value_size);
	p->sample_count++;
	return 0;
}

int profile_add_sample(struct profile *p, const uint32_t *frames, uint32_t depth, uint32_t labels,
		       const int64_t *values)
{
	struct stack stack = { frames, depth, labels };
	uint64_t hash = hash_bytes(frames, depth * sizeof(*frames), labels);
	uint32_t id = index_find(&p->sample_index, hash, sample_equal, p, &stack);

	if (id == INDEX_NONE) {
		id = p->sample_count;
		if (new_sample(p, &stack, hash))
			return -ENOMEM;
	}
	for (size_t i = 0; i < p->value_type_count; i++)
		add_saturating(&p->values[id * p->value_type_count + i], values[i]);
	return 0;
}

int profile_add_lost(struct profile *p, const char *cause, uint64_t count)
{
	struct profile_totals *t = &p->totals;
	struct profile_lost entry = { .count = count };

	if (profile_string(p, cause, &entry.cause))
		return -ENOMEM;
	for (size_t i = 0; i < t->lost_count; i++) {
		if (t->lost[i].cause != entry.cause)
			continue;
		t->lost[i].count += count;
		return 0;
	}
	if (array_reserve(&t->lost, &t->lost_room, t->lost_count + 1, sizeof(*t->lost)))
		return -ENOMEM;
	t->lost[t->lost_count++] = entry;
	return 0;
}

int profile_add_comment(struct profile *p, const char *text)
{
	const char *comment;

	if (profile_string(p, text, &comment) ||
	    RESERVE(p, comments, comment_room, p->comment_count + 1))
		return -ENOMEM;
	p->comments[p->comment_count++] = comment;
	return 0;
}

int profile_warn(struct profile *p, const char *format, ...)
{
	char text[512];
	const char *warning;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (profile_string(p, text, &warning))
		return -ENOMEM;
	for (size_t i = 0; i < p->warning_count; i++)
		if (p->warnings[i] == warning)
			return 0;
	if (RESERVE(p, warnings, warning_room, p->warning_count + 1))
		return -ENOMEM;
	p->warnings[p->warning_count++] = warning;
	return 0;
}

uint32_t profile_find_mapping(const struct profile *p, uint32_t from, uint64_t address)
{
	for (uint32_t i = from; i < p->mapping_count; i++)
		if (address >= p->mappings[i].start && address < p->mappings[i].limit)
			return i;
	return PROFILE_NONE;
}

size_t profile_count_value(const struct profile *p)
{
	for (size_t i = 0; i < p->value_type_count; i++)
		if (strcmp(p->value_types[i].type, "samples") == 0)
			return i;
	return 0;
}

uint64_t profile_total(const struct profile *p)
{
	size_t value = profile_count_value(p);
	uint64_t total = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		total += p->values[i * p->value_type_count + value];
	return total;
}

uint64_t profile_lost(const struct profile *p)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < p->totals.lost_count; i++)
		lost += p->totals.lost[i].count;
	return lost;
}

const struct profile_image *profile_location_image(const struct profile *p, uint32_t location)
{
	uint32_t mapping = p->locations[location].mapping;

	return mapping == PROFILE_NONE ? NULL : &p->images[p->mappings[mapping].image];
}

uint64_t profile_file_pc(const struct profile *p, uint32_t location, uint32_t depth)
{
	return p->locations[location].address + (p->return_addresses && depth > 0);
}
