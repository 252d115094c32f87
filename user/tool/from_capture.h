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
 * The same for a capture that is still running: adds what it counts to a profile, as value 0
 * (samples) and value 1 (CPU time in nanoseconds). A profile that has samples already must have
 * these value types. p and c must outlive capture_profile_end(), which takes NULL, too.
 */
struct capture_profile;
int capture_profile_begin(struct capture_profile **b, struct profile *p, struct capture *c,
			  struct error *e);

/* After capture_read() or capture_stop(): adds what was counted since the last time. */
int capture_profile_add(struct capture_profile *b, struct error *e);
void capture_profile_end(struct capture_profile *b);

#endif
