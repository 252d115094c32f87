// SPDX-License-Identifier: GPL-2.0-only
#include "profile/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/array.h"
#include "util/sum.h"

/* As array_reserve(), of an array of the profile: within its limit. */
static int reserve(struct profile *p, void *array, size_t *room, size_t need, size_t size)
{
	size_t before = *room;

	if (need > before && profile_charge(p, (need - before) * size))
		return -ENOMEM;
	if (array_reserve(array, room, need, size))
		return -ENOMEM;
	/* Together with what was asked for, all that it has grown. */
	p->bytes += need > before ? (*room - need) * size : 0;
	return 0;
}

#define RESERVE(p, array, room, need) \
	reserve(p, &(p)->array, &(p)->room, (need), sizeof(*(p)->array))

/* Finds the element of an array of the profile that equals `entry`, or appends that. */
static int find_or_add(struct profile *p, struct index *index, uint64_t hash, index_equal *equal,
		       void *array, size_t *count, size_t *room, size_t size, const void *entry,
		       uint32_t *id)
{
	char *elements;

	memcpy(&elements, array, sizeof(elements));
	*id = index_find(index, hash, equal, elements, entry);
	if (*id != INDEX_NONE)
		return 0;
	if (reserve(p, array, room, *count + 1, size) || index_add(index, hash, *count))
		return -ENOMEM;
	memcpy(&elements, array, sizeof(elements));
	memcpy(elements + *count * size, entry, size);
	*id = (*count)++;
	return 0;
}

#define FIND_OR_ADD(p, one, many, hash, entry, id)                                          \
	find_or_add(p, &(p)->one##_index, hash, one##_equal, &(p)->many, &(p)->one##_count, \
		    &(p)->one##_room, sizeof(*(p)->many), entry, id)

int profile_charge(struct profile *p, size_t bytes)
{
	p->too_large |= p->bytes_max && p->bytes + bytes > p->bytes_max;
	if (p->too_large)
		return -ENOMEM;
	p->bytes += bytes;
	return 0;
}

struct profile *profile_new(void)
{
	struct profile *p = calloc(1, sizeof(*p));
	const char *empty;

	/* frames is never NULL, not even with empty stacks only. */
	if (p && (profile_string(p, "", &empty) || RESERVE(p, frames, frame_room, 1))) {
		profile_free(p);
		return NULL;
	}
	if (p)
		p->stacks = p->event = p->host = p->command = p->drop_frames = p->keep_frames =
			empty;
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->image_count; i++) {
		if (p->images[i].fd >= 0)
			close(p->images[i].fd);
		if (p->images[i].root >= 0)
			close(p->images[i].root);
	}
	array_free_texts(p->strings, p->string_count);
	free(p->totals.lost);
	free(p->totals.stack_ends);
	free(p->totals.throttled);
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
	tick_list_free(&p->ticks);
	wait_list_free(&p->waits);
	wait_list_free(&p->calls);
	free(p->arcs);
	free(p->arc_values);
	free(p->walls);
	free(p->comments);
	free(p->warnings);
	for (size_t i = 0; i < p->extra_count; i++)
		free((char *)p->extras[i].bytes);
	free(p->extras);
	for (size_t i = 0; i < p->tag_list_count; i++)
		free(p->tag_lists[i]);
	free(p->tag_lists);
	index_free(&p->string_index);
	index_free(&p->image_index);
	index_free(&p->location_index);
	index_free(&p->line_index);
	index_free(&p->function_index);
	index_free(&p->label_index);
	index_free(&p->tag_index);
	index_free(&p->sample_index);
	index_free(&p->arc_index);
	index_free(&p->extra_index);
	index_free(&p->wall_index);
	free(p);
}

struct text {
	const char *start;
	size_t size;
};

EQUAL(string_equal, char *const, struct text,
      strncmp(*a, b->start, b->size) == 0 && (*a)[b->size] == '\0')

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
	if (RESERVE(p, strings, string_room, p->string_count + 1) || profile_charge(p, text.size))
		return -ENOMEM;
	copy = strndup(start, text.size);
	if (!copy)
		return -ENOMEM;
	if (index_add(&p->string_index, hash, p->string_count)) {
		free(copy);
		return -ENOMEM;
	}
	p->strings[p->string_count++] = copy;
	p->string_bytes += text.size;
	*interned = copy;
	return 0;
}

int profile_string(struct profile *p, const char *text, const char **interned)
{
	return profile_string_n(p, text, strlen(text), interned);
}

