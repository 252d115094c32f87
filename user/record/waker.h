/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_WAKER_H
#define PROFIL_RECORD_WAKER_H

#include "capture/capture.h"
#include "record/kernel_frames.h"

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
