/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_HEADER_H
#define PROFIL_DCPI_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/input.h"
#include "util/scan.h"
#include "util/error.h"
#include "util/index.h"

/* The value in a line of a DCPI file's header, behind its word. */

enum dcpi_kind {
	DCPI_KIND_VERSION,    /* pdb-0.N */
	DCPI_KIND_HEX_DIGITS, /* any number of digits; compared as text */
	DCPI_KIND_TEXT,
	DCPI_KIND_EPOCH,
	DCPI_KIND_DECIMAL,
	DCPI_KIND_HEX,
	DCPI_KIND_SECONDS,   /* with a fraction */
	DCPI_KIND_ADDRESSES, /* enum dcpi_addresses */
	DCPI_KIND_LOST,	     /* a number and an optional text */
};

/* What tstart and the offsets refer to. dcpiformat(4) has DCPI_OWN only. */
enum dcpi_addresses {
	DCPI_OWN,    /* the image's own addresses, by its ELF file */
	DCPI_FILE,   /* offsets in the image's file, whose ELF headers could not be read */
	DCPI_MEMORY, /* addresses in memory: of the kernel, or without a file */
};

struct dcpi_field {
	bool given;
	uint64_t number;  /* seconds for the epoch; nanoseconds for other times */
	struct text text; /* the value, if it is not a number */
	struct text line; /* the whole line as it was read, to be written again; empty: none */
};

/* The size of any number as text. */
#define DCPI_VALUE_SIZE 64

/* Whether the period of this event is a time. */
bool dcpi_is_clock(const char *event);

#define DCPI_EPOCH_SIZE 16

/* Formats seconds since 1970 as YYMMDDHHMM, UTC. */
void dcpi_epoch_text(uint64_t seconds, char text[static DCPI_EPOCH_SIZE]);

/* The header of a DCPI file: dcpiformat(4), ASCII HEADER. */

/* The lines that are interpreted here, in the order in which they are written. */
enum dcpi_keyword {
	DCPI_VERSION,
	DCPI_IMAGE,
	DCPI_EPOCH,
	DCPI_PLATFORM,
	DCPI_EVENT,
	DCPI_PERIOD,
	DCPI_TSTART,
	DCPI_TSIZE,
	DCPI_CPUSPEED, /* the last required one */
	DCPI_CPUAMASK,
	DCPI_CPUIMPLV,
	DCPI_CPUCOUNT,
	DCPI_PATH, /* the last one of dcpiformat(4) */
	DCPI_LABEL,
	DCPI_UNIT,	  /* of the counts, if they are not events */
	DCPI_PERIOD_UNIT, /* nanoseconds, where the event's name does not say that it is a clock */
	DCPI_ADDRESSES,	  /* enum dcpi_addresses */
	DCPI_BUCKET,	  /* bytes of code that an address stands for */
	DCPI_STRIDE,	  /* bytes of code for each count of a chunk; never written */
	DCPI_COMMAND,
	DCPI_START, /* of the recording, more precise than the epoch */
	/* These are in one file of a recording only, so that adding up all files gives the sum. */
	DCPI_DURATION,
	DCPI_TICKS, /* except this one: in each file, of its counts; in one, also of the next three
		     */
	DCPI_OUT_OF_RANGE,
	DCPI_EXCLUDED,
	DCPI_LOST, /* ticks and their cause: one line for each cause */
	DCPI_KERNEL,
	DCPI_CPU,
	DCPI_KEYWORDS
};

struct dcpi_lost {
	struct text cause;
	uint64_t count;
};

/* The texts are owned by the input, the profile or struct dcpi_texts. */
struct dcpi_header {
	struct dcpi_field fields[DCPI_KEYWORDS];
	struct dcpi_lost *lost;
	size_t lost_count, lost_room;
	struct text *others; /* all other lines, in order, without duplicates */
	size_t other_count, other_room;
	struct index other_index;
	struct text malformed; /* a line whose word is known, but not its value */
};

/* Values to write if a profile or file does not have them. */
#define DCPI_MINOR	7
#define DCPI_UNKNOWN	"unknown"  /* platform */
#define DCPI_SAMPLES	"samples"  /* event */
#define DCPI_UNKNOWN_AT "unknown@" /* path of samples without an image: unknown@platform */

/* The longest header, in bytes. Bound: files: bytes of a header; then: the file is refused. */
#define DCPI_HEADER_MAX ((size_t)1 << 20)

/* Whether the input begins with a DCPI header, even a truncated or invalid one. */
bool dcpi_header_detect(const struct input *in);

/*
 * Reads and checks the header, and moves the input to the body. Returns 0 or -errno with *e set; in
 * any case the caller frees *h by dcpi_header_free().
 */
int dcpi_header_read(struct input *in, struct dcpi_header *h, struct error *e);
void dcpi_header_free(struct dcpi_header *h);

/*
 * Adds a line of the file that the samples were read from: as the text of a field of the same
 * value; as a field that is not set and that nothing else determines; or to the other lines.
 * Returns 0 or -ENOMEM.
 */
int dcpi_header_keep(struct dcpi_header *h, const struct text *line);

/* Adds lost ticks of a cause. Returns 0 or -ENOMEM. */
int dcpi_header_add_lost(struct dcpi_header *h, const struct text *cause, uint64_t count);

/* Returns the start of the recording, in nanoseconds since 1970; 0: unknown. */
uint64_t dcpi_header_time(const struct dcpi_header *h);

/*
 * Makes `h` the header of the sum of two files, with a tstart and tsize that span both. Returns 0,
 * -ENOMEM, or -EINVAL with *differs set to the word of a line that must be equal and is not.
 */
int dcpi_header_add(struct dcpi_header *h, const struct dcpi_header *other, const char **differs);

/* Whether the line that was read is the one that would be written for its value. */
bool dcpi_header_is_canonical(const struct dcpi_header *h, enum dcpi_keyword keyword);

/* Writes the header with its terminator, padded to a multiple of 4 bytes. */
void dcpi_header_write(const struct dcpi_header *h, FILE *out);

#endif