int profile_add_value_type(struct profile *p, const char *type, const char *unit)
{
	struct profile_value_type entry = { 0 };

	if (profile_string(p, type, &entry.type) || profile_string(p, unit, &entry.unit) ||
	    profile_string(p, "", &entry.title) || profile_string(p, "", &entry.formula) ||
	    RESERVE(p, value_types, value_type_room, p->value_type_count + 1))
		return -ENOMEM;
	p->value_types[p->value_type_count++] = entry;
	return 0;
}

/* A value is such a sum, in any file, if it has this type and unit. */
static const struct {
	const char *type, *unit;
} sums[] = {
	[PROFILE_SUM_SAMPLES] = { "samples", "count" },
	[PROFILE_SUM_CPU] = { "cpu", "nanoseconds" },
	[PROFILE_SUM_DELAY] = { PROFILE_DELAY_TYPE, "nanoseconds" },
	[PROFILE_SUM_WALL] = { PROFILE_WALL_TYPE, "nanoseconds" },
	[PROFILE_SUM_WOKE] = { "woke", "nanoseconds" },
	[PROFILE_SUM_SPAN] = { "span", "nanoseconds" },
	[PROFILE_SUM_LATENCY] = { PROFILE_LATENCY_TYPE, "nanoseconds" },
};

static bool is_sum(const struct profile_value_type *t, enum profile_sum sum)
{
	return strcmp(t->type, sums[sum].type) == 0 && strcmp(t->unit, sums[sum].unit) == 0;
}

enum profile_sum profile_sum(const struct profile *p, size_t value)
{
	enum profile_sum sum = sizeof(sums) / sizeof(*sums) - 1;

	while (sum && !is_sum(&p->value_types[value], sum))
		sum--;
	return sum;
}

size_t profile_find_sum(const struct profile *p, enum profile_sum sum)
{
	size_t i = 0;

	while (i < p->value_type_count && !is_sum(&p->value_types[i], sum))
		i++;
	return i;
}

int profile_add_sum(struct profile *p, enum profile_sum sum)
{
	return profile_add_value_type(p, sums[sum].type, sums[sum].unit);
}

int profile_add_value_like(struct profile *p, const struct profile_value_type *like)
{
	struct profile_value_type *entry;

	if (profile_add_value_type(p, like->type, like->unit))
		return -ENOMEM;
	entry = &p->value_types[p->value_type_count - 1];
	entry->tick_ns = like->tick_ns;
	entry->period = like->period;
	return profile_string(p, like->title, &entry->title)
		       ?: profile_string(p, like->formula, &entry->formula);
}

int profile_add_clock(struct profile *p, uint64_t tick_ns)
{
	int err = profile_add_sum(p, PROFILE_SUM_SAMPLES);

	if (!err && tick_ns)
		err = profile_add_sum(p, PROFILE_SUM_CPU);
	if (!err)
		profile_set_tick_ns(p, tick_ns);
	return err;
}

int profile_add_events(struct profile *p, uint64_t period)
{
	int err = profile_add_sum(p, PROFILE_SUM_SAMPLES);

	if (!err)
		p->value_types[p->value_type_count - 1].period = period;
	return err;
}

/* Whether a value counts samples, as which the event may be named. */
static bool is_samples(const struct profile *p, size_t value)
{
	const struct profile_value_type *t = &p->value_types[value];

	return profile_sum(p, value) == PROFILE_SUM_SAMPLES ||
	       (strcmp(t->unit, "count") == 0 && strcmp(t->type, p->event) == 0);
}

bool profile_has_clock(const struct profile *p)
{
	size_t samples = profile_find_sum(p, PROFILE_SUM_SAMPLES);

	return samples == p->value_type_count || !p->value_types[samples].period;
}

uint64_t profile_tick_ns(const struct profile *p)
{
	uint64_t tick_ns = 0;

	for (size_t i = 0; i < p->value_type_count && !tick_ns; i++)
		tick_ns = p->value_types[i].tick_ns;
	return profile_has_clock(p) ? tick_ns : 0;
}

void profile_set_tick_ns(struct profile *p, uint64_t tick_ns)
{
	bool any = false;

	for (size_t i = 0; i < p->value_type_count; i++)
		if (is_samples(p, i) || profile_is_clock_time(p, i)) {
			p->value_types[i].tick_ns = tick_ns;
			any = true;
		}
	if (!any && p->value_type_count)
		p->value_types[0].tick_ns = tick_ns;
}

uint64_t profile_ticks_ns(const struct profile *p, uint64_t ticks)
{
	uint64_t ns;

	return __builtin_mul_overflow(ticks, profile_tick_ns(p), &ns) ? UINT64_MAX : ns;
}

double profile_hz(const struct profile *p)
{
	uint64_t tick_ns = profile_tick_ns(p);

	/*
	 * The period only approximates the frequency that was asked for (user/capture/events.h),
	 * but many profiles hold no more.
	 */
	return p->frequency && profile_has_clock(p) ? (double)p->frequency
	       : tick_ns			    ? 1e9 / (double)tick_ns
						    : 0;
}

