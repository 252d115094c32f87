/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_UTIL_TICK_LIST_H
#define PROFIL_UTIL_TICK_LIST_H

#include <stddef.h>
#include <stdint.h>

/*
 * When ticks came that are counted in numbered samples: tick i is of sample numbers[i] and came at
 * times[i] ns, by the owner's clock. In any order. Zero-initialised is empty.
 */
struct tick_list {
	uint32_t *numbers;
	uint64_t *times;
	size_t count, number_room, time_room;
};

/* Adds a tick. Returns 0 or -ENOMEM. */
int tick_list_add(struct tick_list *list, uint32_t number, uint64_t time_ns);

#define TICK_REMOVED UINT32_MAX

/* Gives the ticks of sample i to sample numbers[i]; removes them if that is TICK_REMOVED. */
void tick_list_renumber(struct tick_list *list, const uint32_t *numbers);

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
