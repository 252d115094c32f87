/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_DESCRIBE_H
#define PROFIL_DCPI_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dcpi/body.h"
#include "dcpi/header.h"

/* Fills in the header of a new file. Functions that return int return 0 or -ENOMEM. */

/* Texts that headers refer to, and that must live as long. Zero-initialised: empty. */
struct dcpi_texts {
	char **all;
	size_t count, room;
};

void dcpi_texts_free(struct dcpi_texts *texts);

/* Takes ownership of a text of malloc() or asprintf(); NULL is -ENOMEM. */
int dcpi_own_text(struct dcpi_texts *texts, char *text);

/* Sets *t to the text, with ? for characters that a value must not have: itself or a copy. */
int dcpi_line_text(struct dcpi_texts *texts, const char *text, size_t size, struct text *t);

/* An empty text is replaced by `unknown`; if that is NULL, the field is not set. */
int dcpi_set_text(struct dcpi_texts *texts, struct dcpi_header *h, enum dcpi_keyword k,
		  const char *text, const char *unknown);
void dcpi_set_number(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number);
/* Sets the field unless the number is 0. */
void dcpi_set_nonzero(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number);

/* Sets the epoch and the start of the recording, from nanoseconds since 1970. */
void dcpi_set_start(struct dcpi_header *h, uint64_t ns);

/* The image that a file's counts are of. The caller owns the texts. */
struct dcpi_image {
	const char *path; /* of path_size bytes; "": none */
	size_t path_size;
	const char *id; /* build ID in hexadecimal; "": none, see dcpi_make_id() */
	enum dcpi_addresses addresses;
	/*
	 * For DCPI_MEMORY: the upper 32 bits of the addresses, as memory may extend over more than
	 * the 32-bit offsets of one file. Each window has a file; the window is its ID, except the
	 * main one's.
	 */
	uint32_t window, main_window;
};

/* Whether a mapping of this path, as in proc(5), is memory without a file. */
bool dcpi_is_memory(const char *path);

/* Sets the lines "path", "x-addresses" and, if there is an ID or none is needed, "image". */
int dcpi_set_image(struct dcpi_texts *texts, struct dcpi_header *h, const struct dcpi_image *image);

/* CRC-32 of IEEE 802.3. */
uint32_t dcpi_checksum(const char *text, size_t size);

/* Makes an ID as DCPI did: the file's time, in seconds since 1970 or 0, and a checksum. */
int dcpi_make_id(struct dcpi_texts *texts, struct dcpi_header *h, const struct dcpi_image *image,
		 int64_t mtime);

/* Sets the same lines for counts that are in no image; DCPI_PLATFORM must be set. */
int dcpi_set_unattributed(struct dcpi_texts *texts, struct dcpi_header *h);

/*
 * Extends the range of the text, whose *size is 0 if it is unknown, to the pages of all counts,
 * which are folded. Counts 4 GiB or more above its start do not fit into a file: *count becomes the
 * number of those below. Returns the sum of the others.
 */
uint64_t dcpi_fit_range(const struct dcpi_count *counts, size_t *count, uint64_t *start,
			uint64_t *size);

/* Sets what dcpi_fit_range() returned as lost ticks. */
int dcpi_set_dropped(struct dcpi_header *h, uint64_t dropped);

/* The last step: sets what is required and not set yet. cpu_mhz is 0 if unknown. */
void dcpi_complete(struct dcpi_header *h, uint64_t cpu_mhz);

#endif
