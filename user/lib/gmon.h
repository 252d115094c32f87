/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* libprofil-gmon, which replaces libc's runtime of gcc -pg programs: what unit tests call. */
#ifndef PROFIL_LIB_GMON_H
#define PROFIL_LIB_GMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/gmon_arcs.h"
#include "lib/profil.h"

struct gmon_histogram {
	struct gmon_range range; /* low and high are multiples of the size of a cell, 4 or more */
	unsigned int scale;	 /* as profil()'s */
	size_t cell_count;
	uint64_t *counts;    /* valid while paused; room for profil_read() follows */
	unsigned int hz;     /* ticks per second of CPU time */
	uint64_t ticks, due; /* of the session, without pauses; due by CPU time */
	uint64_t lost;	     /* ticks of the range that no cell has */
	bool counting;
	struct profil_session *session; /* from the first start on; NULL: none */
	unsigned short *buffer;		/* for libc's profil() instead; NULL: off */
	size_t mapped_size;		/* of all memory at `counts` */
};

/* Makes an empty histogram of the range. Returns 0 or a negative errno. */
int profil__histogram_open(struct gmon_histogram *h, const struct gmon_range *range);

/* Stops counting and frees everything. */
void profil__histogram_close(struct gmon_histogram *h);

/* Writes the contents of gmon.out to a descriptor. Returns 0 or a negative errno. */
int profil__gmon_write(int fd, const struct gmon_histogram *h, const struct gmon_arcs *arcs);

#endif
