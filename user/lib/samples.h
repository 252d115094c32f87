/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_SAMPLES_H
#define PROFIL_LIB_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/bytes.h"

struct profil_session;

/* A cell whose count is not 0. */
struct sample {
	uint64_t address; /* the first one of the cell */
	uint64_t count;
	uint64_t bucket; /* the bytes of code of the cell, rounded */
};

/* The counts of one moment, to be written to a file. */
struct samples {
	struct sample *all; /* in the order of the cells */
	size_t count;
	pid_t pid;	    /* 0: this process */
	uint64_t period_ns; /* of CPU time between two ticks */
	uint64_t start_ns;  /* when counting began, since 1970 */
	bool is_tick;	    /* by the kernel's timer tick, else by a CPU clock */
	/* Of sessions only: what became of the other ticks. */
	bool accounted;
	uint64_t out_of_range, lost;
	struct bytes maps; /* /proc/PID/maps, current or that of profil_attach(); may be empty */
};

/*
 * Takes the samples of a session, or of a buffer of profil(). Return 0 or a negative errno with
 * profil__error() set; in any case the caller frees *samples by profil__samples_free().
 */
int profil__samples_of_session(struct samples *samples, struct profil_session *session);
int profil__samples_of_buffer(struct samples *samples, const unsigned short *buffer, size_t bufsiz,
			      size_t offset, unsigned int scale);
/* profil() or sprofil() has turned profiling on: for files of its buffers. With the lock. */
void profil__samples_note_profil(uint64_t period_ns, uint64_t start_ns);

void profil__samples_free(struct samples *samples);

#endif
