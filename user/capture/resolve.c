// SPDX-License-Identifier: GPL-2.0-only
#include "capture/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/origin.h"
#include "capture/otel_process.h"

_Static_assert(CAPTURE_DEPTH_MAX == STACK_DEPTH_MAX, "CAPTURE_DEPTH_MAX is part of capture.h");

/*
 * Cache of mappings by address space and pc, one entry per hash value: stacks have most of their
 * frames in common, and a process may have very many mappings.
 * Bound: as cached_mapping.
 */
#define CACHE_SIZE (1U << 14)

/*
 * Bound: users: mappings of the last addresses; then: one replaces another, and is searched again;
 * again: at once; share: none; seen: not seen, but as CPU time.
 */
struct cached_mapping {
	const struct address_space *space; /* NULL: empty */
	uint64_t pc;
	struct mapping_answer answer;
	bool is_contested; /* space_is_contested() */
};

struct visitor {
	enum capture_kind kind;
	struct process_table *processes;
	struct scripts *scripts;
	struct cached_mapping *cache; /* CACHE_SIZE of them */
	bool incomplete;
	uint64_t begin_ns; /* of the window; 0: samples need no origins */
	int (*visit)(const struct capture_sample *sample, void *context);
	void *context;
};

/*
 * What a sample was at a time, and up to when. Code objects of scripts have a time of their own:
 * the BPF program sends what a wait is in when it has begun.
 */
struct moment {
	uint64_t time_ns, until_ns, code_ns, code_until_ns;
	bool in_doubt;
	bool in_gap; /* see struct gap_answer */
};

static void limit(struct moment *moment, uint64_t until_ns)
{
	moment->until_ns = MIN(moment->until_ns, until_ns);
}

static const struct capture_mapping *find_mapping(const struct visitor *v,
						  const struct address_space *space, uint64_t pc,
						  struct moment *moment)
{
	struct cached_mapping *cached = &v->cache[hash_u64((uintptr_t)space, pc) % CACHE_SIZE];

	if (cached->space != space || cached->pc != pc ||
	    moment->time_ns < cached->answer.since_ns ||
	    moment->time_ns >= cached->answer.until_ns) {
		const struct mapping_answer answer = space_mapping_at(space, pc, moment->time_ns);

		*cached = (struct cached_mapping){
			.space = space,
			.pc = pc,
			.answer = answer,
			.is_contested = v->processes->gap_count && answer.mapping &&
					space_is_contested(space, pc, answer.mapping->image),
		};
	}
	limit(moment, cached->answer.until_ns);
	/* /proc may have shown the same on both ends of a gap, and there was another one between.
	 */
	moment->in_doubt |= cached->answer.in_doubt || (moment->in_gap && cached->is_contested);
	return cached->answer.mapping;
}

/*
 * The walk writes a script's functions behind the call of the interpreter that runs them. A tick
 * may be just before such a call, or just after it: then each function is behind the next call, and
 * those of the first call are at the end of a native stack that is complete. Moves these before the
 * program's own start, which is in the C library. Stacks that end in the interpreter alone are
 * right: they are coroutines'.
 */
static void order_script(struct capture_frame *frames, uint32_t first, uint32_t depth)
{
	struct capture_frame last[CAPTURE_DEPTH_MAX];
	const struct capture_mapping *interpreter = NULL;
	uint32_t native = depth, end, count;
	bool is_start = false;

	for (uint32_t i = depth; i > first + 1; i--)
		if (language_of_word(frames[i - 1].pc))
			interpreter = frames[i - 2].mapping;
	while (native > first && language_of_word(frames[native - 1].pc))
		native--;
	count = depth - native;
	end = native;
	for (; native > first && !language_of_word(frames[native - 1].pc); native--)
		is_start |= interpreter && frames[native - 1].mapping &&
			    frames[native - 1].mapping->image != interpreter->image;
	if (!is_start || native == first || count > CAPTURE_DEPTH_MAX)
		return;
	memcpy(last, frames + end, count * sizeof(*last));
	memmove(frames + native + count, frames + native, (end - native) * sizeof(*frames));
	memcpy(frames + native, last, count * sizeof(*last));
}

/*
 * Fills in the frames, the first kernel_depth of which are in the kernel. Returns how many to keep:
 * see resolve_each().
 */
static uint32_t resolve_frames(const struct visitor *v, const struct counted *sample,
			       const struct process *process, const uint64_t *pcs,
			       struct capture_frame *frames, struct moment *moment)
{
	const struct address_space *space = NULL, *before = NULL; /* NULL: unknown */
	uint32_t depth = sample->kernel_depth + sample->user_depth, kept = 0;
	bool sure = false; /* the mappings are known: what has none holds no code */
	uint64_t since_ns = process && process->generation ? process->begin_ns : 0;

