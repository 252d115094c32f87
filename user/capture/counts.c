// SPDX-License-Identifier: GPL-2.0-only
#include "capture/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

/* User addresses are below it, kernel addresses are not. */
#define KERNEL_START 0x8000000000000000ULL

struct key {
	const struct counted *sample;
	const uint64_t *pcs, *stored; /* stored: counts.pcs */
	size_t depth;
};

EQUAL(sample_equal, struct counted, struct key,
      a->id == b->sample->id && a->kernel_depth == b->sample->kernel_depth &&
	      a->user_depth == b->sample->user_depth && a->end == b->sample->end &&
	      a->cpu == b->sample->cpu && a->context == b->sample->context &&
	      a->waker == b->sample->waker && a->whom == b->sample->whom &&
	      (!b->depth ||
	       memcmp(b->stored + a->first_pc, b->pcs, b->depth * sizeof(*b->pcs)) == 0))

static uint32_t plausible_depth(const uint64_t *pcs, uint32_t depth)
{
	for (uint32_t i = 1; i < depth; i++)
		if (pcs[i] == 0 ||
		    (pcs[i] >= KERNEL_START && language_of_word(pcs[i]) == LANGUAGE_NONE))
			return i;
	return depth;
}

int counts_add(struct counts *counts, const struct counted *added, const uint64_t *pcs,
	       uint32_t *to)
{
	struct counted sample = *added;
	struct key key = { &sample, pcs, counts->pcs, 0 };
	uint32_t number;
	uint64_t hash;

	sample.user_depth = plausible_depth(pcs + sample.kernel_depth, sample.user_depth);
	key.depth = sample.kernel_depth + sample.user_depth;
	hash = hash_bytes(pcs, key.depth * sizeof(*pcs),
			  hash_u64((uint64_t)sample.whom << 48 | (uint64_t)sample.waker << 32 |
					   (uint32_t)sample.context << 16 | sample.cpu,
				   sample.id));
	number = index_find(&counts->index, hash, sample_equal, counts->samples, &key);
	if (number != INDEX_NONE) {
		struct counted *its = &counts->samples[number];

		its->count += sample.count;
		its->waiting += sample.waiting;
		its->first_ns = MIN(its->first_ns, sample.first_ns);
		*to = number;
		return 0;
	}
	if (array_reserve(&counts->samples, &counts->room, counts->count + 1, sizeof(sample)) ||
	    array_reserve(&counts->pcs, &counts->pc_room, counts->pc_count + key.depth,
			  sizeof(*pcs)) ||
	    index_add(&counts->index, hash, counts->count))
		return -ENOMEM;
	sample.first_pc = counts->pc_count;
	if (key.depth) /* pcs is NULL until a stack has frames */
		memcpy(counts->pcs + counts->pc_count, pcs, key.depth * sizeof(*pcs));
	counts->pc_count += key.depth;
	*to = counts->count++;
	counts->samples[*to] = sample;
	return 0;
}

int counts_add_tick(struct counts *counts, const struct counted *sample, const uint64_t *pcs)
{
	uint32_t number;

	return counts_add(counts, sample, pcs, &number)
		       ?: tick_list_add(&counts->ticks, number, sample->first_ns);
}

int counts_add_table(struct counts *counts, const struct sample_bucket *table, size_t buckets,
		     uint32_t *numbers)
{
	for (size_t i = 0; i < buckets * SAMPLE_PER_BUCKET; i++) {
		const struct sample_bucket *bucket = &table[i / SAMPLE_PER_BUCKET];
		const struct sample *from = &bucket->samples[i % SAMPLE_PER_BUCKET];
		struct counted sample = { .user_depth = 1 };
		uint64_t count, pc;

		/* The ID is written last, and read first. */
		sample.id = __atomic_load_n(&from->id, __ATOMIC_ACQUIRE);
		counts_split_cpu(&sample);
		count = sample.id ? __atomic_load_n(&from->count, __ATOMIC_RELAXED) : 0;
		numbers[i] = TICK_REMOVED;
		if (!count)
			continue;
		pc = from->pc;
		sample.first_ns = from->first_ns;
		sample.count = count;
		sample.waiting = bucket->waiting[i % SAMPLE_PER_BUCKET];
		if (counts_add(counts, &sample, &pc, &numbers[i]))
			return -ENOMEM;
	}
	return 0;
}

