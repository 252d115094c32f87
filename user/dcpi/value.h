/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_VALUE_H
#define PROFIL_DCPI_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/scan.h"

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

/* Sets the number from the text; of DCPI_KIND_LOST, the text becomes the rest. False: invalid. */
bool dcpi_value_parse(enum dcpi_kind kind, struct dcpi_field *f);

bool dcpi_value_same(enum dcpi_kind kind, const struct dcpi_field *a, const struct dcpi_field *b);

/* The size of any number as text. */
#define DCPI_VALUE_SIZE 64

/* Returns the value as text, which may be in `buffer`. */
struct text dcpi_value_text(enum dcpi_kind kind, const struct dcpi_field *f,
			    char buffer[static DCPI_VALUE_SIZE]);

/* Parses "pdb-MAJOR.MINOR". */
bool dcpi_version_parse(struct text t, uint64_t *major, uint64_t *minor);

/* Whether the period of this event is a time. */
bool dcpi_is_clock(const char *event);

#define DCPI_EPOCH_SIZE 16

/* Formats seconds since 1970 as YYMMDDHHMM, UTC. */
void dcpi_epoch_text(uint64_t seconds, char text[static DCPI_EPOCH_SIZE]);

#endif
