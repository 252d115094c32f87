// SPDX-License-Identifier: GPL-2.0-only
#include "format/pieces.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/sum.h"

static int add_piece(struct pieces *pieces, const struct profile *p, uint32_t sample,
		     uint64_t time_ns, int64_t value)
{
	const struct profile_labels *l = &p->labels[p->samples[sample].labels];

	if (array_reserve(&pieces->list, &pieces->room, pieces->count + 1, sizeof(*pieces->list)))
		return -ENOMEM;
	pieces->list[pieces->count++] = (struct piece){
		.thread = (uint64_t)l->generation << 32 | (l->tid ?: l->pid),
		.time_ns = time_ns,
		.value = value,
		.sample = sample,
	};
	return 0;
}

static int compare_pieces(const void *one, const void *other)
{
	const struct piece *a = one, *b = other;
	int order = compare_u64(a->thread, b->thread) ?: compare_u64(a->time_ns, b->time_ns);

	return order ?: compare_u64(a->sample, b->sample);
}

int pieces_find(const struct profile *p, size_t value, struct pieces *pieces)
{
	struct tick_groups ticks;
	struct wait_groups waits;
	int err = tick_list_group(&p->ticks, p->sample_count, &ticks);

	if (err)
		return err;
	err = wait_list_group(&p->waits, p->sample_count, &waits);
	if (err) {
		tick_groups_free(&ticks);
		return err;
	}
	for (uint32_t i = 0; i < p->sample_count && !err; i++) {
		const int64_t *values = &p->values[i * p->value_type_count];
		int64_t left = values[value];
		uint64_t count = magnitude(values[0]);

		if (left <= 0)
			continue;
		for (size_t at = waits.first[i]; at < waits.first[i + 1] && left && !err; at++) {
			int64_t length = waits.waits[at].length_ns < (uint64_t)left
						 ? (int64_t)waits.waits[at].length_ns
						 : left;

			err = add_piece(pieces, p, i, waits.waits[at].since_ns, length);
			left -= length;
		}
		if (waits.first[i + 1] == waits.first[i])
			for (size_t at = ticks.first[i]; at < ticks.first[i + 1] && !err;
			     at++, count--) {
				int64_t part = left / (int64_t)(count ?: 1);

				err = part ? add_piece(pieces, p, i, ticks.times[at], part) : 0;
				left -= part;
			}
		if (left && !err)
			err = add_piece(pieces, p, i, PIECE_UNTIMED, left);
	}
	tick_groups_free(&ticks);
	wait_groups_free(&waits);
	if (!err && pieces->count)
		qsort(pieces->list, pieces->count, sizeof(*pieces->list), compare_pieces);
	return err;
}

void pieces_free(struct pieces *pieces)
{
	free(pieces->list);
	*pieces = (struct pieces){ 0 };
}
