/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_SAMPLES_H
#define PROFIL_LIB_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/session.h"

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
	pid_t pid; /* 0: this process */
	struct counting counting;
	bool is_tick; /* by the kernel's timer tick, else by a CPU clock */
	/* Ticks that no cell has; of sessions only. */
	bool accounted;
	uint64_t out_of_range, lost;
	struct bytes maps; /* /proc/PID/maps, current or that of profil_attach(); may be empty */
};

/* Writes samples to a file or directory. Returns 0 or a negative errno with profil__error() set. */
typedef int samples_writer(const struct samples *samples, const char *path);

/*
 * Takes the samples of a session, or of a buffer of profil(), and writes them. For functions of the
 * public header: errno stays, and the last error is cleared first. Return as the writer does.
 */
int profil__samples_write_session(struct profil_session *session, samples_writer *write,
				  const char *path);
int profil__samples_write_buffer(const unsigned short *buffer, size_t bufsiz, size_t offset,
				 unsigned int scale, samples_writer *write, const char *path);

/* profil() or sprofil() has turned profiling on: for files of its buffers. With the lock. */
void profil__samples_note_profil(const struct counting *counting);

#endif
