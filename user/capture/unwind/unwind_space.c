// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_space.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"

/* Mappings that are sorted and do not overlap. */
struct run {
	struct unwind_mapping *mappings;
	size_t count;
};

/* Writes the result of mapping `over` over `under`. Returns how many mappings that has. */
static size_t overlay(struct run under, struct run over, struct unwind_mapping *to)
{
	const struct unwind_mapping *begin = to, *m = over.mappings;
	struct unwind_mapping *next = under.mappings, *end = next + under.count;

	for (; m < over.mappings + over.count; m++) {
		while (next < end && next->limit <= m->start)
			*to++ = *next++;
		if (next < end && next->start < m->start) {
			*to = *next;
			to++->limit = m->start;
		}
		*to++ = *m;
		while (next < end && next->limit <= m->limit)
			next++;
		if (next < end && next->start < m->limit)
			next->start = m->limit;
	}
	while (next < end)
		*to++ = *next++;
	return to - begin;
}

/*
 * Merges mappings in the order of time into runs[0]; returns how many it has. A process may make
 * any number of mappings, so pairs are merged, then pairs of these, and so on: merging each one
 * with all before takes quadratic time. n mappings result in less than 2 * n parts, so that is the
 * size of `from` and of `to`.
 */
static size_t settle(const struct unwind_mapping *mappings, size_t count, struct run *runs,
		     struct unwind_mapping *from, struct unwind_mapping *to)
{
	struct unwind_mapping *swap;
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (mappings[i].start < mappings[i].limit) {
			from[2 * n] = mappings[i];
			runs[n] = (struct run){ &from[2 * n], 1 };
			n++;
		}
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t i = 0; i < n; i += 2 * width) {
			struct run over = { NULL, 0 };

			if (i + width < n)
				over = runs[i + width];
			runs[i].count = overlay(runs[i], over, &to[2 * i]);
			runs[i].mappings = &to[2 * i];
		}
		swap = from;
		from = to;
		to = swap;
	}
	return n ? runs[0].count : 0;
}

/* Adds one batch. On failure the space is unchanged. */
static int map(struct unwind_space *space, const struct unwind_mapping *mappings, size_t count)
{
	struct unwind_space mapped = { 0 };
	struct unwind_mapping *scratch = calloc(4 * count, sizeof(*scratch));
	struct run *runs = calloc(count, sizeof(*runs));
	int err = -ENOMEM;

	if (scratch && runs &&
	    !array_reserve(&mapped.mappings, &mapped.room, space->count + 2 * (2 * count),
			   sizeof(*mapped.mappings))) {
		runs[0].count = settle(mappings, count, runs, scratch, scratch + 2 * count);
		mapped.count = overlay((struct run){ space->mappings, space->count }, runs[0],
				       mapped.mappings);
		err = 0;
	}
	free(scratch);
	free(runs);
	if (err) {
		free(mapped.mappings);
		return err;
	}
	free(space->mappings);
	*space = mapped;
	return 0;
}

/* No smaller batches fill the room that is left: each takes time in proportion to the space. */
#define BATCH_MIN 32

int unwind_space_map(struct unwind_space *space, const struct unwind_mapping *mappings,
		     size_t count)
{
	while (count) {
		size_t room = UNWIND_PROCESS_MAPPINGS_MAX - space->count, batch = room / 2;
		int err;

		if (batch < BATCH_MIN)
			return -ENOSPC;
		batch = MIN(batch, count);
		err = map(space, mappings, batch);
		if (err)
			return err;
		mappings += batch;
		count -= batch;
	}
	return 0;
}
