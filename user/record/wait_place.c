// SPDX-License-Identifier: GPL-2.0-only
#include "record/wait_place.h"

#include <errno.h>
#include <stddef.h>

#include "bpf/wait.h"
#include "script/language.h"

/*
 * To the place where its loop waits, a thread comes in each round; to others that are as low, such
 * as a lock that is seldom contended, in fewer than 1 / this. Bound: pace.
 */
#define ROUNDS_SHARE 4

/* A place in which a thread may wait for work. */
struct wait_place {
	uint64_t hash; /* of its frames */
	uint32_t thread;
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

static const struct {
	const char *name;
	enum wait_idle idle;
} reasons[WAIT_REASONS] = {
#define WAIT_REASON(number, name, idle, ...) { name, idle },
	WAIT_REASON_LIST(WAIT_REASON)
#undef WAIT_REASON
};

/* Of a reason that is none, as of others that are unknown. */
static enum wait_reason reason_of(const struct capture_waits *wait)
{
	return wait->reason < WAIT_REASONS ? wait->reason : WAIT_OTHER;
}

/*
 * What the role decides goes before the reason: clients come, or do not; an answer, or room for
 * what is sent, is needed for work.
 */
static enum wait_idle idle_of(const struct capture_waits *wait)
{
	enum wait_idle idle = reasons[reason_of(wait)].idle;

	if (idle == WAIT_WORKS || wait->role == WAIT_ASKS || wait->role == WAIT_SENDS)
		return WAIT_WORKS;
	return wait->role == WAIT_SERVES ? WAIT_IDLES : idle;
}

#define THREAD_KEY offsetof(struct wait_thread, frames)

static struct wait_thread thread_of(const struct capture_sample *sample)
{
	return (struct wait_thread){
		.pid = sample->pid,
		.tid = sample->tid,
		.generation = sample->generation,
	};
}

/*
 * Returns the number of frames of the sample's place; *hash is equal for equal places. Of a script
 * the lines are compared: Python replaces instructions that it runs often, and has other functions
 * of its own for them.
 */
static uint32_t place_of(const struct capture_sample *sample, uint64_t *hash)
{
	const struct capture_frame *frames = sample->frames;
	const struct capture_mapping *interpreter = capture_interpreter(sample);
	uint32_t first = sample->depth - sample->user_depth, i = first, count = 0;
	const struct capture_mapping *leaf = first < sample->depth ? frames[first].mapping : NULL;

	if (leaf && !leaf->executable)
		while (i < sample->depth && frames[i].mapping &&
		       frames[i].mapping->image == leaf->image)
			i++;
	*hash = 0;
	for (; i < sample->depth; i++) {
		const struct language_code *code = frames[i].code;
		uint64_t pc = frames[i].pc;

		if (interpreter && frames[i].mapping &&
		    frames[i].mapping->image == interpreter->image)
			continue;
		if (code)
			pc = language_word(code->language, language_code(pc),
					   language_line(code, language_instruction(pc)));
		*hash = hash_u64(*hash, pc);
		count++;
	}
	return count;
}

/* Of a stack without its outer frames, it is not known how low its place is. */
static bool has_place(const struct capture_sample *sample)
{
	return sample->user_depth &&
	       (sample->end == UNWIND_COMPLETE || sample->end == UNWIND_BY_KERNEL);
}

int wait_places_note(struct wait_places *places, const struct capture_sample *wait)
{
	struct wait_thread *thread, key = thread_of(wait);
	struct wait_place *place, at = { 0 };
	uint32_t number, frames;
	uint64_t added;
	enum wait_idle idle = idle_of(&wait->waits);

	if (!has_place(wait) || idle == WAIT_WORKS)
		return 0;
	if (table_add(&places->threads, &key, THREAD_KEY, &at.thread))
		return -ENOMEM;
	frames = place_of(wait, &at.hash);
	if (table_add(&places->places, &at, offsetof(struct wait_place, thread) + sizeof(at.thread),
		      &number))
		return -ENOMEM;
	place = &places->places.all[number];
	/* Those before the second did not count yet. */
	added = place->waits < 2 && idle != WAIT_IDLES ? place->waits : 0;
	place->waits += wait->waits.count;
	thread = &places->threads.all[at.thread];
	/* A thread's start may wait once, for what it needs: that is no loop. */
	if (place->waits < 2 && idle != WAIT_IDLES)
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
		thread->hash = at.hash;
	}
	return 0;
}

static bool is_idle(const struct wait_places *places, const struct capture_sample *wait)
{
	const struct wait_thread *thread, key = thread_of(wait);
	uint32_t number = table_find(&places->threads, &key, THREAD_KEY);
	enum wait_idle idle = idle_of(&wait->waits);
	uint64_t hash;

	if (idle == WAIT_IDLES)
		return true;
	if (idle == WAIT_WORKS || !has_place(wait) || number == INDEX_NONE)
		return false;
	thread = &places->threads.all[number];
	if (!thread->frames)
		return idle == WAIT_EVENTS;
	return place_of(wait, &hash) == thread->frames && hash == thread->hash &&
	       thread->all_waits - thread->waits <= thread->waits / ROUNDS_SHARE;
}

void wait_places_frame(const struct wait_places *places, const struct capture_sample *wait,
		       char text[static THREAD_STATE_SIZE])
{
	enum wait_reason reason = reason_of(&wait->waits);
	enum wait_idle idle = idle_of(&wait->waits);
	enum thread_state state = THREAD_BLOCKED;

	if (!wait->user_depth && (idle == WAIT_LOOPS || idle == WAIT_EVENTS)) {
		thread_state_undecided_frame(reasons[reason].name, text);
		return;
	}
	if (reason == WAIT_CPU)
		state = THREAD_RUNNABLE;
	else if (is_idle(places, wait))
		state = THREAD_IDLE;
	thread_state_frame(state, reasons[reason].name, text);
}

void wait_places_free(struct wait_places *places)
{
	table_free(&places->threads);
	table_free(&places->places);
	*places = (struct wait_places){ 0 };
}
