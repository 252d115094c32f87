/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_REFUSAL_H
#define PROFIL_CAPTURE_REFUSAL_H

#include <stdint.h>

#include "util/account.h"

/*
 * What was refused to whom: users share what the recorder has, and one who takes more than that is
 * refused the rest. It is counted, so that it can be seen who lacks what, and why.
 */
enum refusal_cause {
	REFUSAL_NO_ANSWER,	/* files and memory: they do not answer, see capture/opener.h */
	REFUSAL_UNWIND_TIME,	/* images: their call frame information is read later */
	REFUSAL_UNWIND_ROOM,	/* images: their rows have no room, see capture/unwind/ */
	REFUSAL_UNWIND_PROCESS, /* processes: others have their place in the tables */
	REFUSAL_SCRIPT_NAMES,	/* names of functions of scripts: no room, see capture/scripts.h */
	REFUSAL_CAUSES
};

extern const char *const refusal_names[REFUSAL_CAUSES];		   /* a word, for programs */
extern const enum account_number refusal_counters[REFUSAL_CAUSES]; /* those of all users */

#define REFUSAL_OTHERS UINT32_MAX /* users for whom there was no place */

struct refusal {
	uint32_t uid; /* 0: root; REFUSAL_OTHERS */
	uint32_t cause;
	uint64_t count;
	uint64_t last_s; /* when it was last, since the epoch; 0: unknown */
};

/*
 * Bound: users: pairs of a user and a cause; then: all further users are one; again: an hour after
 * a user's last; share: each user has one for each cause; seen: as "others".
 */
#define REFUSALS_MAX 64

/* Zero-initialised: none. */
struct refusals {
	uint64_t count;
	struct refusal all[REFUSALS_MAX];
};

/* Adds to a user's. The one that was last an hour before now_s makes room for a new one. */
void refusals_add(struct refusals *r, uint32_t uid, enum refusal_cause cause, uint64_t count,
		  uint64_t now_s);

#endif
