// SPDX-License-Identifier: GPL-2.0-only
#include "archive/coarsen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive/user_share.h"
#include "profile/pc_name.h"
#include "profile/service.h"
#include "profile/tags.h"
#include "util/order.h"
#include "util/share_out.h"
#include "util/sum.h"
#include "util/table.h"

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

/*
 * Takes the threads from all labels; `tasks`: and the processes, and tags of them. Returns 0 or
 * -ENOMEM.
 */
static int drop_tasks(struct profile *p, bool tasks)
{
	size_t label_count = p->label_count;
	uint32_t *map;
	int err = 0;

	map = calloc(label_count + 1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	for (size_t i = 0; i < label_count && !err; i++) {
		struct profile_labels labels = p->labels[i];
		struct profile_tag *tags = calloc(labels.tag_count + 1, sizeof(*tags));
		uint32_t count = 0;

		for (uint32_t j = 0; j < labels.tag_count && tags; j++)
			if (tasks ? !tag_is_of_task(labels.tags[j].key)
				  : strcmp(labels.tags[j].key, tag_kinds[TAG_WAKER_TID].key) != 0)
				tags[count++] = labels.tags[j];
		labels.tags = count ? tags : NULL;
		labels.tag_count = count;
		labels.tid = labels.generation = 0;
		labels.pid = tasks ? 0 : labels.pid;
		err = tags ? profile_add_labels(p, &labels, &map[i]) : -ENOMEM;
		free(tags);
	}
	if (!err)
		profile_relabel(p, map);
	free(map);
	return err;
}

int coarsen_drop_times(struct profile *p)
{
	bool has_waits = p->waits.count;

	p->ticks.count = p->waits.count = 0;
	return has_waits ? drop_tasks(p, false) : 0;
}

int coarsen_simplify(struct profile *p, bool tasks)
{
	uint32_t *functions;
	int err = find_functions(p, &functions);

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *s = &p->samples[i];

		for (uint32_t j = 1; j < s->depth; j++)
			p->frames[s->first_frame + j] = functions[p->frames[s->first_frame + j]];
	}
	free(functions);
	if (err || !tasks)
		return err;

	return drop_tasks(p, true);
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
	TABLE(struct path) paths;
	uint32_t *path_of_frame; /* of each caller in a stack, as in profile->frames */
	uint64_t *least;	 /* of each service: samples that a path has, to stay */
	size_t *stacks;		 /* of each service: different ones that there would be */
	size_t *leaves;		 /* and without any caller */
};

static int find_paths(struct shortener *s)
{
	const struct profile *p = s->p;
	size_t value = profile_value(p, NULL);

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		const uint32_t *frames = p->frames + sample->first_frame;
		uint32_t *paths = s->path_of_frame + sample->first_frame;
		int64_t counted = p->values[i * p->value_type_count + value];
		uint64_t samples = MAX(counted, 0);
		struct path path = { PATH_NONE, s->services.of_sample[i], 0, 0 };

		if (sample->depth)
			add_u64(&s->self[frames[0]], samples);
		for (uint32_t j = sample->depth; j-- > 1;) {
			path.function = s->functions[frames[j]];
			if (table_add(&s->paths, &path, offsetof(struct path, samples), &paths[j]))
				return -ENOMEM;
			add_u64(&s->paths.all[paths[j]].samples, samples);
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
	       s->paths.all[paths[sample->depth - 1 - kept]].samples >= least)
		kept++;
	return kept;
}

static uint32_t leaf_kept(const struct shortener *s, size_t number)
{
	uint32_t leaf = s->p->frames[s->p->samples[number].first_frame];
	uint64_t least = s->least[s->services.of_sample[number]];

	return s->self[leaf] >= least ? leaf : s->functions[leaf];
}

/* Counts the stacks that there would be, of each service, in `stacks`. Returns 0 or -ENOMEM. */
static int count_stacks(const struct shortener *s, size_t *stacks)
{
	const struct profile *p = s->p;
	TABLE(uint64_t) hashes = { 0 };
	size_t count = 0;
	uint32_t id;
	int err = 0;

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
		err = table_add(&hashes, &hash, sizeof(hash), &id);
		stacks[s->services.of_sample[i]] += hashes.count > count;
		count = hashes.count;
	}
	table_free(&hashes);
	return err;
}

