/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_DCPI_HEADER_H
#define PROFIL_FORMAT_DCPI_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/input.h"
#include "format/scan.h"
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
	/* What only adds up stands in one file of a recording, so that reading all gives the sum. */
	DCPI_DURATION,
	DCPI_TICKS, /* all that the counts and the next three account for */
	DCPI_OUT_OF_RANGE,
	DCPI_EXCLUDED,
	DCPI_LOST, /* ticks, and why: one line for each cause */
	DCPI_KERNEL,
	DCPI_CPU,
	DCPI_KEYWORDS
};

/* Whose addresses tstart and the offsets are. Only DCPI_OWN are those of dcpiformat(4). */
enum dcpi_addresses {
	DCPI_OWN,    /* the image's own, by its ELF file */
	DCPI_FILE,   /* offsets in the image's file, which could not be read */
	DCPI_MEMORY, /* of the kernel, or of memory that has no file */
};

struct dcpi_field {
	bool given;
	uint64_t number;  /* in seconds for epoch, else nanoseconds for time */
	struct text text; /* the value, where it is no number */
	struct text line; /* to be written as it is; empty: not written before */
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
	struct text malformed; /* the first line that should have a meaning, but has a bad value */
};

/* What to write where a profile or file does not say. */
#define DCPI_MINOR	7
#define DCPI_UNKNOWN	"unknown"  /* platform */
#define DCPI_SAMPLES	"samples"  /* event */
#define DCPI_UNKNOWN_AT "unknown@" /* path of the samples without an image: unknown@platform */

/* The tag of samples that DCPI has labelled: dcpilabel(1). */
#define DCPI_LABEL_TAG "label"

/* Whether this event's period is time. */
bool dcpi_is_clock(const char *event);

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

#define DCPI_EPOCH_SIZE 16

/* "2501181015", of a time in seconds. */
void dcpi_epoch_text(uint64_t seconds, char text[static DCPI_EPOCH_SIZE]);

static inline struct text dcpi_text(const char *text)
{
	return (struct text){ text, text + strlen(text) };
}

static inline bool dcpi_text_equal(const struct text *a, const struct text *b)
{
	size_t size = a->end - a->at;

	return size == (size_t)(b->end - b->at) && (size == 0 || memcmp(a->at, b->at, size) == 0);
}

#endif
