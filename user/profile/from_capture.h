/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_FROM_CAPTURE_H
#define PROFIL_PROFILE_FROM_CAPTURE_H

#include "capture/capture.h"
#include "profile/profile.h"

/*
 * Makes a profile, without names yet, from a capture that has stopped. The profile keeps what it
 * needs: the capture can be freed. *p is the caller's, to profile_free().
 */
int profile_from_capture(struct capture *c, struct profile **p, struct error *e);

#endif
