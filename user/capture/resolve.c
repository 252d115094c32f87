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
			const struct counted *sample)
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
				  const struct counted *sample)
{
	return process_at(processes, sample_id_tgid(sample->id), sample->first_ns);
}

static int add_to_era(struct eras *eras, const struct process_table *processes,
		      const struct counted *sample)
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

/* The address space that a sample is of; NULL: nothing is known of its process. */
static const struct address_space *space_of(const struct process_table *processes,
					    const struct eras *eras, const struct counted *sample)
{
	struct process *process = process_of(processes, sample);
	const struct era *era;

	if (!process)
		return NULL;
	era = find_era(eras, era_key(processes, process, sample));
	return process_space_at(process, era->first_ns);
}

/* The one that its process had before; NULL: none is known. */
static const struct address_space *space_before(const struct process_table *processes,
						const struct counted *sample,
						const struct address_space *space)
{
	const struct process *process = process_of(processes, sample);

	return process && space > process->spaces ? space - 1 : NULL;
}

_Static_assert(CAPTURE_DEPTH_MAX == STACK_DEPTH_MAX, "a stack is longer than is said");

/*
 * Stacks have most of their frames in common, and a process may have very many mappings: what was
 * found is kept in the place that the space and the pc hash to, until something else goes there.
 */
#define FOUND_SIZE (1U << 14)

struct found {
	const struct address_space *space; /* NULL: empty */
	uint64_t pc;
	struct mapping_answer answer;
};

struct visitor {
	struct process_table *processes;
	struct eras eras;
	struct found *found; /* FOUND_SIZE of them */
	bool incomplete;
	int (*visit)(const struct capture_sample *sample, void *context);
	void *context;
};

static const struct capture_mapping *find_mapping(const struct visitor *v,
						  const struct address_space *space, uint64_t pc,
						  uint64_t time_ns)
{
	struct found *found = &v->found[hash_u64((uintptr_t)space, pc) % FOUND_SIZE];

	if (found->space != space || found->pc != pc || time_ns < found->answer.since_ns ||
	    time_ns >= found->answer.until_ns)
		*found = (struct found){ space, pc,
					 space_mapping_at(v->processes, space, pc, time_ns) };
	return found->answer.mapping;
}

/*
 * Fills in the frames, of which the first kernel_depth are the kernel's. Returns how many there
 * are.
 */
static uint32_t resolve_frames(const struct visitor *v, const struct counted *sample,
			       const uint64_t *pcs, struct capture_frame *frames)
{
	const struct address_space *space = space_of(v->processes, &v->eras, sample), *before;
	uint32_t depth = sample->kernel_depth + sample->user_depth, kept = 0;
	bool sure = false; /* that memory without a mapping holds no code */

	for (uint32_t i = 0; i < depth; i++) {
		bool user = space && i >= sample->kernel_depth;

		frames[i].pc = pcs[i];
		/* A call may be the last instruction of a mapping. */
		frames[i].mapping =
			user ? find_mapping(v, space, pcs[i] - (i > 0), sample->first_ns) : NULL;
		/* While it executes another program, a thread has come from the one before. */
		if (user && !frames[i].mapping && i == sample->kernel_depth &&
		    sample->id & SAMPLE_ID_KERNEL &&
		    (before = space_before(v->processes, sample, space)))
			frames[i].mapping = find_mapping(v, before, pcs[i], sample->first_ns);
		if (frames[i].mapping)
			sure = !v->incomplete;
		if (frames[i].mapping || !sure)
			kept = i + 1;
	}
	return kept;
}

static int visit_sample(struct visitor *v, const struct counts *counts, size_t number)
{
	const struct counted *sample = &counts->samples[number];
	struct capture_frame frames[2 * CAPTURE_DEPTH_MAX];
	struct capture_sample out = {
		.frames = frames,
		.number = number,
		.count = sample->count,
		.pid = sample_id_tgid(sample->id),
		.tid = sample_id_tid(sample->id),
		.kernel = sample->id & SAMPLE_ID_KERNEL,
		.end = sample->end,
	};

	out.depth = resolve_frames(v, sample, counts->pcs + sample->first_pc, frames);
	out.user_depth = out.depth - sample->kernel_depth;
	out.comm = thread_comm(v->processes, out.pid, out.tid);
	return v->visit(&out, v->context);
}

int resolve_each(const struct counts *counts, struct process_table *processes, bool incomplete,
		 int (*visit)(const struct capture_sample *sample, void *context), void *context)
{
	struct visitor v = {
		.processes = processes,
		.incomplete = incomplete,
		.visit = visit,
		.context = context,
	};
	int err = 0;

	v.found = calloc(FOUND_SIZE, sizeof(*v.found));
	if (!v.found)
		return -ENOMEM;
	for (size_t i = 0; i < counts->count && !err; i++)
		err = add_to_era(&v.eras, processes, &counts->samples[i]);
	for (size_t i = 0; i < counts->count && !err; i++)
		if (counts->samples[i].count)
			err = visit_sample(&v, counts, i);
	free(v.found);
	free(v.eras.eras);
	index_free(&v.eras.index);
	return err;
}