	/* The program that the process ran, and the one before it. */
	if (process) {
		size_t at = process->count - 1;

		for (; at > 0 && process->spaces[at]->since_ns > moment->time_ns; at--)
			limit(moment, process->spaces[at]->since_ns);
		space = process->spaces[at];
		before = at ? process->spaces[at - 1] : NULL;
		if (moment->time_ns < space->sure_ns) {
			limit(moment, space->sure_ns);
			moment->in_doubt = true;
		}
	}
	for (uint32_t i = 0; i < depth; i++) {
		bool user = space && i >= sample->kernel_depth;

		frames[i].pc = pcs[i];
		frames[i].mapping = NULL;
		frames[i].code = NULL;
		if (user && language_of_word(pcs[i])) {
			frames[i].code = scripts_find(v->scripts, sample_id_process(sample->id),
						      language_code(pcs[i]), since_ns,
						      moment->code_ns, &moment->code_until_ns);
			kept = i + 1;
			continue;
		}
		/* A call may be the last instruction of a mapping. */
		frames[i].mapping = user ? find_mapping(v, space, pcs[i] - (i > 0), moment) : NULL;
		/*
		 * In exec, the user pc of a tick in the kernel is still in the previous program;
		 * and maybe the whole stack, where it is not known when the exec was.
		 */
		if (user && !frames[i].mapping && i == sample->kernel_depth && before &&
		    (sample->id & SAMPLE_ID_KERNEL || moment->in_doubt)) {
			frames[i].mapping = find_mapping(v, before, pcs[i], moment);
			if (moment->in_doubt)
				space = before;
		}
		if (frames[i].mapping)
			sure = !v->incomplete;
		if (frames[i].mapping || !sure)
			kept = i + 1;
	}
	if (kept > sample->kernel_depth && sample->end == UNWIND_COMPLETE &&
	    language_of_word(frames[kept - 1].pc))
		order_script(frames, sample->kernel_depth, kept);
	return kept;
}

static const char *name_thread(const struct visitor *v, pid_t pid, pid_t tid, struct moment *moment)
{
	struct name_answer answer = thread_name_at(v->processes, pid, tid, moment->time_ns);

	limit(moment, answer.until_ns);
	moment->in_doubt |= answer.in_doubt;
	return answer.comm;
}

static uint64_t middle_ns(const struct timed_wait *wait)
{
	return wait->since_ns + wait->length_ns / 2;
}

/*
 * Visits the ticks of a sample from times[0] on, or the waits from waits[0] on, for which it is the
 * same; without either, the last ones. `before`: how much of its count was visited. Sets *visited
 * to how many it visits. Returns what visit() returned.
 */
