// SPDX-License-Identifier: GPL-2.0-only
#include "archive/user_share.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/merge.h"
#include "profile/tags.h"
#include "util/clock.h"
#include "util/share_out.h"
#include "util/sum.h"
#include "util/table.h"

/* What these take on disk, compressed, where nothing repeats: measured. Bound: pace. */
#define SAMPLE_BYTES   8
#define FRAME_BYTES    1
#define LOCATION_BYTES 10
#define LABEL_BYTES    16
#define WALL_BYTES     8

/*
 * Sets of a unit and a container that a user's rest keeps apart: others can be made at will.
 * Bound: users: sets of a unit and a container that what exceeds a user's share keeps apart; then:
 * further ones are together; again: at the next window; share: the user's own; seen: as "[others]"
 * of the user.
 */
#define RESTS_MAX 16

struct user {
	const char *name; /* interned: equal ones are the same pointer; NULL: unknown */
	bool is_root;
	uint64_t bytes, walls;		   /* that it has */
	uint64_t bytes_kept, walls_kept;   /* of these, so far */
	uint64_t bytes_limit, walls_limit; /* that it may keep */
	size_t rests;
};

struct sharing {
	struct profile *p;
	size_t value; /* of samples, by which they are ordered */
	TABLE(struct user) users;
	uint32_t *of_label; /* numbers of users */
	uint32_t *samples;  /* numbers, those with the most samples first */
	uint32_t *walls;    /* numbers, those with the most CPU time first */
	bool *location_seen, *function_seen, *label_seen; /* parts of one array */
	size_t seen_count;
};

/* Ties are in order of the numbers, so that the same is kept each time. */
static int by_weight(const void *one, const void *other, void *context)
{
	const uint32_t *a = one, *b = other;
	const struct sharing *s = context;
	int64_t x = s->p->values[*a * s->p->value_type_count + s->value];
	int64_t y = s->p->values[*b * s->p->value_type_count + s->value];

	return (x < y) - (x > y) ?: compare_u64(*a, *b);
}

static int by_time(const void *one, const void *other, void *context)
{
	const uint32_t *a = one, *b = other;
	const struct profile_wall *walls = ((const struct sharing *)context)->p->walls;

	return compare_u64(walls[*b].on_cpu_ns, walls[*a].on_cpu_ns) ?: compare_u64(*a, *b);
}

static int open_sharing(struct sharing *s, struct profile *p)
{
	int err = 0;

	*s = (struct sharing){
		.p = p,
		.value = profile_value(p, NULL),
		.of_label = calloc(p->label_count + 1, sizeof(*s->of_label)),
		.samples = calloc(p->sample_count + 1, sizeof(*s->samples)),
		.walls = calloc(p->wall_count + 1, sizeof(*s->walls)),
		.seen_count = p->location_count + p->function_count + p->label_count,
	};
	s->location_seen = calloc(s->seen_count + 1, 1);
	if (!s->of_label || !s->samples || !s->walls || !s->location_seen)
		return -ENOMEM;
	s->function_seen = s->location_seen + p->location_count;
	s->label_seen = s->function_seen + p->function_count;
	for (size_t i = 0; i < p->label_count && !err; i++) {
		const char *name = profile_tag_text(&p->labels[i], TAG_USER);
		const struct user user = {
			.name = name,
			.is_root = name && (strcmp(name, "root") == 0 || strcmp(name, "0") == 0),
			.bytes_limit = UINT64_MAX,
			.walls_limit = UINT64_MAX,
		};

		err = table_add(&s->users, &user, sizeof(name), &s->of_label[i]);
	}
	for (size_t i = 0; i < p->sample_count; i++)
		s->samples[i] = i;
	for (size_t i = 0; i < p->wall_count; i++)
		s->walls[i] = i;
	qsort_r(s->samples, p->sample_count, sizeof(*s->samples), by_weight, s);
	qsort_r(s->walls, p->wall_count, sizeof(*s->walls), by_time, s);
	return err;
}

/* What labels take that no sample or wall before had. */
static uint64_t label_bytes(const struct sharing *s, uint32_t number)
{
	const struct profile_labels *l = &s->p->labels[number];
	uint64_t bytes = LABEL_BYTES + strlen(l->comm);

	if (s->label_seen[number])
		return 0;
	s->label_seen[number] = true;
	for (uint32_t i = 0; i < l->tag_count; i++)
		bytes += l->tags[i].text ? strlen(l->tags[i].text) / 2 : 0;
	return bytes;
}

