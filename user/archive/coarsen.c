// SPDX-License-Identifier: GPL-2.0-only
#include "archive/coarsen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "profile/tags.h"
#include "util/array.h"
#include "util/index.h"
#include "util/sum.h"

/* The first share that is tried, and the factor from one to the next. */
#define FIRST_SHARE  (1.0 / 65536)
#define SHARE_FACTOR 2

/*
 * Sets *functions, which the caller frees: for each location that there is now, the location of the
 * function, or functions, that it lies in. Returns 0 or -ENOMEM.
 */
static int find_functions(struct profile *p, uint32_t **functions)
{
	size_t count = p->location_count;
	int err = 0;

	*functions = calloc(count + 1, sizeof(**functions));
	if (!*functions)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++) {
		const struct profile_location l = p->locations[i];
		struct profile_line lines[16];

		(*functions)[i] = i;
		if (!profile_is_named(p, i) || !l.address || l.line_count > 16)
			continue;
		for (uint32_t j = 0; j < l.line_count; j++) {
			lines[j] = p->lines[l.first_line + j];
			lines[j].line = lines[j].column = 0;
		}
		err = profile_add_line_location(p, 0, l.mapping, lines, l.line_count,
						&(*functions)[i]);
	}
	return err;
}

static bool tag_is_of_task(const char *key)
{
	for (size_t i = 0; i < TAG_COUNT; i++)
		if (strcmp(key, tag_kinds[i].key) == 0)
			return tag_kinds[i].of_task;
	return false;
}

int coarsen_simplify(struct profile *p, bool tasks)
{
	size_t label_count = p->label_count;
	uint32_t *functions, *map;
	int err = find_functions(p, &functions);

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *s = &p->samples[i];

		for (uint32_t j = 1; j < s->depth; j++)
			p->frames[s->first_frame + j] = functions[p->frames[s->first_frame + j]];
	}
	free(functions);
	if (err || !tasks)
		return err;

	map = calloc(label_count + 1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	for (size_t i = 0; i < label_count && !err; i++) {
		struct profile_labels labels = p->labels[i];
		struct profile_tag *tags = calloc(labels.tag_count + 1, sizeof(*tags));
		uint32_t count = 0;

		for (uint32_t j = 0; j < labels.tag_count && tags; j++)
			if (!tag_is_of_task(labels.tags[j].key))
				tags[count++] = labels.tags[j];
		labels.tags = count ? tags : NULL;
		labels.tag_count = count;
		labels.pid = labels.tid = labels.generation = 0;
		err = tags ? profile_add_labels(p, &labels, &map[i]) : -ENOMEM;
		free(tags);
	}
	for (size_t i = 0; i < p->sample_count && !err; i++)
		p->samples[i].labels = map[p->samples[i].labels];
	for (size_t i = 0; i < p->arc_count && !err; i++)
		p->arcs[i].labels = map[p->arcs[i].labels];
	for (size_t i = 0; i < p->wall_count; i++)
		p->walls[i].labels = map[p->walls[i].labels];
	free(map);
	return err;
}

struct shortener {
	struct profile *p;
	uint32_t *functions;
	size_t count;	 /* of the locations that functions[] is for */
	uint64_t *self;	 /* of each location */
	uint64_t *total; /* of each location that is a function's; inclusive */
	uint32_t *last;	 /* the sample, + 1, that was last added to its total */
	uint64_t all;
	uint64_t least; /* samples that a function has, to stay */
};

static void count_samples(struct shortener *s)
{
	const struct profile *p = s->p;
	size_t value = profile_value(p, NULL);

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		const uint32_t *frames = p->frames + sample->first_frame;
		int64_t counted = p->values[i * p->value_type_count + value];
		uint64_t samples = counted > 0 ? counted : 0;

		add_u64(&s->all, samples);
		if (sample->depth)
			add_u64(&s->self[frames[0]], samples);
		for (uint32_t j = 0; j < sample->depth; j++) {
			uint32_t function = s->functions[frames[j]];

			if (s->last[function] != i + 1)
				add_u64(&s->total[function], samples);
			s->last[function] = i + 1;
		}
	}
}

/* Shortens a stack into `to`, which has room for it; returns its depth. */
static uint32_t shorten_stack(const struct shortener *s, const uint32_t *frames, uint32_t depth,
			      uint32_t *to)
{
	uint32_t kept = 0;

	if (depth)
		to[kept++] = s->self[frames[0]] >= s->least ? frames[0] : s->functions[frames[0]];
	for (uint32_t i = 1; i < depth; i++)
		if (s->total[s->functions[frames[i]]] >= s->least)
			to[kept++] = frames[i];
	return kept;
}

static bool same_hash(const void *array, uint32_t id, const void *key)
{
	const uint64_t *hashes = array, *hash = key;

	return hashes[id] == *hash;
}

/* Sets *different to the number of stacks that there would be, counted up to `most` + 1. */
static int count_different(const struct shortener *s, size_t most, size_t *different)
{
	const struct profile *p = s->p;
	struct index index = { 0 };
	uint64_t *hashes = NULL;
	uint32_t *frames = NULL;
	size_t count = 0, room = 0, frame_room = 0;
	int err = 0;

	for (size_t i = 0; i < p->sample_count && count <= most && !err; i++) {
		const struct profile_sample *sample = &p->samples[i];
		uint64_t hash;

		err = array_reserve(&frames, &frame_room, sample->depth, sizeof(*frames));
		err = err ?: array_reserve(&hashes, &room, count + 1, sizeof(*hashes));
		if (err)
			break;
		hash = hash_bytes(
			frames,
			shorten_stack(s, p->frames + sample->first_frame, sample->depth, frames) *
				sizeof(*frames),
			sample->labels);
		if (index_find(&index, hash, same_hash, hashes, &hash) != INDEX_NONE)
			continue;
		hashes[count] = hash;
		err = index_add(&index, hash, count++);
	}
	index_free(&index);
	free(hashes);
	free(frames);
	*different = count;
	return err;
}

int coarsen_shorten(struct profile *p, size_t most, double *share)
{
	struct shortener s = { .p = p };
	size_t different, without_callers;
	double next = FIRST_SHARE;
	int err = find_functions(p, &s.functions);

	*share = 0;
	s.self = calloc(p->location_count + 1, sizeof(*s.self));
	s.total = calloc(p->location_count + 1, sizeof(*s.total));
	s.last = calloc(p->location_count + 1, sizeof(*s.last));
	if (!err && (!s.self || !s.total || !s.last))
		err = -ENOMEM;
	if (err)
		goto out;
	count_samples(&s);
	s.least = UINT64_MAX;
	err = count_different(&s, SIZE_MAX - 1, &without_callers);
	most += without_callers;
	s.least = 0;
	err = err ?: count_different(&s, most, &different);
	while (!err && different > most && next < 1) {
		s.least = (uint64_t)((double)s.all * next) + 1;
		*share = next;
		err = count_different(&s, most, &different);
		next *= SHARE_FACTOR;
	}
	for (size_t i = 0; i < p->sample_count && !err && *share > 0; i++) {
		struct profile_sample *sample = &p->samples[i];
		uint32_t *frames = p->frames + sample->first_frame;

		sample->depth = shorten_stack(&s, frames, sample->depth, frames);
	}
out:
	/* The indexes are of the samples as they were. */
	index_free(&p->sample_index);
	free(s.functions);
	free(s.self);
	free(s.total);
	free(s.last);
	return err;
}
