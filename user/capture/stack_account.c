// SPDX-License-Identifier: GPL-2.0-only
#include "capture/stack_account.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/file.h"
#include "util/number.h"

void stack_account_begin(struct stack_account *a)
{
	char text[32];
	uint64_t limit;

	a->limit = CAPTURE_DEPTH_MAX;
	/* The kernel's own limit may be lower, but a stack has a leaf in any case. */
	if (file_read_line("/proc/sys/kernel/perf_event_max_stack", text, sizeof(text)) == 0 &&
	    number_parse(text, 0, CAPTURE_DEPTH_MAX, &limit) == 0)
		a->limit = limit ?: 1;
}

int stack_account_add(struct stack_account *a, const struct capture_sample *sample)
{
	uint32_t kernel_depth = sample->depth - sample->user_depth;
	const struct capture_mapping *mapping;
	uint32_t image;
	size_t i = 0;
	bool by_kernel = sample->end == UNWIND_BY_KERNEL || sample->end == UNWIND_32_BIT;

	if (kernel_depth >= a->limit || sample->end == UNWIND_TRUNCATED ||
	    (by_kernel && sample->user_depth >= a->limit))
		a->truncated += sample->ticks.count;
	if (!sample->user_depth || sample->end == UNWIND_NO_STACK)
		return 0;
	a->user += sample->ticks.count;
	if (sample->end == UNWIND_COMPLETE)
		a->complete += sample->ticks.count;
	if (sample->end == UNWIND_COMPLETE || sample->end == UNWIND_BY_KERNEL ||
	    sample->end == UNWIND_TRUNCATED)
		return 0;
	/* A linear search: stacks end in few images, for few causes. */
	mapping = sample->frames[sample->depth - 1].mapping;
	image = mapping ? mapping->image : UINT32_MAX;
	while (i < a->end_count && (a->ends[i].end != sample->end || a->ends[i].image != image))
		i++;
	if (i == a->end_count) {
		if (array_reserve(&a->ends, &a->end_room, a->end_count + 1, sizeof(*a->ends)))
			return -ENOMEM;
		a->ends[a->end_count++] = (struct capture_stack_end){ sample->end, image, 0 };
	}
	a->ends[i].count += sample->ticks.count;
	return 0;
}

static int most_first(const void *left, const void *right)
{
	const struct capture_stack_end *a = left, *b = right;

	return (a->count < b->count) - (a->count > b->count);
}

void stack_account_sort(struct stack_account *a)
{
	if (a->end_count)
		qsort(a->ends, a->end_count, sizeof(*a->ends), most_first);
}

void stack_account_clear(struct stack_account *a)
{
	a->truncated = a->user = a->complete = a->end_count = 0;
}

void stack_account_free(struct stack_account *a)
{
	free(a->ends);
}
