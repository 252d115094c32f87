// SPDX-License-Identifier: GPL-2.0-only
#include "capture/resolve.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"

/*
 * One program's run in one process: from exec to exec. The kernel counts execs on from a number
 * that we do not know; when its first tick came tells which address space it had.
 */
struct era {
	uint64_t key; /* a process's number in the table, and the exec number of the samples */
	uint64_t first_ns;
};

struct eras {
	struct era *eras;
	size_t count, room;
	struct index index;
};

static uint64_t era_key(const struct process_table *processes, const struct process *process,
			const struct sample *sample)
{
	return (uint64_t)(process - processes->processes) << SAMPLE_EXEC_BITS |
	       sample_id_exec(sample->id);
}

static bool era_equal(const void *array, uint32_t number, const void *key)
{
	return ((const struct era *)array)[number].key == *(const uint64_t *)key;
}

static struct era *find_era(const struct eras *eras, uint64_t key)
{
	uint32_t number = index_find(&eras->index, hash_u64(key, 0), era_equal, eras->eras, &key);

	return number == INDEX_NONE ? NULL : &eras->eras[number];
}

static struct process *process_of(const struct process_table *processes,
				  const struct sample *sample)
{
	return process_at(processes, sample_id_tgid(sample->id), sample->first_ns);
}

static int add_to_era(struct eras *eras, const struct process_table *processes,
		      const struct sample *sample)
{
	const struct process *process = process_of(processes, sample);
	struct era *era;
	uint64_t key;

	if (!process)
		return 0;
	key = era_key(processes, process, sample);
	era = find_era(eras, key);
	if (!era) {
		if (array_reserve(&eras->eras, &eras->room, eras->count + 1, sizeof(*era)) ||
		    index_add(&eras->index, hash_u64(key, 0), eras->count))
			return -ENOMEM;
		era = &eras->eras[eras->count++];
		*era = (struct era){ key, sample->first_ns };
	}
	if (sample->first_ns < era->first_ns)
		era->first_ns = sample->first_ns;
	return 0;
}

static const struct capture_mapping *mapping_of(const struct process_table *processes,
						const struct eras *eras,
						const struct sample *sample)
{
	struct process *process = process_of(processes, sample);
	const struct era *era;

	if (!process)
		return NULL;
	era = find_era(eras, era_key(processes, process, sample));
	return space_mapping_at(processes, process_space_at(process, era->first_ns), sample->pc,
				sample->first_ns);
}

static int visit_sample(struct process_table *processes, const struct eras *eras,
			const struct sample *sample, size_t number,
			int (*visit)(const struct capture_sample *sample, void *context),
			void *context)
{
	struct capture_frame frame = { sample->pc, mapping_of(processes, eras, sample) };
	struct capture_sample out = {
		.frames = &frame,
		.depth = 1,
		.number = number,
		.count = sample->count,
		.pid = sample_id_tgid(sample->id),
		.tid = sample_id_tid(sample->id),
		.kernel = sample->id & SAMPLE_ID_KERNEL,
	};

	out.comm = thread_comm(processes, out.pid, out.tid);
	return visit(&out, context);
}

int resolve_each(const struct counts *counts, struct process_table *processes,
		 int (*visit)(const struct capture_sample *sample, void *context), void *context)
{
	struct eras eras = { 0 };
	int err = 0;

	for (size_t i = 0; i < counts->count && !err; i++)
		err = add_to_era(&eras, processes, &counts->samples[i]);
	for (size_t i = 0; i < counts->count && !err; i++)
		if (counts->samples[i].count)
			err = visit_sample(processes, &eras, &counts->samples[i], i, visit,
					   context);
	free(eras.eras);
	index_free(&eras.index);
	return err;
}
