// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/wait_list.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/tick_list.h"

int wait_list_add(struct wait_list *list, uint32_t sample, uint64_t since_ns, uint64_t length_ns,
		  uint32_t cpu)
{
	if (array_reserve(&list->waits, &list->room, list->count + 1, sizeof(*list->waits)))
		return -ENOMEM;
	list->waits[list->count++] = (struct timed_wait){ since_ns, length_ns, sample, cpu };
	return 0;
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

static int by_sample(const void *left, const void *right)
{
	const struct timed_wait *a = left, *b = right;

	if (a->sample != b->sample)
		return a->sample < b->sample ? -1 : 1;
	return (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
}

int wait_list_group(const struct wait_list *list, size_t samples, struct wait_groups *groups)
{
	size_t *first = calloc(samples + 1, sizeof(*first));
	struct timed_wait *waits = malloc((list->count + 1) * sizeof(*waits));

	*groups = (struct wait_groups){ waits, first };
	if (!first || !waits) {
		wait_groups_free(groups);
		return -ENOMEM;
	}
	for (size_t i = 0; i < list->count; i++) {
		waits[i] = list->waits[i];
		first[waits[i].sample + 1]++;
	}
	qsort(waits, list->count, sizeof(*waits), by_sample);
	for (size_t i = 0; i < samples; i++)
		first[i + 1] += first[i];
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
