// SPDX-License-Identifier: GPL-2.0-only
#include "record/wait_place.h"

#include <errno.h>
#include <stdlib.h>

#include "bpf/wait.h"
#include "util/array.h"

/*
 * To the place where its loop waits, a thread comes in each round; to others that are as low, such
 * as a lock that is seldom contended, in fewer than 1 / this. Bound: pace.
 */
#define ROUNDS_SHARE 4

/* A place in which a thread may wait for work. */
struct wait_place {
	uint32_t thread;
	uint64_t hash;	/* of its frames */
	uint64_t waits; /* how many were there */
};

struct wait_thread {
	pid_t pid, tid;
	uint32_t generation;
	/* The place to which it always returns, the lowest of those that it came to again. */
	uint32_t frames;	   /* 0: it has returned to none */
	uint64_t hash;		   /* of several with as few frames, that with the most waits */
	uint64_t waits, all_waits; /* there, and at all that have as few */
};

/* Reasons for which a thread may wait until there is work. Of all others it has work. */
static bool may_be_idle(const struct capture_waits *wait)
{
	switch (wait->reason) {
	case WAIT_CONDITION:
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
		return wait->role != WAIT_ASKS && wait->role != WAIT_SENDS;
	default:
		return false;
	}
}

/* A thread that does this has no work, wherever it is: clients come, or do not. */
static bool serves(const struct capture_waits *wait)
{
	return wait->reason == WAIT_ACCEPT || wait->role == WAIT_SERVES;
}

/*
 * What comes from outside: events, signals, what a person types. A thread that waits for it once,
 * and nowhere lower, is idle, too: nothing came.
 */
static bool waits_for_events(const struct capture_waits *wait)
{
	return wait->reason == WAIT_POLL || wait->reason == WAIT_SIGNAL ||
	       wait->reason == WAIT_TERMINAL;
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

static bool place_equal(const void *array, uint32_t number, const void *key)
{
	const struct wait_place *a = (const struct wait_place *)array + number, *b = key;

	return a->thread == b->thread && a->hash == b->hash;
}

static int find_or_add_thread(struct wait_places *places, const struct capture_sample *sample,
			      uint32_t *number)
{
	*number = index_find(&places->index, thread_hash(sample), thread_equal, places->threads,
			     sample);
	if (*number != INDEX_NONE)
		return 0;
	*number = places->count;
	if (array_reserve(&places->threads, &places->room, *number + 1, sizeof(*places->threads)) ||
	    index_add(&places->index, thread_hash(sample), *number))
		return -ENOMEM;
	places->threads[places->count++] = (struct wait_thread){
		.pid = sample->pid,
		.tid = sample->tid,
		.generation = sample->generation,
	};
	return 0;
}

int wait_places_note(struct wait_places *places, const struct capture_sample *wait)
{
	struct wait_place key, *place;
	struct wait_thread *thread;
	uint32_t number, frames;
	uint64_t hash, added;

	if (!has_place(wait) || !may_be_idle(&wait->waits))
		return 0;
	if (find_or_add_thread(places, wait, &key.thread))
		return -ENOMEM;
	frames = place_of(wait, &key.hash);
	hash = hash_u64(key.hash, key.thread);
	number = index_find(&places->place_index, hash, place_equal, places->places, &key);
	if (number == INDEX_NONE) {
		number = places->place_count;
		if (array_reserve(&places->places, &places->place_room, number + 1,
				  sizeof(*places->places)) ||
		    index_add(&places->place_index, hash, number))
			return -ENOMEM;
		places->places[places->place_count++] =
			(struct wait_place){ key.thread, key.hash, 0 };
	}
	place = &places->places[number];
	/* Those before the second did not count yet. */
	added = place->waits < 2 && !serves(&wait->waits) ? place->waits : 0;
	place->waits += wait->waits.count;
	thread = &places->threads[key.thread];
	/* A thread's start may wait once, for what it needs: that is no loop. */
	if (place->waits < 2 && !serves(&wait->waits))
		return 0;
	added += wait->waits.count;
	if (!thread->frames || frames < thread->frames) {
		thread->frames = frames;
		thread->waits = thread->all_waits = 0;
	}
	if (frames > thread->frames)
		return 0;
	thread->all_waits += added;
	if (place->waits > thread->waits) {
		thread->waits = place->waits;
		thread->hash = key.hash;
	}
	return 0;
}

static bool is_idle(const struct wait_places *places, const struct capture_sample *wait)
{
	uint32_t number =
		index_find(&places->index, thread_hash(wait), thread_equal, places->threads, wait);
	const struct wait_thread *thread;
	uint64_t hash;

	if (wait->waits.reason == WAIT_KERNEL || serves(&wait->waits))
		return true;
	if (!may_be_idle(&wait->waits) || !has_place(wait) || number == INDEX_NONE)
		return false;
	thread = &places->threads[number];
	if (!thread->frames)
		return waits_for_events(&wait->waits);
	return place_of(wait, &hash) == thread->frames && hash == thread->hash &&
	       thread->all_waits - thread->waits <= thread->waits / ROUNDS_SHARE;
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

	if (reason >= WAIT_REASONS)
		reason = WAIT_OTHER;
	if (reason == WAIT_CPU)
		state = THREAD_RUNNABLE;
	else if (is_idle(places, wait))
		state = THREAD_IDLE;
	thread_state_frame(state, names[reason], text);
}

void wait_places_free(struct wait_places *places)
{
	free(places->threads);
	free(places->places);
	index_free(&places->index);
	index_free(&places->place_index);
	*places = (struct wait_places){ 0 };
}
