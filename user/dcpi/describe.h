/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_DESCRIBE_H
#define PROFIL_DCPI_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dcpi/body.h"
#include "dcpi/header.h"

/* Fills in the header of a new file: for whoever counted. */

/* Texts that were made for headers, which must live as long. Zero-initialised is none. */
struct dcpi_texts {
	char **all;
	size_t count, room;
};

void dcpi_texts_free(struct dcpi_texts *texts);

/* Keeps a text that malloc() gave, or asprintf(). Returns 0 or -ENOMEM, which NULL is. */
int dcpi_own_text(struct dcpi_texts *texts, char *text);

/* Sets *t to the text as it can stand in a line. Returns 0 or -ENOMEM, as those that follow. */
int dcpi_line_text(struct dcpi_texts *texts, const char *text, size_t size, struct text *t);

/* Nothing when the text is empty, and `unknown` is NULL. */
int dcpi_set_text(struct dcpi_texts *texts, struct dcpi_header *h, enum dcpi_keyword k,
		  const char *text, const char *unknown);
void dcpi_set_number(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number);
/* Zeros go without saying. */
void dcpi_set_nonzero(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number);

/* The epoch, and when recording began, in nanoseconds since 1970. */
void dcpi_set_start(struct dcpi_header *h, uint64_t ns);

/* What a file's counts are of. The texts are the caller's. */
struct dcpi_image {
	const char *path; /* of path_size; "": it has none */
	size_t path_size;
	const char *id; /* in hexadecimal: its build ID, or ""; dcpi_make_id() is for that */
	enum dcpi_addresses addresses;
	/*
	 * Of DCPI_MEMORY: the upper half of its addresses, as memory may lie further apart than the
	 * offsets of one file can tell. Its ids tell the windows apart, but for the main one.
	 */
	uint32_t window, main_window;
};

/* Whether what is mapped under this name, as proc(5) has it, is memory that has no file. */
bool dcpi_is_memory(const char *path);

/* The lines "image", when its id needs no file, "path" and "x-addresses". */
int dcpi_set_image(struct dcpi_texts *texts, struct dcpi_header *h, const struct dcpi_image *image);

/* As DCPI made ids: when the file was made, in seconds since 1970 or 0, and a checksum. */
int dcpi_make_id(struct dcpi_texts *texts, struct dcpi_header *h, const struct dcpi_image *image,
		 int64_t mtime);

/* The same lines for all that is counted in no image; DCPI_PLATFORM is set already. */
int dcpi_set_unattributed(struct dcpi_texts *texts, struct dcpi_header *h);

/*
 * Where nothing says what the text is (*size is 0), or not all of it, the pages that have counts
 * do: the range grows to hold them. They are folded.
 */
void dcpi_fit_range(const struct dcpi_count *counts, size_t count, uint64_t *start, uint64_t *size);

/* The last step: what must be there, and is not yet. cpu_mhz: of the machine, 0: not known. */
void dcpi_complete(struct dcpi_header *h, uint64_t cpu_mhz);

#endif