static uint64_t location_bytes(const struct sharing *s, uint32_t number)
{
	const struct profile *p = s->p;
	const struct profile_location *l = &p->locations[number];
	uint64_t bytes = LOCATION_BYTES;

	if (s->location_seen[number])
		return 0;
	s->location_seen[number] = true;
	for (uint32_t i = 0; i < l->line_count; i++) {
		uint32_t function = p->lines[l->first_line + i].function;
		const struct profile_function *f = &p->functions[function];

		if (s->function_seen[function])
			continue;
		s->function_seen[function] = true;
		bytes += LOCATION_BYTES + strlen(f->name) / 2;
		bytes += f->system_name != f->name ? strlen(f->system_name) / 2 : 0;
	}
	/* Each address may be in a file of its own, with a path of 4 KB. */
	if (l->mapping != PROFILE_NONE)
		bytes += strlen(p->images[p->mappings[l->mapping].image].path) / 16;
	return bytes;
}

static uint64_t sample_bytes(const struct sharing *s, const struct profile_sample *sample)
{
	uint64_t bytes =
		SAMPLE_BYTES + sample->depth * FRAME_BYTES + label_bytes(s, sample->labels);

	for (uint32_t i = 0; i < sample->depth; i++)
		bytes += location_bytes(s, s->p->frames[sample->first_frame + i]);
	return bytes;
}

/* Sets what each user may keep. *over: whether one has more. Returns 0 or -ENOMEM. */
static int choose_limits(const struct sharing *s, const struct user_share *share, bool *over)
{
	uint64_t *sizes = calloc(s->users.count + 1, sizeof(*sizes)), bytes, walls;
	size_t count = 0;

	*over = false;
	if (!sizes)
		return -ENOMEM;
	for (size_t i = 0; i < s->users.count; i++)
		if (!s->users.all[i].is_root)
			sizes[count++] = s->users.all[i].bytes;
	bytes = share_out(sizes, count, share->bytes);
	count = 0;
	for (size_t i = 0; i < s->users.count; i++)
		if (!s->users.all[i].is_root)
			sizes[count++] = s->users.all[i].walls;
	walls = share_out(sizes, count, share->walls);
	for (size_t i = 0; i < s->users.count; i++) {
		struct user *user = &s->users.all[i];

		if (user->is_root)
			continue;
		user->bytes_limit = bytes;
		user->walls_limit = walls;
		*over |= user->bytes > bytes || user->walls > walls;
	}
	free(sizes);
	return 0;
}

/* Sets *rest to the labels that stand for what is not kept of these. Returns 0 or -ENOMEM. */
static int rest_labels(struct sharing *s, uint32_t number, uint32_t *rest)
{
	static const enum profile_tag_number kept[] = { TAG_CONTAINER, TAG_CONTAINER_NAME,
							TAG_UNIT };
	struct profile *p = s->p;
	const struct profile_labels from = p->labels[number];
	struct user *user = &s->users.all[s->of_label[number]];
	struct profile_tag tags[TAG_COUNT];
	struct profile_labels to = { .comm = USER_SHARE_OTHERS,
				     .kernel = from.kernel,
				     .tags = tags };
	size_t before = p->label_count;
	int err;

	for (uint32_t i = 0; i < from.tag_count; i++) {
		bool keep = strcmp(from.tags[i].key, tag_kinds[TAG_USER].key) == 0 ||
			    strcmp(from.tags[i].key, tag_kinds[TAG_HOST].key) == 0;

		for (size_t k = 0; k < sizeof(kept) / sizeof(*kept); k++)
			keep |= user->rests < RESTS_MAX &&
				strcmp(from.tags[i].key, tag_kinds[kept[k]].key) == 0;
		if (keep && to.tag_count < TAG_COUNT)
			tags[to.tag_count++] = from.tags[i];
	}
	err = profile_add_labels(p, &to, rest);
	user->rests += p->label_count > before;
	return err;
}

