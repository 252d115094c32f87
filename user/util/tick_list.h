/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_TICK_LIST_H
#define PROFIL_UTIL_TICK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * When ticks came that are counted in numbered samples: tick i is of sample numbers[i] and came at
 * times[i] ns, by the owner's clock. In any order. Zero-initialised is empty.
 */
struct tick_list {
	uint32_t *numbers;
	uint64_t *times;
	size_t count, room;
};

/* Adds a tick. Returns 0 or -ENOMEM. */
int tick_list_add(struct tick_list *list, uint32_t number, uint64_t time_ns);

#define TICK_REMOVED UINT32_MAX

/* Gives the ticks of sample i to sample numbers[i]; removes them if that is TICK_REMOVED. */
void tick_list_renumber(struct tick_list *list, const uint32_t *numbers);

/* Times from since_ns on and before until_ns. */
struct time_interval {
	uint64_t since_ns, until_ns;
};

/* Extends an interval so that it has this time; since_ns of 0: it had no time yet. */
void interval_extend(struct time_interval *interval, uint64_t time_ns);

/* Which ticks of a file to keep: a reader skips the others, which may be millions. */
struct tick_choice {
	/* Called when it is known when the file was recorded. Sets keep and outside. */
	void (*choose)(struct tick_choice *choice, const struct time_interval *recorded);
	struct time_interval keep;
	bool outside;	/* keep those outside of it */
	uint64_t count; /* how many ticks of the file have times: set by the reader */
};

/* Adds a tick of a file if it is to be kept. choice: NULL: it is. Returns 0 or -ENOMEM. */
static inline int tick_list_choose(struct tick_list *list, struct tick_choice *choice,
				   uint32_t number, uint64_t time_ns)
{
	if (choice) {
		const struct time_interval *keep = &choice->keep;

		choice->count++;
		if ((time_ns >= keep->since_ns && time_ns < keep->until_ns) == choice->outside)
			return 0;
	}
	return tick_list_add(list, number, time_ns);
}

void tick_list_free(struct tick_list *list);

/* Sample i's times are times[first[i] .. first[i + 1]), the earliest first. */
struct tick_groups {
	uint64_t *times;
	size_t *first;
};

/*
 * Groups the times by sample; `samples` is above all numbers in the list. Returns 0, and the caller
 * calls tick_groups_free(); or -ENOMEM.
 */
int tick_list_group(const struct tick_list *list, size_t samples, struct tick_groups *groups);
void tick_groups_free(struct tick_groups *groups);

#endif