static struct counted counted_stack(const struct stack *stack, uint64_t first_ns, uint64_t count,
				    uint64_t waiting)
{
	return (struct counted){
		.id = stack->id,
		.first_ns = first_ns,
		.count = count,
		.waiting = waiting,
		.kernel_depth = stack->kernel_depth,
		.user_depth = stack->user_depth,
		.end = stack->end,
		.by_frame_pointer = stack->by_frame_pointer,
		.cpu = stack->cpu,
		.context = stack->context,
	};
}

int counts_add_stacks(struct counts *counts, const struct stack_bucket *stacks, size_t buckets,
		      const struct stack_chunk *arena, uint32_t *numbers)
{
	for (size_t i = 0; i < buckets * SAMPLE_PER_BUCKET; i++) {
		const struct stack_bucket *bucket = &stacks[i / SAMPLE_PER_BUCKET];
		const struct stack_entry *entry = &bucket->entries[i % SAMPLE_PER_BUCKET];
		/* The position is written last, and read first. */
		uint64_t position = __atomic_load_n(&entry->position, __ATOMIC_ACQUIRE);
		uint64_t count = position ? __atomic_load_n(&entry->count, __ATOMIC_RELAXED) : 0;
		const struct stack_chunk *chunk = &arena[position / STACK_CHUNK_WORDS];
		const struct stack *stack =
			(const struct stack *)&chunk->words[position % STACK_CHUNK_WORDS];
		struct counted sample;

		numbers[i] = TICK_REMOVED;
		if (!count)
			continue;
		sample = counted_stack(stack, entry->first_ns, count,
				       bucket->waiting[i % SAMPLE_PER_BUCKET]);
		if (counts_add(counts, &sample, (const uint64_t *)stack->pcs, &numbers[i]))
			return -ENOMEM;
	}
	return 0;
}

int counts_add_record(struct counts *counts, const struct stack_sample *record)
{
	const struct counted sample =
		counted_stack(&record->stack, record->time_ns, 1, record->waiting);

	return counts_add_tick(counts, &sample, (const uint64_t *)record->stack.pcs);
}

int counts_group_ticks(struct counts *counts)
{
	int err = tick_list_group(&counts->ticks, counts->count, &counts->groups);

	tick_list_free(&counts->ticks);
	return err;
}

const uint64_t *counts_times(const struct counts *counts, size_t number, size_t *count)
{
	const struct tick_groups *groups = &counts->groups;

	*count = groups->first ? groups->first[number + 1] - groups->first[number] : 0;
	return *count ? groups->times + groups->first[number] : NULL;
}

int counts_group_waits(struct counts *counts)
{
	int err = wait_list_group(&counts->waits, counts->count, &counts->wait_groups);

	wait_list_free(&counts->waits);
	return err;
}

const struct timed_wait *counts_waits(const struct counts *counts, size_t number, size_t *count)
{
	const struct wait_groups *groups = &counts->wait_groups;

	*count = groups->first ? groups->first[number + 1] - groups->first[number] : 0;
	return *count ? groups->waits + groups->first[number] : NULL;
}

uint64_t counts_sum(const struct counts *counts, uint64_t *kernel)
{
	uint64_t sum = 0;

	*kernel = 0;
	for (size_t i = 0; i < counts->count; i++) {
		sum += counts->samples[i].count;
		if (counts->samples[i].id & SAMPLE_ID_KERNEL)
			*kernel += counts->samples[i].count;
	}
	return sum;
}

void counts_free(struct counts *counts)
{
	free(counts->samples);
	free(counts->pcs);
	index_free(&counts->index);
	tick_list_free(&counts->ticks);
	tick_groups_free(&counts->groups);
	wait_list_free(&counts->waits);
	wait_groups_free(&counts->wait_groups);
	*counts = (struct counts){ 0 };
}
