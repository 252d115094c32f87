/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_VALUE_H
#define PROFIL_DCPI_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/scan.h"

/* What stands in a line of a DCPI file's header behind its word. */

enum dcpi_kind {
	DCPI_KIND_VERSION,    /* pdb-0.N */
	DCPI_KIND_HEX_DIGITS, /* any number of them: text */
	DCPI_KIND_TEXT,
	DCPI_KIND_EPOCH,
	DCPI_KIND_DECIMAL,
	DCPI_KIND_HEX,
	DCPI_KIND_SECONDS,   /* with a fraction */
	DCPI_KIND_ADDRESSES, /* enum dcpi_addresses */
	DCPI_KIND_LOST,	     /* a number, and perhaps a text */
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

/* Fills in the number from the text. The text of DCPI_KIND_LOST becomes what follows it. */
bool dcpi_value_parse(enum dcpi_kind kind, struct dcpi_field *f);

bool dcpi_value_same(enum dcpi_kind kind, const struct dcpi_field *a, const struct dcpi_field *b);

/* Room for any number as text. */
#define DCPI_VALUE_SIZE 64

/* As it is written, perhaps in `buffer`. */
struct text dcpi_value_text(enum dcpi_kind kind, const struct dcpi_field *f,
			    char buffer[static DCPI_VALUE_SIZE]);

/* "pdb-MAJOR.MINOR" */
bool dcpi_version_parse(struct text t, uint64_t *major, uint64_t *minor);

/* Whether this event's period is time. */
bool dcpi_is_clock(const char *event);

#define DCPI_EPOCH_SIZE 16

/* "2501181015", of a time in seconds. */
void dcpi_epoch_text(uint64_t seconds, char text[static DCPI_EPOCH_SIZE]);

#endif
