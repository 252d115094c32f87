// SPDX-License-Identifier: GPL-2.0-only
#include "archive/coarsen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "profile/service.h"
#include "profile/tags.h"
#include "util/array.h"
#include "util/index.h"
#include "util/sum.h"

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

/* From the outermost caller of a service's stacks to some function. */
struct path {
	uint32_t parent; /* PATH_NONE: it begins here */
	uint32_t service, function;
	uint64_t samples;
};

#define PATH_NONE UINT32_MAX

/* What no path has, however many samples a file says that it has. */
#define LEAST_NONE UINT64_MAX

struct shortener {
	struct profile *p;
	struct services services;
	uint32_t *functions;
	uint64_t *self; /* of each location */
	struct path *paths;
	size_t path_count, path_room;
	struct index path_index;
	uint32_t *path_of_frame; /* of each caller in a stack, as in profile->frames */
	uint64_t *least;	 /* of each service: samples that a path has, to stay */
	size_t *stacks;		 /* of each service: different ones that there would be */
	size_t *leaves;		 /* and without any caller */
};

static bool same_path(const void *array, uint32_t id, const void *key)
{
	const struct path *path = &((const struct path *)array)[id], *wanted = key;

	return path->parent == wanted->parent && path->service == wanted->service &&
	       path->function == wanted->function;
}

/* Sets *id to the path, which is added if it is new. Returns 0 or -ENOMEM. */
static int find_path(struct shortener *s, const struct path *path, uint32_t *id)
{
	uint64_t hash = hash_u64(path->parent, hash_u64(path->service, path->function));

	*id = index_find(&s->path_index, hash, same_path, s->paths, path);
	if (*id != INDEX_NONE)
		return 0;
	if (array_reserve(&s->paths, &s->path_room, s->path_count + 1, sizeof(*s->paths)))
		return -ENOMEM;
	*id = s->path_count;
	s->paths[s->path_count++] = *path;
	return index_add(&s->path_index, hash, *id);
}

static int find_paths(struct shortener *s)
{
	const struct profile *p = s->p;
	size_t value = profile_value(p, NULL);

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		const uint32_t *frames = p->frames + sample->first_frame;
		uint32_t *paths = s->path_of_frame + sample->first_frame;
		int64_t counted = p->values[i * p->value_type_count + value];
		uint64_t samples = counted > 0 ? counted : 0;
		struct path path = { PATH_NONE, s->services.of_sample[i], 0, 0 };

		if (sample->depth)
			add_u64(&s->self[frames[0]], samples);
		for (uint32_t j = sample->depth; j-- > 1;) {
			path.function = s->functions[frames[j]];
			if (find_path(s, &path, &paths[j]))
				return -ENOMEM;
			add_u64(&s->paths[paths[j]].samples, samples);
			path.parent = paths[j];
		}
	}
	return 0;
}

/* What stays of a stack: its leaf, and so many of its outermost callers. */
static uint32_t callers_kept(const struct shortener *s, size_t number)
{
	const struct profile_sample *sample = &s->p->samples[number];
	const uint32_t *paths = s->path_of_frame + sample->first_frame;
	uint64_t least = s->least[s->services.of_sample[number]];
	uint32_t kept = 0;

	while (kept + 1 < sample->depth && least < LEAST_NONE &&
	       s->paths[paths[sample->depth - 1 - kept]].samples >= least)
		kept++;
	return kept;
}

static uint32_t leaf_kept(const struct shortener *s, size_t number)
{
	uint32_t leaf = s->p->frames[s->p->samples[number].first_frame];
	uint64_t least = s->least[s->services.of_sample[number]];

	return s->self[leaf] >= least ? leaf : s->functions[leaf];
}

static bool same_hash(const void *array, uint32_t id, const void *key)
{
	const uint64_t *hashes = array, *hash = key;

	return hashes[id] == *hash;
}

/* Counts the stacks that there would be, of each service, in `stacks`. Returns 0 or -ENOMEM. */
static int count_stacks(const struct shortener *s, size_t *stacks)
{
	const struct profile *p = s->p;
	struct index index = { 0 };
	uint64_t *hashes = malloc((p->sample_count + 1) * sizeof(*hashes));
	size_t count = 0;
	int err = hashes ? 0 : -ENOMEM;

	memset(stacks, 0, s->services.count * sizeof(*stacks));
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *sample = &p->samples[i];
		uint32_t kept = callers_kept(s, i), end = sample->first_frame + sample->depth;
		uint64_t hash = hash_u64(sample->labels, s->services.of_sample[i]);

		hash = hash_u64(kept + 1 < sample->depth, hash); /* it gets a tag */
		if (sample->depth)
			hash = hash_u64(leaf_kept(s, i), hash);
		if (kept)
			hash = hash_u64(s->path_of_frame[end - kept], hash);
		if (index_find(&index, hash, same_hash, hashes, &hash) != INDEX_NONE)
			continue;
		hashes[count] = hash;
		err = index_add(&index, hash, count++);
		stacks[s->services.of_sample[i]]++;
	}
	index_free(&index);
	free(hashes);
	return err;
}

