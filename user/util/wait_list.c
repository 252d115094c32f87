// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/wait_list.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/order.h"
#include "util/tick_list.h"

int wait_list_add(struct wait_list *list, uint32_t sample, uint64_t since_ns, uint64_t length_ns,
		  uint32_t cpu)
{
	return array_add(list->waits, list->count, list->room,
			 (struct timed_wait){ since_ns, length_ns, sample, cpu });
}

int wait_list_append(struct wait_list *list, const struct wait_list *from, const uint32_t *numbers)
{
	int err = 0;

	for (size_t i = 0; i < from->count && !err; i++) {
		const struct timed_wait *wait = &from->waits[i];

		err = wait_list_add(list, numbers[wait->sample], wait->since_ns, wait->length_ns,
				    wait->cpu);
	}
	return err;
}

void wait_list_renumber(struct wait_list *list, const uint32_t *numbers)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct timed_wait wait = list->waits[i];

		wait.sample = numbers[wait.sample];
		if (wait.sample != TICK_REMOVED)
			list->waits[kept++] = wait;
	}
	list->count = kept;
}

ORDER(earliest_first, struct timed_wait, LEAST(since_ns))

int wait_list_group(const struct wait_list *list, size_t samples, struct wait_groups *groups)
{
	size_t *first = calloc(samples + 2, sizeof(*first)), *next;
	struct timed_wait *waits = malloc((list->count + 1) * sizeof(*waits));

	*groups = (struct wait_groups){ waits, first };
	if (!first || !waits) {
		wait_groups_free(groups);
		return -ENOMEM;
	}
	/* As tick_list_group(). */
	next = first + 1;
	for (size_t i = 0; i < list->count; i++)
		next[list->waits[i].sample + 1]++;
	for (size_t i = 0; i < samples; i++)
		next[i + 1] += next[i];
	for (size_t i = 0; i < list->count; i++)
		waits[next[list->waits[i].sample]++] = list->waits[i];
	for (size_t i = 0; i < samples; i++)
		for (size_t k = first[i] + 1; k < first[i + 1]; k++)
			if (waits[k].since_ns < waits[k - 1].since_ns) {
				qsort(waits + first[i], first[i + 1] - first[i], sizeof(*waits),
				      earliest_first);
				break;
			}
	return 0;
}

void wait_groups_free(struct wait_groups *groups)
{
	free(groups->waits);
	free(groups->first);
	*groups = (struct wait_groups){ 0 };
}

void wait_list_free(struct wait_list *list)
{
	free(list->waits);
	*list = (struct wait_list){ 0 };
}
