// SPDX-License-Identifier: GPL-2.0-only
#include "record/wait_place.h"

#include <errno.h>
#include <stdlib.h>

#include "bpf/wait.h"
#include "util/array.h"

struct wait_thread {
	pid_t pid, tid;
	uint32_t generation;
	uint32_t lowest;  /* the fewest frames of a place where it may have waited for work */
	uint64_t hash;	  /* of that place */
	uint64_t waits;	  /* how many were there */
	uint32_t highest; /* the most frames of any stack */
	bool has_place;
	bool several; /* several places have as few frames */
};

/* For these a thread may wait until there is work. */
static bool may_be_idle(enum wait_reason reason)
{
	switch (reason) {
	case WAIT_LOCK:
	case WAIT_SLEEP:
	case WAIT_SOCKET:
	case WAIT_ACCEPT:
	case WAIT_PIPE:
	case WAIT_TERMINAL:
	case WAIT_EVENT:
	case WAIT_POLL:
	case WAIT_SIGNAL:
	case WAIT_IPC:
	case WAIT_OTHER:
		return true;
	default:
		return false;
	}
}

static bool thread_equal(const void *array, uint32_t number, const void *key)
{
	const struct wait_thread *thread = (const struct wait_thread *)array + number;
	const struct capture_sample *sample = key;

	return thread->tid == sample->tid && thread->pid == sample->pid &&
	       thread->generation == sample->generation;
}

static uint64_t thread_hash(const struct capture_sample *sample)
{
	return hash_u64((uint64_t)sample->pid << 32 | sample->generation, sample->tid);
}

/* Returns the number of frames of the sample's place; *hash tells it from others. */
static uint32_t place_of(const struct capture_sample *sample, uint64_t *hash)
{
	const struct capture_frame *frames = sample->frames;
	uint32_t first = sample->depth - sample->user_depth, i = first;
	const struct capture_mapping *leaf = first < sample->depth ? frames[first].mapping : NULL;

	if (leaf && !leaf->executable)
		while (i < sample->depth && frames[i].mapping &&
		       frames[i].mapping->image == leaf->image)
			i++;
	*hash = 0;
	for (uint32_t k = i; k < sample->depth; k++)
		*hash = hash_u64(*hash, frames[k].pc);
	return sample->depth - i;
}

/* Of a stack without its outer frames, it is not known how low its place is. */
static bool has_place(const struct capture_sample *sample)
{
	return sample->user_depth &&
	       (sample->end == UNWIND_COMPLETE || sample->end == UNWIND_BY_KERNEL);
}

int wait_places_note(struct wait_places *places, const struct capture_sample *sample)
{
	uint32_t number, frames;
	struct wait_thread *thread;
	uint64_t hash;

	if (!has_place(sample))
		return 0;
	number = index_find(&places->index, thread_hash(sample), thread_equal, places->threads,
			    sample);
	if (number == INDEX_NONE) {
		number = places->count;
		if (array_reserve(&places->threads, &places->room, number + 1,
				  sizeof(*places->threads)))
			return -ENOMEM;
		places->threads[number] = (struct wait_thread){
			.pid = sample->pid,
			.tid = sample->tid,
			.generation = sample->generation,
		};
		if (index_add(&places->index, thread_hash(sample), number))
			return -ENOMEM;
		places->count++;
	}
	thread = &places->threads[number];
	frames = place_of(sample, &hash);
	if (frames > thread->highest)
		thread->highest = frames;
	if (sample->kind != CAPTURE_WAITS || !may_be_idle(sample->waits.reason))
		return 0;
	if (!thread->has_place || frames < thread->lowest) {
		thread->has_place = true;
		thread->lowest = frames;
		thread->hash = hash;
		thread->waits = sample->waits.count;
		thread->several = false;
	} else if (frames == thread->lowest) {
		thread->waits += sample->waits.count;
		thread->several |= hash != thread->hash;
	}
	return 0;
}

void wait_places_frame(const struct wait_places *places, const struct capture_sample *wait,
		       char text[static THREAD_STATE_SIZE])
{
	static const char *const names[WAIT_REASONS] = {
#define WAIT_NAME(number, name) name,
		WAIT_REASON_LIST(WAIT_NAME)
#undef WAIT_NAME
	};
	enum wait_reason reason = wait->waits.reason;
	enum thread_state state = THREAD_BLOCKED;
	uint32_t number =
		index_find(&places->index, thread_hash(wait), thread_equal, places->threads, wait);
	uint64_t hash;

	if (reason >= WAIT_REASONS)
		reason = WAIT_OTHER;
	if (reason == WAIT_CPU) {
		state = THREAD_RUNNABLE;
	} else if (reason == WAIT_KERNEL) {
		state = THREAD_IDLE;
	} else if (!may_be_idle(reason)) {
		state = THREAD_BLOCKED;
	} else if (number != INDEX_NONE && has_place(wait)) {
		const struct wait_thread *thread = &places->threads[number];

		/* A thread's start may wait once, for a lock perhaps: that is no loop. */
		if (place_of(wait, &hash) > thread->lowest &&
		    !(reason == WAIT_ACCEPT && thread->waits == 1))
			state = THREAD_BLOCKED;
		else if (!thread->several &&
			 ((thread->highest > thread->lowest && thread->waits > 1) ||
			  reason == WAIT_ACCEPT))
			state = THREAD_IDLE;
	}
	thread_state_frame(state, names[reason], text);
}

void wait_places_free(struct wait_places *places)
{
	free(places->threads);
	index_free(&places->index);
	*places = (struct wait_places){ 0 };
}
