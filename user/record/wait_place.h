/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_WAIT_PLACE_H
#define PROFIL_RECORD_WAIT_PLACE_H

#include "capture/capture.h"
#include "profile/thread_state.h"
#include "util/table.h"

/*
 * Tells threads that wait for work from threads that wait in the middle of it.
 *
 * Facts decide first. A mutex, a disk, a fault, a file, a child, a thread's end are never waited
 * for without work, nor is an answer (a socket that was connected), nor another one who is to read
 * (a pipe or socket to which the thread writes). A thread that waits for a client (accept, a socket
 * that was accepted) has none; a kernel thread's wait is idle.
 *
 * Of all others the place decides: a thread always returns to the place where it waits for work,
 * and is called from there for all else that it does. A place is the stack without the frames of
 * the library that it waits in, and of the interpreter of a script. A wait is idle at the lowest
 * place to which its thread has returned, if no other one is as low; one for events, signals or a
 * terminal also if there is no such place. What stays unclear is blocked. wait_names.h then knows
 * some waits by the names of functions, and decides of those without a stack.
 *
 * Zero-initialised is empty.
 */
struct wait_places {
	TABLE(struct wait_thread) threads;
	TABLE(struct wait_place) places;
};

/* Notes the stack of waits. Returns 0 or -ENOMEM. */
int wait_places_note(struct wait_places *places, const struct capture_sample *wait);

/* When all are noted: writes the frame that stands for the state of a wait. */
void wait_places_frame(const struct wait_places *places, const struct capture_sample *wait,
		       char text[static THREAD_STATE_SIZE]);

void wait_places_free(struct wait_places *places);

#endif
