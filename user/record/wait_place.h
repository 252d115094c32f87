/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_WAIT_PLACE_H
#define PROFIL_RECORD_WAIT_PLACE_H

#include "capture/capture.h"
#include "profile/thread_state.h"
#include "util/index.h"

/*
 * Tells threads that wait for work from threads that wait in the middle of it, by where they wait:
 * a thread always returns to the place where it waits for work, and is called from there for all
 * else that it does. A place is the stack without the frames of the library that it waits in.
 *
 * A wait is idle if the thread has no lower place, and no other one as low, has waited there twice,
 * and is seen above it, running or waiting, or waits for a connection; so is every wait of a kernel
 * thread. It is blocked if the thread has a lower place, and where no thread waits for work: for a
 * disk, a fault, a child. All others are blocked, too: a thread that waits in one place all the
 * time, or once, may be idle, or stuck.
 *
 * Zero-initialised is empty.
 */
struct wait_places {
	struct wait_thread *threads;
	size_t count, room;
	struct index index;
};

/* Notes the stack of waits, or of ticks. Returns 0 or -ENOMEM. */
int wait_places_note(struct wait_places *places, const struct capture_sample *sample);

/* When all are noted: writes the frame that stands for the state of a wait. */
void wait_places_frame(const struct wait_places *places, const struct capture_sample *wait,
		       char text[static THREAD_STATE_SIZE]);

void wait_places_free(struct wait_places *places);

#endif