uint64_t profile_value_ns(const struct profile *p, size_t value)
{
	uint64_t tick_ns = profile_tick_ns(p);

	if (value >= p->value_type_count || !tick_ns)
		return 0;
	return profile_is_clock_time(p, value) ? 1 : is_samples(p, value) ? tick_ns : 0;
}

void profile_set_ticks(const struct profile *p, uint64_t ticks, int64_t *values)
{
	values[PROFILE_SAMPLES] = saturate_i64(ticks);
	if (p->value_type_count > PROFILE_CPU && profile_tick_ns(p))
		values[PROFILE_CPU] = saturate_i64(profile_ticks_ns(p, ticks));
}

int64_t profile_off_cpu(const struct profile *p, size_t sample)
{
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);
	const int64_t *values = &p->values[sample * p->value_type_count];
	int64_t cpu;

	if (wall == p->value_type_count)
		return 0;
	cpu = profile_is_clock_time(p, PROFILE_CPU) ? values[PROFILE_CPU] : 0;
	return values[wall] > cpu && cpu >= 0 ? values[wall] - cpu : 0;
}

bool profile_is_recording(const struct profile *p)
{
	if ((!*p->event && !p->totals.known) || p->value_type_count <= PROFILE_CPU ||
	    !profile_is_clock_time(p, PROFILE_CPU) ||
	    profile_sum(p, PROFILE_SAMPLES) != PROFILE_SUM_SAMPLES)
		return false;
	for (size_t i = PROFILE_CPU + 1; i < p->value_type_count; i++)
		if (profile_sum(p, i) == PROFILE_SUM_OTHER)
			return false;
	return true;
}

bool profile_has_delay(const struct profile *p)
{
	return profile_is_recording(p) && p->value_type_count == PROFILE_DELAY + 1 &&
	       profile_sum(p, PROFILE_DELAY) == PROFILE_SUM_DELAY;
}

bool profile_is_clock_time(const struct profile *p, size_t value)
{
	if (value >= p->value_type_count || profile_sum(p, value) != PROFILE_SUM_CPU)
		return false;
	for (size_t i = 0; i < p->value_type_count; i++)
		if (strcmp(p->value_types[i].unit, "count") == 0)
			return true;
	return false;
}

struct profile_meaning profile_meaning(const struct profile *p, size_t value)
{
	const struct profile_totals *totals = &p->totals;
	const struct profile_value_type *t = &p->value_types[value];
	struct profile_meaning m = { 0 };
	double tick = 0; /* seconds */

	if (value >= p->value_type_count)
		return m;
	if (profile_tick_ns(p))
		tick = (double)profile_tick_ns(p) / 1e9;
	else if (profile_has_clock(p) && totals->known && totals->ticks)
		tick = (double)totals->cpu_ns / 1e9 / (double)totals->ticks;
	if (strcmp(t->unit, "nanoseconds") == 0) {
		m.seconds = 1e-9;
		m.samples = tick > 0 && profile_is_clock_time(p, value) ? 1e-9 / tick : 0;
	} else if (is_samples(p, value) && !t->period) {
		m.seconds = tick;
		m.samples = 1;
	} else if (strcmp(t->unit, "count") == 0) {
		m.samples = t->period > 0;
	}
	for (size_t i = 0; i < p->sample_count && m.samples > 0; i++)
		if (p->values[i * p->value_type_count + value] < 0)
			m.samples = 0;
	return m;
}

/* Extends each row of an array with zeros. */
static int widen_rows(int64_t **rows, size_t *room, size_t count, size_t width, size_t wider)
{
	int64_t *wide = calloc(count + 1, wider * sizeof(*wide));

	if (!wide)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		memcpy(wide + i * wider, *rows + i * width, width * sizeof(*wide));
	free(*rows);
	*rows = wide;
	*room = count + 1;
	return 0;
}

int profile_widen_values(struct profile *p, size_t width)
{
	size_t wider = p->value_type_count;

	if (width == wider || width == 0)
		return 0;
	if (widen_rows(&p->values, &p->value_room, p->sample_count, width, wider))
		return -ENOMEM;
	return widen_rows(&p->arc_values, &p->arc_value_room, p->arc_count, width, wider);
}

EQUAL(image_equal, struct profile_image, struct profile_image,
      SAME(path) && SAME(provider) && SAME(build_id_size) &&
	      memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
	      (a->build_id_size || a->file_id == b->file_id))

