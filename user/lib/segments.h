/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_SEGMENTS_H
#define PROFIL_LIB_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/maps.h"
#include "util/elf_header.h"

/* Bound: format. */
#define IMAGE_ID_MAX 32 /* bytes of a build ID */

/* The fields of an image that DCPI files have. Zero-initialised: nothing is known. */
struct image {
	struct elf_segment *segments; /* those that are loaded */
	size_t segment_count;
	uint64_t text_start,
		text_size; /* from the first executable segment to the end of the last */
	char id[2 * IMAGE_ID_MAX + 1]; /* build ID in hexadecimal; "": none */
	int64_t mtime;		       /* of the file, in seconds since 1970; 0: unknown */
};

/*
 * Reads the image that process `pid`, 0 for this one, has mapped as maps->all[number], which must
 * be the first mapping of its file: from memory, or else from the file, if that is still the same
 * one. Returns 0, without segments if the image is no ELF file; or -ENOMEM. Memory and time are
 * bounded whatever the image contains. The caller frees *image by profil__image_free().
 */
int profil__image_read(struct image *image, pid_t pid, const struct maps *maps, uint32_t number);
void profil__image_free(struct image *image);

/*
 * Sets *address to the image's own address of an offset in its file, of an executable segment if it
 * is in several. False: no segment has it.
 */
bool profil__image_address(const struct image *image, uint64_t offset, uint64_t *address);

#endif
