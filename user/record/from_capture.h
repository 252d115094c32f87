/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_FROM_CAPTURE_H
#define PROFIL_RECORD_FROM_CAPTURE_H

#include "capture/capture.h"
#include "profile/profile.h"
#include "record/container.h"
#include "record/user_name.h"

/*
 * Makes a profile, without names yet, from a capture that has stopped. The profile keeps what it
 * needs: the capture can be freed. *p is the caller's, to profile_free().
 */
int profile_from_capture(struct capture *c, struct profile **p, struct error *e);

/* Names that labels have for the numbers of users and containers. Zero-initialised: none is read.
 */
struct origin_names {
	struct user_names users;
	struct container_names containers;
};

void origin_names_free(struct origin_names *names);

/*
 * The same after capture_cut(), for a window of a recording of the whole machine. Its labels are
 * the process's name (comm), and the tags container, container_name, cpu, thread (its name, where
 * it differs from comm), unit and user, each if known; unless each wait is kept, no TIDs, and no
 * PIDs of processes that began in the window. Comments: boot_id=, kernel=. `names` is kept from
 * window to window.
 */
int profile_from_window(struct capture *c, struct origin_names *names, struct profile **p,
			struct error *e);

/*
 * As profile_from_capture(), for a capture that is still running: adds its windows to a profile, as
 * values of profile_add_clock() and, if the kernel lets ticks know it, delay. A profile that has
 * samples already must have these value types. p and c must outlive capture_profile_end(), which
 * takes NULL, too.
 */
struct capture_profile;
int capture_profile_begin(struct capture_profile **b, struct profile *p, struct capture *c,
			  struct error *e);

/* After each capture_cut(), and capture_stop(): adds what was counted in the window. */
int capture_profile_add(struct capture_profile *b, struct error *e);
void capture_profile_end(struct capture_profile *b);

/* Returns the number of ticks of a recording whose pc is in no known image. */
uint64_t profile_count_unmapped(const struct profile *p);

#endif
