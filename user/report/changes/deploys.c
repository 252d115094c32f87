// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/changes/data.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/sum.h"

/*
 * The old build, or the old processes, may run so long beside the new ones: one after another.
 * Bound: pace.
 */
#define ROLLING_NS (15 * 60 * NS_PER_S)

/*
 * Two parts of one deploy, as of a program and its libraries, begin within this time.
 * Bound: pace.
 */
#define TOGETHER_NS (10 * 60 * NS_PER_S)

/* Something that was replaced: the time between the last of the old and the first of the new. */
struct replaced {
	uint64_t begin_ns, end_ns;
	bool rolling; /* the old ran beside the new in this time */
	/* Builds of an image; NULL: processes. */
	const struct changes_build *old, *new;
};

struct replaced_list {
	struct replaced *list;
	size_t count, room;
};

static int append(struct replaced_list *l, uint64_t last_old_ns, uint64_t first_new_ns,
		  const struct changes_build *old, const struct changes_build *new)
{
	if (array_reserve(&l->list, &l->room, l->count + 1, sizeof(*l->list)))
		return -ENOMEM;
	l->list[l->count++] = (struct replaced){
		.begin_ns = last_old_ns < first_new_ns ? last_old_ns : first_new_ns,
		.end_ns = last_old_ns < first_new_ns ? first_new_ns : last_old_ns,
		.old = old,
		.rolling = last_old_ns > first_new_ns,
		.new = new,
	};
	return 0;
}

/* By image, and then in the order of time. */
static int compare_builds(const void *one, const void *other)
{
	const struct changes_build *a = *(const struct changes_build *const *)one;
	const struct changes_build *b = *(const struct changes_build *const *)other;
	int order = strcmp(a->image, b->image);

	return order ?: compare_u64(a->first_ns, b->first_ns) ?: (a > b) - (a < b);
}

/*
 * A build is deployed when it comes where another one of the same image was before, which is then
 * no longer there. Two that are used side by side are none.
 */
static int find_builds(const struct changes_service *s, struct replaced_list *l)
{
	const struct changes_build **builds = calloc(s->build_count + 1, sizeof(*builds));
	size_t first = 0; /* of those that came when the last one did */
	const struct changes_build *old = NULL;
	int err = builds ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->build_count && !err; i++)
		builds[i] = &s->builds[i];
	if (!err && s->build_count)
		qsort(builds, s->build_count, sizeof(*builds), compare_builds);
	for (size_t i = 0; i < s->build_count && !err; i++) {
		const struct changes_build *new = builds[i];
		bool same_image = i && strcmp(builds[i - 1]->image, new->image) == 0;

		if (!same_image)
			old = NULL;
		if (!same_image || builds[first]->first_ns < new->first_ns) {
			/* Of those that came before, the one that was there last. */
			for (; same_image && first < i; first++)
				if (!old || builds[first]->last_ns > old->last_ns)
					old = builds[first];
			first = i;
		}
		if (old && old->last_ns <= new->first_ns + ROLLING_NS)
			err = append(l, old->last_ns, new->first_ns, old, new);
	}
	free(builds);
	return err;
}

/*
 * A service is restarted when all of its lasting processes are others than before. Both may have
 * ticks in the window in which that was, which is long when windows were merged.
 */
static int find_restarts(struct changes_service *s, struct replaced_list *l)
{
	uint64_t last_start_ns = 0, last_ns = 0;
	int err = 0;

	if (s->process_count)
		qsort(s->processes, s->process_count, sizeof(*s->processes),
		      changes_compare_processes);
	index_free(&s->process_index); /* of another order */
	for (size_t i = 0; i < s->process_count && !err; i++) {
		const struct changes_process *p = &s->processes[i];

		if (!changes_lasts(p))
			continue;
		if (last_ns && p->first_ns >= last_start_ns)
			err = append(l, last_ns, p->first_ns, NULL, NULL);
		if (p->last_start_ns > last_start_ns)
			last_start_ns = p->last_start_ns;
		if (p->last_ns > last_ns)
			last_ns = p->last_ns;
	}
	return err;
}

/* The shorter first: when something was replaced is known best by what has most ticks. */
static int compare_lengths(const void *one, const void *other)
{
	const struct replaced *a = one, *b = other;
	uint64_t x = a->end_ns - a->begin_ns, y = b->end_ns - b->begin_ns;

	return (x > y) - (x < y) ?: (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static int compare_changes(const void *one, const void *other)
{
	const struct change *a = one, *b = other;

	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

int changes_find_deploys(struct changes *c, size_t *room, uint32_t service)
{
	struct changes_service *s = &c->data->services[service];
	struct replaced_list l = { 0 };
	size_t first = c->count;
	int err = find_builds(s, &l) ?: find_restarts(s, &l);

	if (l.count)
		qsort(l.list, l.count, sizeof(*l.list), compare_lengths);
	for (size_t i = 0; i < l.count && !err; i++) {
		const struct replaced *r = &l.list[i];
		struct change *change;
		size_t k = first;

		while (k < c->count && (r->begin_ns > c->changes[k].end_ns + TOGETHER_NS ||
					c->changes[k].begin_ns > r->end_ns + TOGETHER_NS))
			k++;
		if (k == c->count) {
			change = changes_append(c, room, service);
			if (!change) {
				err = -ENOMEM;
				break;
			}
			change->begin_ns = r->begin_ns;
			change->end_ns = r->end_ns;
		}
		change = &c->changes[k];
		if (r->rolling && r->begin_ns < change->begin_ns)
			change->begin_ns = r->begin_ns;
		if (r->rolling && r->end_ns > change->end_ns)
			change->end_ns = r->end_ns;
		if (r->new) {
			struct change_image *image;

			err = array_reserve(&change->images, &change->image_room,
					    change->image_count + 1, sizeof(*image));
			if (err)
				break;
			image = &change->images[change->image_count++];
			image->name = r->new->image;
			image->part = fmax((double)r->old->ticks / (double)r->old->all,
					   (double)r->new->ticks / (double)r->new->all);
			strcpy(image->builds[BEFORE], r->old->id);
			strcpy(image->builds[AFTER], r->new->id);
		} else {
			change->restarted = true;
		}
	}
	if (c->count > first)
		qsort(c->changes + first, c->count - first, sizeof(*c->changes), compare_changes);
	free(l.list);
	return err;
}
