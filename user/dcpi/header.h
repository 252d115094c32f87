/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_HEADER_H
#define PROFIL_DCPI_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "dcpi/value.h"
#include "util/input.h"
#include "util/scan.h"
#include "util/error.h"
#include "util/index.h"

/* The header of a DCPI file, private to the files dcpi*.c: dcpiformat(4), ASCII HEADER. */

/* The lines that have a meaning here, in the order in which they are written. */
enum dcpi_keyword {
	DCPI_VERSION,
	DCPI_IMAGE,
	DCPI_EPOCH,
	DCPI_PLATFORM,
	DCPI_EVENT,
	DCPI_PERIOD,
	DCPI_TSTART,
	DCPI_TSIZE,
	DCPI_CPUSPEED, /* the last that is required */
	DCPI_CPUAMASK,
	DCPI_CPUIMPLV,
	DCPI_CPUCOUNT,
	DCPI_PATH, /* the last that dcpiformat(4) knows */
	DCPI_LABEL,
	DCPI_UNIT,	  /* of the counts, when they are no events */
	DCPI_PERIOD_UNIT, /* nanoseconds, where the event's name does not say that it is a clock */
	DCPI_ADDRESSES,	  /* enum dcpi_addresses */
	DCPI_BUCKET,	  /* bytes: addresses are those of ranges so long */
	DCPI_STRIDE,	  /* bytes of code for each count of a chunk; never written */
	DCPI_COMMAND,
	DCPI_START, /* when recording began, finer than the epoch */
	/* These stand in one file of a recording: to read all of them gives the sum. */
	DCPI_DURATION,
	DCPI_TICKS, /* but this in each: of its counts, and in one of the next three, too */
	DCPI_OUT_OF_RANGE,
	DCPI_EXCLUDED,
	DCPI_LOST, /* ticks, and why: one line for each cause */
	DCPI_KERNEL,
	DCPI_CPU,
	DCPI_KEYWORDS
};

struct dcpi_lost {
	struct text cause;
	uint64_t count;
};

/* All texts are somebody else's: the input's or the profile's. */
struct dcpi_header {
	struct dcpi_field fields[DCPI_KEYWORDS];
	struct dcpi_lost *lost;
	size_t lost_count, lost_room;
	struct text *others; /* all other lines, in order, each once */
	size_t other_count, other_room;
	struct index other_index;
	struct text malformed; /* a line that should have a meaning, but has a bad value */
};

/* What to write where a profile or file does not say. */
#define DCPI_MINOR	7
#define DCPI_UNKNOWN	"unknown"  /* platform */
#define DCPI_SAMPLES	"samples"  /* event */
#define DCPI_UNKNOWN_AT "unknown@" /* path of the samples without an image: unknown@platform */

/* No header is longer. */
#define DCPI_HEADER_MAX ((size_t)1 << 20)

/* Whether the window begins with such a header, whole and right or not. */
bool dcpi_header_detect(const struct input *in);

/*
 * Reads and checks the header, and moves the input to the body. Returns 0 or -errno; in any
 * case free the header.
 */
int dcpi_header_read(struct input *in, struct dcpi_header *h, struct error *e);
void dcpi_header_free(struct dcpi_header *h);

/*
 * Adds a line that the file had from which the samples come: as the text of a field that has the
 * same value; as a field that nothing else tells; or to the other lines. Returns 0 or -ENOMEM.
 */
int dcpi_header_keep(struct dcpi_header *h, const struct text *line);

/* Adds to a cause of lost ticks. Returns 0 or -ENOMEM. */
int dcpi_header_add_lost(struct dcpi_header *h, const struct text *cause, uint64_t count);

/* When recording began, in nanoseconds since 1970; 0: not known. */
uint64_t dcpi_header_time(const struct dcpi_header *h);

/*
 * Makes `h` the header of the sum of both files, with tstart and tsize that span both. Returns 0,
 * -ENOMEM, or -EINVAL: *differs is then the word of the line that must be equal and is not.
 */
int dcpi_header_add(struct dcpi_header *h, const struct dcpi_header *other, const char **differs);

/* Whether a line that was read is as it would be written without it. */
bool dcpi_header_is_canonical(const struct dcpi_header *h, enum dcpi_keyword keyword);

/* Writes it, with its terminator, in a size that is a multiple of 4. */
void dcpi_header_write(const struct dcpi_header *h, FILE *out);

#endif