/* Raises what the paths of services need, to stay, until the stacks are few enough. */
static int choose(struct shortener *s, size_t most)
{
	size_t count = s->services.count;
	uint64_t allowance = 0, *sizes = calloc(count + 1, sizeof(*sizes));
	int err;

	if (!sizes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		s->least[i] = LEAST_NONE;
	err = count_stacks(s, s->leaves);
	memset(s->least, 0, count * sizeof(*s->least));
	while (!err && allowance < UINT64_MAX) {
		err = count_stacks(s, s->stacks);
		for (size_t i = 0; i < count; i++)
			sizes[i] = s->stacks[i] - s->leaves[i];
		allowance = share_out(sizes, count, most);
		for (size_t i = 0; i < count && !err; i++)
			if (s->stacks[i] - s->leaves[i] > allowance)
				s->least[i] = s->least[i] > LEAST_NONE / 2
						      ? LEAST_NONE
						      : 2 * s->least[i] + !s->least[i];
	}
	free(sizes);
	return err;
}

/* *share: of the samples, those that lack callers. Returns 0 or -ENOMEM. */
static int shorten_stacks(struct shortener *s, double *share)
{
	struct profile *p = s->p;
	size_t value = profile_value(p, NULL);
	uint32_t *marked = calloc(p->label_count + 1, sizeof(*marked)); /* of each labels, + 1 */
	const struct profile_tag incomplete = { tag_kinds[TAG_INCOMPLETE].key, "yes", 0, "" };
	uint64_t all = 0, lack = 0;
	int err = marked ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		struct profile_sample *sample = &p->samples[i];
		uint32_t *frames = p->frames + sample->first_frame, kept = callers_kept(s, i);
		int64_t counted = p->values[i * p->value_type_count + value];
		uint64_t samples = MAX(counted, 0);

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
			marked[sample->labels] = sample->labels;
			if (!profile_tag_text(&p->labels[sample->labels], TAG_INCOMPLETE))
				err = profile_tag_labels(p, sample->labels, &incomplete, 1,
							 &marked[sample->labels]);
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
	services_free(&s.services);
	free(s.functions);
	free(s.self);
	table_free(&s.paths);
	free(s.path_of_frame);
	free(s.least);
	free(s.stacks);
	free(s.leaves);
	return err;
}

/* --- For whom it worked --- */

/* What the labels of a service's samples say of that. */
struct worked_for {
	uint64_t service, hash;
	uint64_t samples;
	uint32_t number;
};

ORDER(most_samples_first, struct worked_for, LEAST(service) ?: MOST(samples) ?: LEAST(number))

/* Whether the process has chosen the tag's text. */
static bool tag_is_context(const char *key)
{
	static const enum profile_tag_number of_programs[] = { TAG_APPLICATION, TAG_DATABASE,
							       TAG_QUERY, TAG_ROLE, TAG_ROUTE };

	for (size_t i = 0; i < sizeof(of_programs) / sizeof(*of_programs); i++)
		if (strcmp(key, tag_kinds[of_programs[i]].key) == 0)
			return true;
	for (size_t i = 0; i < TAG_COUNT; i++)
		if (strcmp(key, tag_kinds[i].key) == 0)
			return false;
	return true;
}

/* Hash of these tags of labels; 0: they have none, or all have gone. */
static uint64_t hash_context(const struct profile_labels *labels)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < labels->tag_count; i++) {
		const struct profile_tag *tag = &labels->tags[i];

		if (!tag->text || !tag_is_context(tag->key) ||
		    strcmp(tag->text, USER_SHARE_OTHERS) == 0)
			continue;
		hash = hash_bytes(tag->key, strlen(tag->key) + 1, hash);
		hash = hash_bytes(tag->text, strlen(tag->text), hash) | 1;
	}
	return hash;
}

/* Sets *others to labels as these, with USER_SHARE_OTHERS for the texts. Returns 0 or -ENOMEM. */
static int label_others(struct profile *p, uint32_t number, uint32_t *others)
{
	struct profile_labels labels = p->labels[number];
	struct profile_tag *tags = calloc(labels.tag_count + 1, sizeof(*tags));
	int err;

	if (!tags)
		return -ENOMEM;
	for (uint32_t i = 0; i < labels.tag_count; i++) {
		tags[i] = labels.tags[i];
		if (tags[i].text && tag_is_context(tags[i].key))
			tags[i].text = USER_SHARE_OTHERS;
	}
	labels.tags = tags;
	err = profile_add_labels(p, &labels, others);
	free(tags);
	return err;
}

int coarsen_limit_labels(struct profile *p, size_t most, bool *over)
{
	TABLE(struct worked_for) found = { 0 };
	size_t value = profile_value(p, NULL);
	struct services services = { 0 };
	uint32_t *of_sample = calloc(p->sample_count + 1, sizeof(*of_sample));
	uint32_t *others = calloc(p->label_count + 1, sizeof(*others)); /* of each labels, + 1 */
	uint64_t *sizes = NULL, allowance, rank = 0;
	struct worked_for *sorted = NULL;
	struct error e;
	int err = of_sample && others ? services_find(p, value, &services, &e) : -ENOMEM;

	*over = false;
	sizes = calloc(services.count + 1, sizeof(*sizes));
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		int64_t counted = p->values[i * p->value_type_count + value];
		struct worked_for one = { services.of_sample[i],
					  hash_context(&p->labels[p->samples[i].labels]), 0,
					  found.count };

		of_sample[i] = INDEX_NONE;
		if (!one.hash)
			continue;
		err = table_add(&found, &one, offsetof(struct worked_for, samples), &of_sample[i]);
		if (!err && counted > 0)
			add_u64(&found.all[of_sample[i]].samples, counted);
	}
	sorted = calloc(found.count + 1, sizeof(*sorted));
	if (err || !sizes || !sorted) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < found.count; i++) {
		sorted[i] = found.all[i];
		sizes[sorted[i].service]++;
	}
	allowance = share_out(sizes, services.count, most);
	if (allowance == UINT64_MAX)
		goto out;
	*over = true;
	qsort(sorted, found.count, sizeof(*sorted), most_samples_first);
	for (size_t i = 0; i < found.count; i++) {
		rank = i && sorted[i].service == sorted[i - 1].service ? rank + 1 : 0;
		/* From now on: whether it stays. */
		found.all[sorted[i].number].hash = rank < allowance;
	}
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		struct profile_sample *sample = &p->samples[i];
		int64_t counted = p->values[i * p->value_type_count + value];
		uint32_t *other = &others[sample->labels];

		if (of_sample[i] == INDEX_NONE || found.all[of_sample[i]].hash)
			continue;
		if (!*other) {
			err = label_others(p, sample->labels, other);
			++*other;
		}
		if (*other - 1 != sample->labels && counted > 0)
			add_u64(&p->totals.context_others, counted);
		sample->labels = *other - 1;
	}
	/* The index is of the samples as they were. */
	index_free(&p->sample_index);
out:
	services_free(&services);
	table_free(&found);
	free(of_sample);
	free(others);
	free(sizes);
	free(sorted);
	return err;
}
