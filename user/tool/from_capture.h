/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_FROM_CAPTURE_H
#define PROFIL_TOOL_FROM_CAPTURE_H

#include "capture/capture.h"
#include "profile/profile.h"

/*
 * Makes a profile, without names yet, from a capture that has stopped. The profile keeps what it
 * needs: the capture can be freed. *p is the caller's, to profile_free().
 */
int profile_from_capture(struct capture *c, struct profile **p, struct error *e);

/*
 * The same for a capture that goes on. A profile, which may have samples already (and then their
 * values), gets what the capture counts: samples and their CPU time in nanoseconds, values 0 and 1.
 * Both must outlive capture_profile_end(), which takes NULL, too.
 */
struct capture_profile;
int capture_profile_begin(struct capture_profile **b, struct profile *p, struct capture *c,
			  struct error *e);

/* After capture_read() or capture_stop(): adds what was counted since the last time. */
int capture_profile_add(struct capture_profile *b, struct error *e);
void capture_profile_end(struct capture_profile *b);

#endif