int profile_add_image(struct profile *p, const char *path, const uint8_t *build_id,
		      size_t build_id_size, uint32_t *id)
{
	struct profile_image image = { .path = path };

	build_id_size = MIN(build_id_size, sizeof(image.build_id));
	if (build_id_size)
		memcpy(image.build_id, build_id, build_id_size);
	image.build_id_size = build_id_size;
	return profile_add_image_like(p, &image, id);
}

int profile_add_image_like(struct profile *p, const struct profile_image *image, uint32_t *id)
{
	struct profile_image entry = {
		.fd = -1,
		.root = -1,
		.build_id_size = image->build_id_size,
		.provider = image->provider,
		.file_id = image->file_id,
	};
	uint64_t hash;

	memcpy(entry.build_id, image->build_id, image->build_id_size);
	if (profile_string(p, image->path, &entry.path))
		return -ENOMEM;
	hash = hash_bytes(entry.build_id, entry.build_id_size, (uintptr_t)entry.path);
	return FIND_OR_ADD(p, image, images, hash, &entry, id);
}

uint64_t profile_file_id(uint64_t device, uint64_t inode, uint64_t size, struct timespec modified)
{
	const uint64_t parts[] = { device, inode, size, modified.tv_sec, modified.tv_nsec };
	uint64_t id = 0xcbf29ce484222325ULL; /* FNV-1a, of words: hash_u64() differs by process */

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		id = (id ^ parts[i]) * 0x100000001b3ULL;
		id ^= id >> 32;
	}
	return id ?: 1;
}

int profile_add_mapping(struct profile *p, uint64_t start, uint64_t limit, uint64_t offset,
			uint32_t image, uint32_t *id)
{
	if (RESERVE(p, mappings, mapping_room, p->mapping_count + 1))
		return -ENOMEM;
	*id = p->mapping_count++;
	p->mappings[*id] = (struct profile_mapping){ start, limit, offset, image, false };
	return 0;
}

EQUAL(function_equal, struct profile_function, struct profile_function,
      SAME(name) && SAME(system_name) && SAME(file) && SAME(start_line))

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
	return FIND_OR_ADD(p, function, functions, hash, &entry, id);
}

EQUAL(location_equal, struct profile_location, struct profile_location,
      SAME(address) && SAME(mapping))

static void set_image_address(const struct profile *p, struct profile_location *l)
{
	l->image_address = l->address;
	if (l->mapping != PROFILE_NONE && !p->mappings[l->mapping].linked)
		l->image_address += p->mappings[l->mapping].offset - p->mappings[l->mapping].start;
}

/* A new location, in no index. */
static int new_location(struct profile *p, const struct profile_location *entry, uint32_t *id)
{
	if (RESERVE(p, locations, location_room, p->location_count + 1))
		return -ENOMEM;
	*id = p->location_count++;
	p->locations[*id] = *entry;
	set_image_address(p, &p->locations[*id]);
	return 0;
}

uint32_t profile_find_location(const struct profile *p, uint64_t address, uint32_t mapping)
{
	struct profile_location key = { .address = address, .mapping = mapping };

	return index_find(&p->location_index, hash_u64(address, mapping), location_equal,
			  p->locations, &key);
}

int profile_add_location(struct profile *p, uint64_t address, uint32_t mapping, uint32_t *id)
{
	struct profile_location entry = { .address = address, .mapping = mapping };

	*id = profile_find_location(p, address, mapping);
	if (*id != PROFILE_NONE)
		return 0;
	if (index_add(&p->location_index, hash_u64(address, mapping), p->location_count))
		return -ENOMEM;
	return new_location(p, &entry, id);
}

int profile_place_location(struct profile *p, uint32_t location, uint32_t mapping)
{
	struct profile_location *l = &p->locations[location];

	/* The old index entry is dead: the location no longer equals its key. */
	if (index_add(&p->location_index, hash_u64(l->address, mapping), location))
		return -ENOMEM;
	l->mapping = mapping;
	set_image_address(p, l);
	return 0;
}

struct line_location {
	struct profile_location location;
	const struct profile_line *lines; /* with interned files */
};

static bool line_location_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile *p = array;
	const struct profile_location *l = &p->locations[id];
	const struct line_location *other = key;

	if (l->address != other->location.address || l->mapping != other->location.mapping ||
	    l->line_count != other->location.line_count)
		return false;
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *a = &p->lines[l->first_line + i], *b = &other->lines[i];

		if (a->function != b->function || a->line != b->line || a->column != b->column ||
		    a->file != b->file)
			return false;
	}
	return true;
}