static int visit_ticks(struct visitor *v, const struct counted *sample, const uint64_t *pcs,
		       const uint64_t *times, const struct timed_wait *waits, size_t count,
		       uint64_t before, size_t *visited)
{
	const uint64_t time_ns = times ? times[0] : waits ? waits[0].since_ns : sample->first_ns;
	struct moment moment = {
		.time_ns = time_ns,
		.until_ns = UINT64_MAX,
		.code_ns = waits ? middle_ns(waits) : time_ns,
		.code_until_ns = UINT64_MAX,
	};
	struct process *process =
		process_at(v->processes, sample_id_tgid(sample->id), moment.time_ns);
	struct capture_frame frames[2 * CAPTURE_DEPTH_MAX];
	char process_comm[COMM_SIZE] = "";
	struct gap_answer gaps;
	struct capture_sample out = {
		.frames = frames,
		.pid = sample_id_tgid(sample->id),
		.tid = sample_id_tid(sample->id),
		.kernel = sample->id & SAMPLE_ID_KERNEL,
		.end = sample->end,
		.context = sample->context,
		.kind = v->kind,
	};
	uint64_t amount = 0, others; /* of the sample's count, and of its waiting */
	size_t parts = 0;

	gaps = process_gaps_at(v->processes, process, moment.time_ns);
	limit(&moment, gaps.until_ns);
	moment.in_doubt = gaps.doubtful;
	moment.in_gap = gaps.in_gap;
	if (process) {
		limit(&moment, process_until(v->processes, process));
		if (moment.time_ns < process->sure_ns) {
			limit(&moment, process->sure_ns);
			moment.in_doubt = true;
		}
	}
	out.depth = resolve_frames(v, sample, process, pcs, frames, &moment);
	if (!waits)
		limit(&moment, moment.code_until_ns);
	out.user_depth = out.depth - sample->kernel_depth;
	/* The list of the thread is complete, wherever the native walk has ended. */
	if (out.user_depth && out.end != UNWIND_TRUNCATED &&
	    language_of_word(frames[out.depth - 1].pc))
		out.end = UNWIND_COMPLETE;
	out.generation = process ? process->generation : 0;
	out.process_comm = process_comm;
	/* A copy: the next call may move the names. */
	snprintf(process_comm, sizeof(process_comm), "%s",
		 name_thread(v, out.pid, out.pid, &moment));
	out.uid = v->processes->of_user ? v->processes->uid : process ? process->uid : UINT32_MAX;
	if (process && process->next_with_pid == INDEX_NONE) {
		if (origin_read_title(v->processes, process))
			return -ENOMEM;
		if (v->processes->notes_otel && !process->title_is_sure &&
		    otel_read(v->processes, process))
			return -ENOMEM;
		process->title_is_sure = true;
	}
	out.otel = process ? process->otel : NULL;
	out.title = process ? process->title : NULL;
	if (process && process->group != INDEX_NONE)
		out.cgroup = v->processes->groups[process->group];
	out.is_older = v->begin_ns && process && process->begin_ns <= v->begin_ns;
	out.comm = name_thread(v, out.pid, out.tid, &moment);
	if (times) {
		do
			amount++;
		while (amount < count && times[amount] < moment.until_ns);
	} else if (waits) {
		do
			amount += waits[parts++].length_ns;
		while (parts < count && waits[parts].since_ns < moment.until_ns &&
		       middle_ns(&waits[parts]) < moment.code_until_ns);
	} else {
		/* Their times were lost: they may have come after a change. */
		amount = count;
		moment.in_doubt |= moment.until_ns != UINT64_MAX;
	}
	/* A part of the sum, in proportion to the ticks: all parts together are the whole. */
	others = (unsigned __int128)sample->waiting * (before + amount) / sample->count -
		 (unsigned __int128)sample->waiting * before / sample->count;
	out.in_doubt = moment.in_doubt;
	switch (v->kind) {
	case CAPTURE_TICKS:
		out.ticks = (struct capture_ticks){
			.count = amount,
			.times = times,
			.runnable = others,
			.cpu = sample->cpu == COUNTED_NO_CPU ? UINT32_MAX : sample->cpu,
		};
		break;
	case CAPTURE_WAITS:
	case CAPTURE_CALLS:
		out.waits = (struct capture_waits){
			.reason = sample->cpu & WAIT_REASON_MASK,
			.role = wait_role_of(sample->cpu),
			.entry = sample->entry,
			.waker = sample->waker,
			.whom = sample->whom,
			.count = others,
			.length_ns = amount,
			.timed = waits,
			.timed_count = parts,
		};
		break;
	case CAPTURE_WAKERS:
		out.waker = (struct capture_waker){ sample->cpu, sample->waker, amount };
		break;
	}
	*visited = waits ? parts : amount;
	return v->visit(&out, v->context);
}

int resolve_each(const struct counts *counts, enum capture_kind kind,
		 struct process_table *processes, struct scripts *scripts, bool incomplete,
		 uint64_t begin_ns,
		 int (*visit)(const struct capture_sample *sample, void *context), void *context)
{
	struct visitor v = {
		.kind = kind,
		.processes = processes,
		.scripts = scripts,
		.incomplete = incomplete,
		.begin_ns = begin_ns,
		.visit = visit,
		.context = context,
	};
	int err = 0;

	v.cache = calloc(CACHE_SIZE, sizeof(*v.cache));
	if (!v.cache)
		return -ENOMEM;
	for (size_t i = 0; i < counts->count && !err; i++) {
		const struct counted *sample = &counts->samples[i];
		const uint64_t *pcs = counts->pcs + sample->first_pc, *times;
		const struct timed_wait *waits;
		size_t timed, wait_count, visited = 0;

		times = counts_times(counts, i, &timed);
		for (size_t k = 0; k < timed && !err; k += visited)
			err = visit_ticks(&v, sample, pcs, times + k, NULL, timed - k, k, &visited);
		waits = counts_waits(counts, i, &wait_count);
		for (size_t k = 0; k < wait_count && !err; k += visited) {
			err = visit_ticks(&v, sample, pcs, NULL, waits + k, wait_count - k, timed,
					  &visited);
			for (size_t j = k; j < k + visited; j++)
				timed += waits[j].length_ns;
		}
		if (!err && sample->count > timed)
			err = visit_ticks(&v, sample, pcs, NULL, NULL, sample->count - timed, timed,
					  &visited);
	}
	free(v.cache);
	return err;
}
