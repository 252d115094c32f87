// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/tick_list.h"

#include <errno.h>
#include <stdlib.h>

#include "util/order.h"

int tick_list_add(struct tick_list *list, uint32_t number, uint64_t time_ns)
{
	/* Unlike array_reserve(), touches no memory before it is used: there may be millions. */
	if (list->count == list->room) {
		size_t room = list->room + list->room / 2 + 64;
		uint32_t *numbers = reallocarray(list->numbers, room, sizeof(*numbers));
		uint64_t *times;

		if (!numbers)
			return -ENOMEM;
		list->numbers = numbers;
		times = reallocarray(list->times, room, sizeof(*times));
		if (!times)
			return -ENOMEM;
		list->times = times;
		list->room = room;
	}
	list->numbers[list->count] = number;
	list->times[list->count++] = time_ns;
	return 0;
}

void tick_list_renumber(struct tick_list *list, const uint32_t *numbers)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (numbers[list->numbers[i]] == TICK_REMOVED)
			continue;
		list->numbers[kept] = numbers[list->numbers[i]];
		list->times[kept++] = list->times[i];
	}
	list->count = kept;
}

void interval_extend(struct time_interval *interval, uint64_t time_ns)
{
	if (!interval->since_ns || time_ns < interval->since_ns)
		interval->since_ns = time_ns;
	if (time_ns >= interval->until_ns)
		interval->until_ns = time_ns + 1;
}

void tick_list_free(struct tick_list *list)
{
	free(list->numbers);
	free(list->times);
	*list = (struct tick_list){ 0 };
}

ORDER(earliest_first, uint64_t, COMPARE(*a, *b))

int tick_list_group(const struct tick_list *list, size_t samples, struct tick_groups *groups)
{
	size_t *first = calloc(samples + 2, sizeof(*first)), *next;
	uint64_t *times = malloc((list->count + 1) * sizeof(*times));

	if (!first || !times) {
		free(first);
		free(times);
		return -ENOMEM;
	}
	next = first + 1;
	/* next[i]: where the next time of sample i goes. At the end, where its times end. */
	for (size_t i = 0; i < list->count; i++)
		next[list->numbers[i] + 1]++;
	for (size_t i = 0; i < samples; i++)
		next[i + 1] += next[i];
	for (size_t i = 0; i < list->count; i++)
		times[next[list->numbers[i]]++] = list->times[i];
	for (size_t i = 0; i < samples; i++)
		for (size_t k = first[i] + 1; k < first[i + 1]; k++)
			if (times[k] < times[k - 1]) {
				qsort(times + first[i], first[i + 1] - first[i], sizeof(*times),
				      earliest_first);
				break;
			}
	*groups = (struct tick_groups){ times, first };
	return 0;
}

void tick_groups_free(struct tick_groups *groups)
{
	free(groups->times);
	free(groups->first);
	*groups = (struct tick_groups){ 0 };
}