/* Appends lines behind all others, where they stay if the caller moves p->line_count. */
static int place_lines(struct profile *p, const struct profile_line *lines, uint32_t count)
{
	if (RESERVE(p, lines, line_room, p->line_count + count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct profile_line *line = &p->lines[p->line_count + i];

		*line = lines[i];
		if (line->file && profile_string(p, line->file, &line->file))
			return -ENOMEM;
	}
	return 0;
}

int profile_add_line_location(struct profile *p, uint64_t address, uint32_t mapping,
			      const struct profile_line *lines, uint32_t count, uint32_t *id)
{
	struct line_location key = { .location = { .address = address,
						   .image_address = address,
						   .mapping = mapping,
						   .line_count = count } };
	uint64_t hash = hash_u64(address, mapping);

	if (place_lines(p, lines, count))
		return -ENOMEM;
	key.location.first_line = p->line_count;
	key.lines = p->lines + p->line_count;
	for (uint32_t i = 0; i < count; i++) {
		hash = hash_u64((uint64_t)key.lines[i].function << 32 | key.lines[i].line, hash);
		hash = hash_u64((uintptr_t)key.lines[i].file, hash);
	}
	*id = index_find(&p->line_index, hash, line_location_equal, p, &key);
	if (*id != INDEX_NONE)
		return 0;
	if (index_add(&p->line_index, hash, p->location_count))
		return -ENOMEM;
	p->line_count += count;
	return new_location(p, &key.location, id);
}

int profile_add_named_location(struct profile *p, const char *name, uint32_t mapping, uint32_t *id)
{
	const struct profile_function function = { name, name, "", 0 };
	struct profile_line line = { 0 };

	return profile_add_function(p, &function, &line.function)
		       ?: profile_add_line_location(p, 0, mapping, &line, 1, id);
}

int profile_set_lines(struct profile *p, uint32_t location, const struct profile_line *lines,
		      uint32_t count)
{
	if (place_lines(p, lines, count))
		return -ENOMEM;
	p->locations[location].first_line = p->line_count;
	p->locations[location].line_count = count;
	p->line_count += count;
	return 0;
}

struct tags {
	const struct profile_tag *tags;
	uint32_t count;
};

static bool text_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool tag_list_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_tag *a = ((struct profile_tag *const *)array)[id];
	const struct tags *tags = key;

	for (uint32_t i = 0; i < tags->count; i++) {
		const struct profile_tag *b = &tags->tags[i];

		if (!text_equal(a[i].key, b->key) || !text_equal(a[i].text, b->text) ||
		    !text_equal(a[i].unit, b->unit) || a[i].number != b->number)
			return false;
	}
	return !a[tags->count].key;
}

/*
 * Sets *list to a copy of the tags with their texts interned, which ends with a NULL key. There is
 * one list for all labels with these tags: equal lists are the same pointer.
 */
static int intern_tags(struct profile *p, const struct tags *tags, const struct profile_tag **list)
{
	uint64_t hash = tags->count;
	struct profile_tag *copy;
	uint32_t id;

	*list = NULL;
	if (!tags->count)
		return 0;
	copy = calloc(tags->count + 1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < tags->count; i++) {
		const struct profile_tag *from = &tags->tags[i];

		copy[i].number = from->text ? 0 : from->number;
		if (profile_string(p, from->key, &copy[i].key) ||
		    (from->text && profile_string(p, from->text, &copy[i].text)) ||
		    profile_string(p, from->unit ?: "", &copy[i].unit)) {
			free(copy);
			return -ENOMEM;
		}
		hash = hash_u64((uintptr_t)copy[i].key, hash);
		hash = hash_u64((uintptr_t)copy[i].text ^ copy[i].number, hash);
	}
	id = index_find(&p->tag_index, hash, tag_list_equal, p->tag_lists,
			&(struct tags){ copy, tags->count });
	if (id != INDEX_NONE) {
		free(copy);
		*list = p->tag_lists[id];
		return 0;
	}
	if (RESERVE(p, tag_lists, tag_list_room, p->tag_list_count + 1) ||
	    profile_charge(p, tags->count * sizeof(*copy)) ||
	    index_add(&p->tag_index, hash, p->tag_list_count)) {
		free(copy);
		return -ENOMEM;
	}
	p->tag_lists[p->tag_list_count++] = copy;
	*list = copy;
	return 0;
}

EQUAL(label_equal, struct profile_labels, struct profile_labels,
      SAME(pid) && SAME(tid) && SAME(generation) && SAME(comm) && SAME(kernel) && SAME(tags))

int profile_add_labels(struct profile *p, const struct profile_labels *labels, uint32_t *id)
{
	struct profile_labels entry = *labels;
	uint64_t hash;

	if (profile_string(p, labels->comm, &entry.comm) ||
	    intern_tags(p, &(struct tags){ labels->tags, labels->tag_count }, &entry.tags))
		return -ENOMEM;
	hash = hash_u64((uint64_t)entry.pid << 32 | entry.tid,
			(uintptr_t)entry.comm + entry.kernel);
	hash = hash_u64((uintptr_t)entry.tags + entry.generation, hash);
	return FIND_OR_ADD(p, label, labels, hash, &entry, id);
}

