/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GPERFTOOLS_H
#define PROFIL_FORMAT_GPERFTOOLS_H

#include "format/format.h"

/*
 * The CPU profile of gperftools: slots as wide as a pointer (header, records, trailer), then
 * text (the memory map).
 */
extern const struct format format_gperftools;

/* gperftools_write.c */
int gperftools_write(const struct profile *p, FILE *out, struct error *e);

/*
 * gperftools_maps.c. The text from `offset` on. Adds the mappings that hold code; lines that are
 * none become comments.
 */
int gperftools_read_maps(const struct input *in, size_t offset, struct profile *p, struct error *e);

/* Names the locations from the table of a Java profile, which stands in place of the map. */
int gperftools_read_names(const struct input *in, size_t offset, struct profile *p,
			  struct error *e);

/* Whether the text from `offset` on begins with a line of a memory map. */
bool gperftools_maps_begin(const struct input *in, size_t offset);

#endif
