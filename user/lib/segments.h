/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_SEGMENTS_H
#define PROFIL_LIB_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/maps.h"

#define IMAGE_ID_MAX 32 /* bytes of a build ID */

struct image_segment {
	uint64_t offset, size; /* in the file */
	uint64_t address;
};

/* What a file's name for counts of an ELF file needs to know of that. Zero-initialised is none. */
struct image {
	struct image_segment *segments; /* executable ones first */
	size_t segment_count;
	uint64_t text_start, text_size; /* from the first executable segment to the last's end */
	char id[2 * IMAGE_ID_MAX + 1];	/* its build ID in hexadecimal; "": none */
	int64_t mtime;			/* of the file, since 1970; 0: not known */
};

/*
 * Reads what process `pid`, 0 for this one, has mapped as maps->all[number], the first of its file:
 * from memory, or else from the file itself, when that is still the same. Returns 0, also when it
 * is no ELF file and has no segments; or -ENOMEM. Whatever stands there, the memory and time that
 * this takes are limited.
 */
int profil__image_read(struct image *image, pid_t pid, const struct maps *maps, uint32_t number);
void profil__image_free(struct image *image);

/* Makes an offset in the file an address of the image. False: no segment has it. */
bool profil__image_address(const struct image *image, uint64_t offset, uint64_t *address);

#endif