int profile_tag_labels(struct profile *p, uint32_t number, const struct profile_tag *tags,
		       uint32_t count, uint32_t *id)
{
	struct profile_labels labels = p->labels[number];
	struct profile_tag *all = calloc(labels.tag_count + count, sizeof(*all));
	int err;

	if (!all)
		return -ENOMEM;
	if (labels.tag_count)
		memcpy(all, labels.tags, labels.tag_count * sizeof(*all));
	memcpy(all + labels.tag_count, tags, count * sizeof(*all));
	labels.tags = all;
	labels.tag_count += count;
	err = profile_add_labels(p, &labels, id);
	free(all);
	return err;
}

void profile_relabel(struct profile *p, const uint32_t *map)
{
	for (size_t i = 0; i < p->sample_count; i++)
		p->samples[i].labels = map[p->samples[i].labels];
	for (size_t i = 0; i < p->arc_count; i++)
		p->arcs[i].labels = map[p->arcs[i].labels];
	for (size_t i = 0; i < p->wall_count; i++)
		p->walls[i].labels = map[p->walls[i].labels];
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

int profile_sample(struct profile *p, const uint32_t *frames, uint32_t depth, uint32_t labels,
		   uint32_t *id)
{
	size_t value_size = (p->value_type_count ?: 1) * sizeof(*p->values);
	struct stack stack = { frames, depth, labels };
	uint64_t hash = hash_bytes(frames, depth * sizeof(*frames), labels);

	*id = index_find(&p->sample_index, hash, sample_equal, p, &stack);
	if (*id != INDEX_NONE)
		return 0;
	if (RESERVE(p, samples, sample_room, p->sample_count + 1) ||
	    RESERVE(p, frames, frame_room, p->frame_count + depth) ||
	    reserve(p, &p->values, &p->value_room, p->sample_count + 1, value_size) ||
	    index_add(&p->sample_index, hash, p->sample_count))
		return -ENOMEM;
	*id = p->sample_count++;
	p->samples[*id] = (struct profile_sample){
		.first_frame = p->frame_count,
		.depth = depth,
		.labels = labels,
	};
	if (depth)
		memcpy(p->frames + p->frame_count, frames, depth * sizeof(*frames));
	p->frame_count += depth;
	memset(p->values + *id * p->value_type_count, 0, value_size);
	return 0;
}

void profile_add_values(struct profile *p, uint32_t sample, const int64_t *values)
{
	for (size_t i = 0; i < p->value_type_count; i++)
		add_i64(&p->values[sample * p->value_type_count + i], values[i]);
}

int profile_add_sample(struct profile *p, const uint32_t *frames, uint32_t depth, uint32_t labels,
		       const int64_t *values)
{
	uint32_t id;

	if (profile_sample(p, frames, depth, labels, &id))
		return -ENOMEM;
	profile_add_values(p, id, values);
	return 0;
}

EQUAL(arc_equal, struct profile_arc, struct profile_arc,
      SAME(from) && SAME(to) && SAME(labels) && SAME(kind))

int profile_add_arc(struct profile *p, const struct profile_arc *arc, const int64_t *values)
{
	size_t value_size = (p->value_type_count ?: 1) * sizeof(*p->arc_values);
	uint64_t hash = hash_u64((uint64_t)arc->from << 32 | arc->to,
				 (uint64_t)arc->labels << 2 | arc->kind);
	struct profile_arc none = *arc;
	size_t before = p->arc_count;
	uint32_t id;

	none.count = none.executed = 0;
	if (reserve(p, &p->arc_values, &p->arc_value_room, before + 1, value_size) ||
	    FIND_OR_ADD(p, arc, arcs, hash, &none, &id))
		return -ENOMEM;
	if (id == before)
		memset(p->arc_values + id * p->value_type_count, 0, value_size);
	add_u64(&p->arcs[id].count, arc->count);
	add_u64(&p->arcs[id].executed, arc->executed);
	for (size_t i = 0; values && i < p->value_type_count; i++)
		add_i64(&p->arc_values[id * p->value_type_count + i], values[i]);
	return 0;
}

EQUAL(wall_equal, struct profile_wall, struct profile_wall, SAME(labels))

void profile_sum_wall(struct profile_wall *to, const struct profile_wall *from)
{
	add_u64(&to->threads, from->threads);
	add_u64(&to->wall_ns, from->wall_ns);
	add_u64(&to->on_cpu_ns, from->on_cpu_ns);
	add_u64(&to->runnable_ns, from->runnable_ns);
	add_u64(&to->blocked_ns, from->blocked_ns);
	add_u64(&to->idle_ns, from->idle_ns);
	add_u64(&to->unknown_ns, from->unknown_ns);
}

int profile_add_wall(struct profile *p, const struct profile_wall *wall)
{
	const struct profile_wall none = { .labels = wall->labels };
	uint32_t id;

	if (FIND_OR_ADD(p, wall, walls, hash_u64(wall->labels, 0), &none, &id))
		return -ENOMEM;
	profile_sum_wall(&p->walls[id], wall);
	return 0;
}

struct profile_wall profile_wall_sum(const struct profile *p)
{
	struct profile_wall sum = { .labels = PROFILE_NONE };

	for (size_t i = 0; i < p->wall_count; i++)
		profile_sum_wall(&sum, &p->walls[i]);
	return sum;
}

EQUAL(extra_equal, struct profile_extra, struct profile_extra,
      SAME(format) && SAME(image) && SAME(size) && memcmp(a->bytes, b->bytes, a->size) == 0)

int profile_add_extra(struct profile *p, const char *format, uint32_t image, const void *bytes,
		      size_t size)
{
	struct profile_extra entry = { NULL, image, bytes, size };
	uint64_t hash = hash_bytes(bytes, size, image);
	char *copy;

	if (profile_string(p, format, &entry.format))
		return -ENOMEM;
	if (index_find(&p->extra_index, hash, extra_equal, p->extras, &entry) != INDEX_NONE)
		return 0;
	copy = malloc(size + 1);
	if (!copy || RESERVE(p, extras, extra_room, p->extra_count + 1) ||
	    index_add(&p->extra_index, hash, p->extra_count)) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, bytes, size);
	copy[size] = '\0';
	entry.bytes = copy;
	p->extras[p->extra_count++] = entry;
	return 0;
}