static int compare_sizes(const void *one, const void *other)
{
	const size_t *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

/*
 * Sets *allowance to the stacks that each service may have, so that all have `most`, when those
 * that have fewer leave the rest to the others; SIZE_MAX: they have no more now. Returns 0 or
 * -ENOMEM.
 */
static int share_out(const struct shortener *s, size_t most, size_t *allowance)
{
	size_t count = s->services.count, all = 0, *sizes = calloc(count + 1, sizeof(*sizes));

	*allowance = SIZE_MAX;
	if (!sizes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		sizes[i] = s->stacks[i] - s->leaves[i];
		all += sizes[i];
	}
	qsort(sizes, count, sizeof(*sizes), compare_sizes);
	for (size_t i = 0; i < count && all > most; i++) {
		*allowance = most / (count - i);
		if (sizes[i] > *allowance)
			break;
		most -= sizes[i];
		all -= sizes[i];
	}
	free(sizes);
	return 0;
}

/* Raises what the paths of services need, to stay, until the stacks are few enough. */
static int choose(struct shortener *s, size_t most)
{
	size_t allowance = 0;
	int err;

	for (size_t i = 0; i < s->services.count; i++)
		s->least[i] = LEAST_NONE;
	err = count_stacks(s, s->leaves);
	memset(s->least, 0, s->services.count * sizeof(*s->least));
	while (!err && allowance < SIZE_MAX) {
		err = count_stacks(s, s->stacks);
		err = err ?: share_out(s, most, &allowance);
		for (size_t i = 0; i < s->services.count && !err; i++)
			if (s->stacks[i] - s->leaves[i] > allowance)
				s->least[i] = s->least[i] > LEAST_NONE / 2
						      ? LEAST_NONE
						      : 2 * s->least[i] + !s->least[i];
	}
	return err;
}

/* Sets *marked to the number of labels with these and TAG_INCOMPLETE. Returns 0 or -ENOMEM. */
static int mark_incomplete(struct profile *p, uint32_t number, uint32_t *marked)
{
	struct profile_labels labels = p->labels[number];
	struct profile_tag *tags;
	int err;

	*marked = number;
	if (profile_tag_text(&labels, TAG_INCOMPLETE))
		return 0;
	tags = calloc(labels.tag_count + 1, sizeof(*tags));
	if (!tags)
		return -ENOMEM;
	if (labels.tag_count)
		memcpy(tags, labels.tags, labels.tag_count * sizeof(*tags));
	tags[labels.tag_count++] = (struct profile_tag){
		.key = tag_kinds[TAG_INCOMPLETE].key,
		.text = "yes",
		.unit = "",
	};
	labels.tags = tags;
	err = profile_add_labels(p, &labels, marked);
	free(tags);
	return err;
}

/* *share: of the samples, those that lack callers. Returns 0 or -ENOMEM. */
static int shorten_stacks(struct shortener *s, double *share)
{
	struct profile *p = s->p;
	size_t value = profile_value(p, NULL);
	uint32_t *marked = calloc(p->label_count + 1, sizeof(*marked)); /* of each labels, + 1 */
	uint64_t all = 0, lack = 0;
	int err = marked ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		struct profile_sample *sample = &p->samples[i];
		uint32_t *frames = p->frames + sample->first_frame, kept = callers_kept(s, i);
		int64_t counted = p->values[i * p->value_type_count + value];
		uint64_t samples = counted > 0 ? counted : 0;

		add_u64(&all, samples);
		if (!sample->depth)
			continue;
		frames[0] = leaf_kept(s, i);
		if (kept + 1 == sample->depth)
			continue;
		add_u64(&lack, samples);
		memmove(frames + 1, frames + sample->depth - kept, kept * sizeof(*frames));
		sample->depth = kept + 1;
		if (!marked[sample->labels]) {
			err = mark_incomplete(p, sample->labels, &marked[sample->labels]);
			marked[sample->labels]++;
		}
		sample->labels = marked[sample->labels] - 1;
	}
	free(marked);
	*share = all ? (double)lack / (double)all : 0;
	return err;
}

int coarsen_shorten(struct profile *p, size_t most, double *share)
{
	struct shortener s = { .p = p };
	struct error e;
	int err = services_find(p, profile_value(p, NULL), &s.services, &e);

	*share = 0;
	err = err ?: find_functions(p, &s.functions);
	s.self = calloc(p->location_count + 1, sizeof(*s.self));
	s.path_of_frame = calloc(p->frame_count + 1, sizeof(*s.path_of_frame));
	s.least = calloc(s.services.count + 1, sizeof(*s.least));
	s.stacks = calloc(s.services.count + 1, sizeof(*s.stacks));
	s.leaves = calloc(s.services.count + 1, sizeof(*s.leaves));
	if (!err && (!s.self || !s.path_of_frame || !s.least || !s.stacks || !s.leaves))
		err = -ENOMEM;
	err = err ?: find_paths(&s);
	err = err ?: choose(&s, most);
	err = err ?: shorten_stacks(&s, share);
	/* The indexes are of the samples as they were. */
	index_free(&p->sample_index);
	index_free(&s.path_index);
	services_free(&s.services);
	free(s.functions);
	free(s.self);
	free(s.paths);
	free(s.path_of_frame);
	free(s.least);
	free(s.stacks);
	free(s.leaves);
	return err;
}
