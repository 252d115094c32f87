/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_KERNEL_FRAMES_H
#define PROFIL_RECORD_KERNEL_FRAMES_H

#include "capture/capture.h"
#include "profile/profile.h"
#include "util/index.h"

/*
 * Names of the kernel frames of waits. They are read apart from those of the profile: which frames
 * a stack has there depends on them. Zero-initialised is empty.
 */
struct kernel_frames {
	struct profile *p; /* its locations are the frames; NULL: there are none */
	struct index index;
};

/* Notes the kernel frames of a stack. Returns 0 or -ENOMEM. */
int kernel_frames_note(struct kernel_frames *frames, const struct capture_sample *sample);

/* When all are noted: finds their names. Returns 0 or -ENOMEM. */
int kernel_frames_name_all(struct kernel_frames *frames);

/*
 * How many frames of a stack, from the leaf on, there are up to the function that calls the BPF
 * program, this included: __schedule for waits. 0: it is not found.
 */
uint32_t kernel_frames_until(const struct kernel_frames *frames,
			     const struct capture_sample *sample, const char *function);

void kernel_frames_free(struct kernel_frames *frames);

#define WAKER_NAME_SIZE 32

/*
 * Writes the name of a waker: of its thread, or "interrupt: KIND", where the kind is network,
 * timer, disk or other, or "interrupt" if its stack was not taken. "": unknown.
 */
void waker_name(const struct capture_sample *waker, const struct kernel_frames *frames,
		char name[static WAKER_NAME_SIZE]);

/* Which interrupt ends waits for this reason, if the waker's stack is unknown. */
const char *waker_interrupt_of(enum wait_reason reason);

#endif