/*
 * Sets *to to the element of an array that has the same first bytes as `key`, an element with sums
 * of 0, which is appended if there is none. For arrays of few elements.
 */
static int find_sum(void *array, size_t *count, size_t *room, size_t size, const void *key,
		    size_t key_size, void *to)
{
	char *elements;
	size_t i = 0;

	if (array_reserve(array, room, *count + 1, size))
		return -ENOMEM;
	memcpy(&elements, array, sizeof(elements));
	while (i < *count && memcmp(elements + i * size, key, key_size) != 0)
		i++;
	if (i == *count)
		memcpy(elements + (*count)++ * size, key, size);
	elements += i * size;
	memcpy(to, &elements, sizeof(elements));
	return 0;
}

#define FIND_SUM(t, one, many, key, key_size, to)                                          \
	find_sum(&(t)->many, &(t)->one##_count, &(t)->one##_room, sizeof(*(t)->many), key, \
		 key_size, to)

int profile_add_lost(struct profile *p, const char *cause, uint64_t count)
{
	struct profile_lost key = { 0 }, *to;

	if (profile_string(p, cause, &key.cause) ||
	    FIND_SUM(&p->totals, lost, lost, &key, offsetof(struct profile_lost, count), &to))
		return -ENOMEM;
	add_u64(&to->count, count);
	return 0;
}

int profile_add_stack_end(struct profile *p, const char *cause, const char *image, uint64_t count)
{
	struct profile_stack_end key = { 0 }, *to;

	if (profile_string(p, cause, &key.cause) || profile_string(p, image, &key.image) ||
	    FIND_SUM(&p->totals, stack_end, stack_ends, &key,
		     offsetof(struct profile_stack_end, count), &to))
		return -ENOMEM;
	add_u64(&to->count, count);
	return 0;
}

