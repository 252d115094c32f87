/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_WAIT_LIST_H
#define PROFIL_UTIL_WAIT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A wait, or several short ones that ended within 10 ms: length_ns is their sum. */
struct timed_wait {
	uint64_t since_ns, length_ns; /* by the owner's clock */
	uint32_t sample;	      /* its number */
	uint32_t cpu;		      /* that the thread then got, if the list is complete */
};

#define WAIT_NO_CPU UINT32_MAX /* unknown */

/* When waits were that are summed up in numbered samples. Zero-initialised is empty. */
struct wait_list {
	struct timed_wait *waits;
	size_t count, room;
	bool complete; /* each wait is one of them: none stands for several, or was left out */
};

/* Returns 0 or -ENOMEM. */
int wait_list_add(struct wait_list *list, uint32_t sample, uint64_t since_ns, uint64_t length_ns,
		  uint32_t cpu);

/* Adds all of another list; those of its sample i to sample numbers[i]. Returns 0 or -ENOMEM. */
int wait_list_append(struct wait_list *list, const struct wait_list *from, const uint32_t *numbers);

/* Gives the waits of sample i to sample numbers[i]; removes them if that is TICK_REMOVED. */
void wait_list_renumber(struct wait_list *list, const uint32_t *numbers);

/* Sample i's are waits[first[i] .. first[i + 1]), the earliest first. */
struct wait_groups {
	struct timed_wait *waits;
	size_t *first;
};

/*
 * Groups the waits by sample; `samples` is above all numbers in the list. Returns 0, and the caller
 * calls wait_groups_free(); or -ENOMEM.
 */
int wait_list_group(const struct wait_list *list, size_t samples, struct wait_groups *groups);
void wait_groups_free(struct wait_groups *groups);

void wait_list_free(struct wait_list *list);

#endif
