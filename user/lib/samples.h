/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_SAMPLES_H
#define PROFIL_LIB_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/bytes.h"

struct profil_session;

/* A cell that is not 0. */
struct sample {
	uint64_t address; /* that it begins with */
	uint64_t count;
	uint64_t bucket; /* the bytes of program that it has, rounded */
};

/* What a file is written from: counts as they were at one moment. */
struct samples {
	struct sample *all; /* in the order of the cells */
	size_t count;
	pid_t pid;	    /* 0: this process */
	uint64_t period_ns; /* of CPU time between two ticks */
	uint64_t start_ns;  /* when counting began, since 1970 */
	bool is_tick;	    /* counted by the kernel's timer tick, else by a clock of the CPU */
	/* Of sessions, which account for all ticks. */
	bool accounted;
	uint64_t out_of_range, lost;
	struct bytes maps; /* /proc/PID/maps, of this moment or an earlier one; may be empty */
};

/*
 * Takes them from a session, or from a buffer that profil() was called for. Free them in any case.
 * Return 0 or a negative errno with profil__error() set.
 */
int profil__samples_of_session(struct samples *samples, struct profil_session *session);
int profil__samples_of_buffer(struct samples *samples, const unsigned short *buffer, size_t bufsiz,
			      size_t offset, unsigned int scale);
void profil__samples_free(struct samples *samples);

#endif