int profile_add_throttled(struct profile *p, const struct profile_throttled *throttled)
{
	struct profile_throttled key = { 0 }, *to;

	if (profile_string(p, throttled->cgroup, &key.cgroup) ||
	    FIND_SUM(&p->totals, throttled, throttled, &key, sizeof(key.cgroup), &to))
		return -ENOMEM;
	to->quota_ns = throttled->quota_ns;
	to->every_ns = throttled->every_ns;
	add_u64(&to->periods, throttled->periods);
	add_u64(&to->throttled_periods, throttled->throttled_periods);
	add_u64(&to->throttled_ns, throttled->throttled_ns);
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

size_t profile_find_value(const struct profile *p, const char *type)
{
	size_t i = 0;

	while (i < p->value_type_count && strcmp(p->value_types[i].type, type) != 0)
		i++;
	return i;
}

size_t profile_named_value(const struct profile *p, const char *name, bool *ambiguous)
{
	size_t size = strlen(name), found = profile_find_value(p, name), prefixes = 0;

	*ambiguous = false;
	for (size_t i = 0; i < p->value_type_count && found == p->value_type_count; i++) {
		const char *type = p->value_types[i].type, *unit = p->value_types[i].unit;
		size_t type_size = strlen(type), unit_size = strlen(unit);
		const char *rest;

		if (strncmp(name, type, type_size) != 0)
			continue;
		/* TYPE/UNIT or TYPE(UNIT) */
		rest = name + type_size;
		if (*rest == '/' && strcmp(rest + 1, unit) == 0)
			found = i;
		if (*rest == '(' && strncmp(rest + 1, unit, unit_size) == 0 &&
		    strcmp(rest + 1 + unit_size, ")") == 0)
			found = i;
	}
	if (found < p->value_type_count)
		return found;
	for (size_t i = 0; i < p->value_type_count; i++)
		if (size && strncmp(p->value_types[i].type, name, size) == 0 && !prefixes++)
			found = i;
	*ambiguous = prefixes > 1;
	return *ambiguous ? p->value_type_count : found;
}

size_t profile_value(const struct profile *p, const char *name)
{
	bool ambiguous;
	size_t found = name ? profile_named_value(p, name, &ambiguous) : p->value_type_count;

	if (found < p->value_type_count)
		return found;
	if (p->default_value)
		return p->default_value - 1;
	found = profile_find_value(p, "samples");
	return found < p->value_type_count ? found : 0;
}

enum profile_stacks profile_sample_stacks(const struct profile *p, const struct profile_sample *s)
{
	if (s->depth > 1)
		return PROFILE_CALL_STACKS;
	if (!s->depth || p->arc_count || p->locations[p->frames[s->first_frame]].line_count < 2)
		return PROFILE_NO_STACKS;
	return PROFILE_INLINED_STACKS;
}

enum profile_stacks profile_stacks(const struct profile *p)
{
	enum profile_stacks deepest = PROFILE_NO_STACKS;

	for (size_t i = 0; i < p->sample_count && deepest != PROFILE_CALL_STACKS; i++) {
		enum profile_stacks stacks = profile_sample_stacks(p, &p->samples[i]);

		deepest = MAX(stacks, deepest);
	}
	return deepest;
}

int64_t profile_total(const struct profile *p, const char *type)
{
	size_t value = profile_value(p, type);
	__int128 total = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		total += p->values[i * p->value_type_count + value];
	if (total < INT64_MIN)
		return INT64_MIN;
	return total > INT64_MAX ? INT64_MAX : (int64_t)total;
}

struct profile_amount profile_amount(const struct profile *p)
{
	struct profile_amount amount = { 0 };

	if (profile_find_value(p, "samples") == p->value_type_count)
		return amount;
	amount.samples = magnitude_u64(profile_magnitude(p, "samples"));
	if (profile_find_sum(p, PROFILE_SUM_CPU) < p->value_type_count)
		amount.cpu_ns = magnitude_u64(profile_magnitude(p, "cpu"));
	else
		amount.cpu_ns = profile_ticks_ns(p, amount.samples);
	return amount;
}

struct profile_amount profile_amount_before(const struct profile *p)
{
	if (p->all_samples)
		return (struct profile_amount){ p->all_samples, p->all_cpu_ns };
	return profile_amount(p);
}

/* pprof labels samples that it has subtracted. */
static bool is_of_base(const struct profile_labels *labels)
{
	for (uint32_t i = 0; i < labels->tag_count; i++)
		if (strcmp(labels->tags[i].key, "pprof::base") == 0)
			return true;
	return false;
}

bool profile_has_base(const struct profile *p)
{
	for (size_t i = 0; i < p->label_count; i++)
		if (is_of_base(&p->labels[i]))
			return true;
	return false;
}

bool profile_is_base(const struct profile *p, const struct profile_sample *sample)
{
	return is_of_base(&p->labels[sample->labels]);
}

magnitude_sum profile_magnitude(const struct profile *p, const char *type)
{
	size_t value = profile_value(p, type);
	bool has_base = profile_has_base(p);
	magnitude_sum sum = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		if (!has_base || profile_is_base(p, &p->samples[i]))
			sum += magnitude(p->values[i * p->value_type_count + value]);
	return sum;
}

uint64_t profile_lost(const struct profile *p)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < p->totals.lost_count; i++)
		add_u64(&lost, p->totals.lost[i].count);
	return lost;
}

uint64_t profile_due(const struct profile *p)
{
	uint64_t tick_ns = profile_tick_ns(p);

	return p->totals.known && tick_ns ? p->totals.cpu_ns / tick_ns : 0;
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