/* Returns 0 or -ENOMEM. */
static int drop_rest(struct sharing *s)
{
	struct profile *p = s->p;
	uint32_t others;
	int err;

	memset(s->location_seen, 0, s->seen_count);
	err = profile_add_named_location(p, USER_SHARE_OTHERS, PROFILE_NONE, &others);
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		struct profile_sample *sample = &p->samples[s->samples[i]];
		struct user *user = &s->users.all[s->of_label[sample->labels]];

		if (user->bytes_limit == UINT64_MAX)
			continue;
		if (user->bytes_kept < user->bytes_limit)
			user->bytes_kept += sample_bytes(s, sample);
		if (user->bytes_kept <= user->bytes_limit)
			continue;
		err = rest_labels(s, sample->labels, &sample->labels);
		if (sample->depth) {
			sample->depth = 1;
			p->frames[sample->first_frame] = others;
		}
	}
	for (size_t i = 0; i < p->wall_count && !err; i++) {
		struct profile_wall *wall = &p->walls[s->walls[i]];
		struct user *user = &s->users.all[s->of_label[wall->labels]];

		if (user->bytes_kept < user->bytes_limit && user->walls_kept < user->walls_limit) {
			user->bytes_kept += WALL_BYTES + label_bytes(s, wall->labels);
			user->walls_kept++;
		} else {
			err = rest_labels(s, wall->labels, &wall->labels);
		}
	}
	return err;
}

/*
 * Where the limits say nothing, they are taken to be the defaults of profild.
 * Bound: users: bytes of a window that users' samples take, by the archive's limit of size, and
 * rows of wall time; then: the samples that weigh least become one, [others], of their user; again:
 * at the next window; share: those who have less leave the rest to others; root has no limit; seen:
 * as "[others]" of the user.
 */
#define BYTES_DEFAULT ((uint64_t)2 << 30)
#define DAYS_DEFAULT  30

/* No less, so that small archives have stacks, too. Bound: as BYTES_DEFAULT. */
#define BYTES_LEAST ((uint64_t)256 << 10)
#define WALLS_LEAST 1024

struct user_share user_share_of(const struct archive_limits *limits, unsigned int grain_s,
				uint64_t duration_ns)
{
	uint64_t bytes = limits->bytes ?: BYTES_DEFAULT, days = limits->days ?: DAYS_DEFAULT;
	double most, walls = USER_SHARE_WALLS;

	if (grain_s >= WINDOW_10MIN_S)
		most = grain_s >= WINDOW_HOUR_S
			       ? (double)bytes / 4 * grain_s / ((double)days * WINDOW_DAY_S)
			       : (double)bytes / 8 * grain_s / ARCHIVE_10MIN_S;
	else
		most = (double)bytes / 2 * (double)duration_ns / NS_PER_S / ARCHIVE_FINE_S;
	/* Readers have all windows of an interval in memory. */
	if (grain_s < WINDOW_10MIN_S && duration_ns < WINDOW_FINE_S * NS_PER_S)
		walls *= (double)duration_ns / (WINDOW_FINE_S * NS_PER_S);
	return (struct user_share){
		.bytes = most > BYTES_LEAST ? (uint64_t)most : BYTES_LEAST,
		.walls = walls > WALLS_LEAST ? (size_t)walls : WALLS_LEAST,
	};
}

int user_share_limit(struct profile **p, const struct user_share *share, struct error *e)
{
	struct profile *smaller = NULL;
	struct sharing s;
	bool over = false;
	int err = open_sharing(&s, *p);

	for (size_t i = 0; i < (*p)->sample_count && !err; i++) {
		const struct profile_sample *sample = &(*p)->samples[s.samples[i]];

		s.users.all[s.of_label[sample->labels]].bytes += sample_bytes(&s, sample);
	}
	for (size_t i = 0; i < (*p)->wall_count && !err; i++) {
		uint32_t labels = (*p)->walls[s.walls[i]].labels;

		s.users.all[s.of_label[labels]].bytes += WALL_BYTES + label_bytes(&s, labels);
		s.users.all[s.of_label[labels]].walls++;
	}
	err = err ?: choose_limits(&s, share, &over);
	if (!err && over)
		err = drop_rest(&s);
	table_free(&s.users);
	free(s.of_label);
	free(s.samples);
	free(s.walls);
	free(s.location_seen);
	if (err)
		return error_no_memory(e);
	if (!over)
		return 0;
	/* Adds up what is equal now. The index is of the samples as they were. */
	index_free(&(*p)->sample_index);
	smaller = profile_new();
	err = smaller ? profile_merge(smaller, *p, NULL, e) : error_no_memory(e);
	if (err) {
		profile_free(smaller);
		return err;
	}
	profile_free(*p);
	*p = smaller;
	return 0;
}
