/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_THREAD_STATE_H
#define PROFIL_PROFILE_THREAD_STATE_H

#include "profile/profile.h"

/*
 * What a thread did in the time of a sample. All but the first are leaf frames, whose text says the
 * state and, in brackets with it, for what the thread waited: [blocked: lock].
 */
enum thread_state {
	THREAD_ON_CPU,
	THREAD_RUNNABLE, /* no CPU was free */
	THREAD_BLOCKED,	 /* in the middle of work, or it is unknown whether it was */
	THREAD_IDLE,	 /* without work */
	THREAD_STATES,
};

/* on CPU, runnable, blocked, idle. */
extern const char *const thread_state_names[THREAD_STATES];

/* The same as --state has them: on-cpu, runnable, blocked, idle. */
extern const char *const thread_state_options[THREAD_STATES];

#define THREAD_STATE_SIZE 64

/* Writes the text of a frame. Not for THREAD_ON_CPU. */
void thread_state_frame(enum thread_state state, const char *reason,
			char text[static THREAD_STATE_SIZE]);

/* The same of a wait without a stack, which is blocked until wait_names_apply() decides. */
void thread_state_undecided_frame(const char *reason, char text[static THREAD_STATE_SIZE]);
bool thread_state_is_undecided(const char *name);

/*
 * Returns the state that a frame of this name stands for. *reason: receives for what the thread
 * waited, `*size` bytes within the name; NULL: it was on a CPU or runnable. Files of older versions
 * have other names for runnable, and "undecided" for waits that are blocked.
 */
enum thread_state thread_state_of(const char *name, const char **reason, size_t *size);

#define THREAD_STATE_TEXT_SIZE 32

/* Writes "blocked: lock", "runnable" or "on CPU" for a frame of this name. Returns `text`. */
const char *thread_state_text(const char *name, char text[static THREAD_STATE_TEXT_SIZE]);

/* The same for a sample, by its leaf. */
enum thread_state profile_sample_state(const struct profile *p, const struct profile_sample *sample,
				       const char **reason, size_t *size);

/* The number of the function that its leaf stands for, + 1; 0: the thread was on a CPU. */
uint32_t profile_state_function(const struct profile *p, const struct profile_sample *sample);

/*
 * Where the thread of a sample waits: the number of the innermost frame that is in no C library and
 * not in the kernel. 0: it does not wait, or there is no such frame.
 */
uint32_t profile_wait_frame(const struct profile *p, const struct profile_sample *sample);

/*
 * The most reasons that are distinguished.
 * Bound: files: reasons of waits; then: the last has the rest; seen: not seen.
 */
#define THREAD_REASONS_MAX 64

/* The time of all samples by state, and of waits by their reason. */
struct thread_times {
	uint64_t states[THREAD_STATES];
	struct thread_reason {
		const char *name; /* size bytes, in the profile */
		size_t size;
		uint64_t states[THREAD_STATES];
	} reasons[THREAD_REASONS_MAX]; /* in the order of the samples */
	size_t reason_count;
};

/* Returns false if the profile has no waits. */
bool profile_thread_times(const struct profile *p, struct thread_times *times);

/* Orders the reasons by their time in a state, the longest first. */
void thread_times_sort(struct thread_times *times, enum thread_state state);

#endif
