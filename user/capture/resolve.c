// SPDX-License-Identifier: GPL-2.0-only
#include "capture/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/array.h"

/*
 * The time in a process from one exec to the next. The kernel's exec number says which samples are
 * of the same interval, but not of which address space: the time of the interval's first tick does.
 */
struct exec_interval {
	uint64_t key; /* the process's number in the table, and the samples' exec number */
	uint64_t first_ns;
};

struct exec_intervals {
	struct exec_interval *all;
	size_t count, room;
	struct index index;
};

static uint64_t interval_key(const struct process_table *processes, const struct process *process,
			     const struct counted *sample)
{
	return (uint64_t)(process - processes->processes) << SAMPLE_EXEC_BITS |
	       sample_id_exec(sample->id);
}

static bool interval_equal(const void *array, uint32_t number, const void *key)
{
	return ((const struct exec_interval *)array)[number].key == *(const uint64_t *)key;
}

static struct exec_interval *find_interval(const struct exec_intervals *intervals, uint64_t key)
{
	uint32_t number = index_find(&intervals->index, hash_u64(key, 0), interval_equal,
				     intervals->all, &key);

	return number == INDEX_NONE ? NULL : &intervals->all[number];
}

static struct process *process_of(const struct process_table *processes,
				  const struct counted *sample)
{
	return process_at(processes, sample_id_tgid(sample->id), sample->first_ns);
}

static int add_to_interval(struct exec_intervals *intervals, const struct process_table *processes,
			   const struct counted *sample)
{
	const struct process *process = process_of(processes, sample);
	struct exec_interval *interval;
	uint64_t key;

	if (!process)
		return 0;
	key = interval_key(processes, process, sample);
	interval = find_interval(intervals, key);
	if (!interval) {
		if (array_reserve(&intervals->all, &intervals->room, intervals->count + 1,
				  sizeof(*interval)) ||
		    index_add(&intervals->index, hash_u64(key, 0), intervals->count))
			return -ENOMEM;
		interval = &intervals->all[intervals->count++];
		*interval = (struct exec_interval){ key, sample->first_ns };
	}
	if (sample->first_ns < interval->first_ns)
		interval->first_ns = sample->first_ns;
	return 0;
}

_Static_assert(CAPTURE_DEPTH_MAX == STACK_DEPTH_MAX, "CAPTURE_DEPTH_MAX is part of capture.h");

/*
 * Cache of mappings by address space and pc, one entry per hash value: stacks have most of their
 * frames in common, and a process may have very many mappings.
 */
#define CACHE_SIZE (1U << 14)

struct cached_mapping {
	const struct address_space *space; /* NULL: empty */
	uint64_t pc;
	struct mapping_answer answer;
};

struct visitor {
	struct process_table *processes;
	struct exec_intervals intervals;
	struct cached_mapping *cache; /* CACHE_SIZE of them */
	bool incomplete;
	uint64_t begin_ns; /* of the window; 0: samples need no origins */
	int (*visit)(const struct capture_sample *sample, void *context);
	void *context;
};

static const struct capture_mapping *find_mapping(const struct visitor *v,
						  const struct address_space *space, uint64_t pc,
						  uint64_t time_ns)
{
	struct cached_mapping *cached = &v->cache[hash_u64((uintptr_t)space, pc) % CACHE_SIZE];

	if (cached->space != space || cached->pc != pc || time_ns < cached->answer.since_ns ||
	    time_ns >= cached->answer.until_ns)
		*cached =
			(struct cached_mapping){ space, pc, space_mapping_at(space, pc, time_ns) };
	return cached->answer.mapping;
}

/*
 * Fills in the frames, the first kernel_depth of which are in the kernel. Returns how many to keep:
 * see resolve_each().
 */
static uint32_t resolve_frames(const struct visitor *v, const struct counted *sample,
			       struct process *process, const uint64_t *pcs,
			       struct capture_frame *frames)
{
	const struct address_space *space = NULL; /* NULL: the process is unknown */
	uint32_t depth = sample->kernel_depth + sample->user_depth, kept = 0;
	bool sure = false; /* the mappings are known: what has none holds no code */

	if (process) {
		uint64_t key = interval_key(v->processes, process, sample);

		space = process_space_at(process, find_interval(&v->intervals, key)->first_ns);
	}
	for (uint32_t i = 0; i < depth; i++) {
		bool user = space && i >= sample->kernel_depth;

		frames[i].pc = pcs[i];
		/* A call may be the last instruction of a mapping. */
		frames[i].mapping =
			user ? find_mapping(v, space, pcs[i] - (i > 0), sample->first_ns) : NULL;
		/* In exec, the user pc of a tick in the kernel is still in the previous program. */
		if (user && !frames[i].mapping && i == sample->kernel_depth &&
		    sample->id & SAMPLE_ID_KERNEL)
			for (size_t k = 1; k < process->count; k++)
				if (process->spaces[k] == space)
					frames[i].mapping = find_mapping(v, process->spaces[k - 1],
									 pcs[i], sample->first_ns);
		if (frames[i].mapping)
			sure = !v->incomplete;
		if (frames[i].mapping || !sure)
			kept = i + 1;
	}
	return kept;
}

static int visit_sample(struct visitor *v, const struct counts *counts,
			const struct counted *sample)
{
	struct process *process = process_of(v->processes, sample);
	struct capture_frame frames[2 * CAPTURE_DEPTH_MAX];
	char process_comm[COMM_SIZE] = "";
	struct capture_sample out = {
		.frames = frames,
		.count = sample->count,
		.pid = sample_id_tgid(sample->id),
		.tid = sample_id_tid(sample->id),
		.kernel = sample->id & SAMPLE_ID_KERNEL,
		.end = sample->end,
	};

	out.depth = resolve_frames(v, sample, process, counts->pcs + sample->first_pc, frames);
	out.user_depth = out.depth - sample->kernel_depth;
	out.generation = process ? process->generation : 0;
	out.process_comm = process_comm;
	if (v->begin_ns) { /* cpu, uid and cgroup: only recordings that are always on need them */
		out.cpu = sample->cpu == COUNTED_NO_CPU ? UINT32_MAX : sample->cpu;
		out.uid = process ? process->uid : UINT32_MAX;
		out.is_older = process && process->begin_ns <= v->begin_ns;
		if (process && process->group != INDEX_NONE)
			out.cgroup = v->processes->groups[process->group];
		/* A copy: the next call may move the names. */
		snprintf(process_comm, sizeof(process_comm), "%s",
			 thread_comm(v->processes, out.pid, out.pid, sample->first_ns));
	}
	out.comm = thread_comm(v->processes, out.pid, out.tid, sample->first_ns);
	return v->visit(&out, v->context);
}

int resolve_each(const struct counts *counts, struct process_table *processes, bool incomplete,
		 uint64_t begin_ns,
		 int (*visit)(const struct capture_sample *sample, void *context), void *context)
{
	struct visitor v = {
		.processes = processes,
		.incomplete = incomplete,
		.begin_ns = begin_ns,
		.visit = visit,
		.context = context,
	};
	int err = 0;

	v.cache = calloc(CACHE_SIZE, sizeof(*v.cache));
	if (!v.cache)
		return -ENOMEM;
	for (size_t i = 0; i < counts->count && !err; i++)
		err = add_to_interval(&v.intervals, processes, &counts->samples[i]);
	for (size_t i = 0; i < counts->count && !err; i++)
		if (counts->samples[i].count)
			err = visit_sample(&v, counts, &counts->samples[i]);
	free(v.cache);
	free(v.intervals.all);
	index_free(&v.intervals.index);
	return err;
}
