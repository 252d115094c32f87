/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GPERFTOOLS_H
#define PROFIL_FORMAT_GPERFTOOLS_H

#include "format/format.h"

/*
 * The CPU profile of gperftools: slots as wide as a pointer (header, records, trailer), then
 * text (the memory map). A symbolized one, of google-pprof --raw, has names in text before them.
 */
extern const struct format format_gperftools;

/* gperftools_write.c */
int gperftools_write(const struct profile *p, const struct format_options *options, FILE *out,
		     struct error *e);

/* gperftools_symbols.c: whether the file begins in text, with names or a marker. */
bool gperftools_symbols_begin(const struct input *in);

/*
 * Reads that text, up to the slots. Names become those of locations in no mapping. Returns 0 or
 * -errno.
 */
int gperftools_read_symbols(struct input *in, struct profile *p, bool *symbolized, struct error *e);

uint64_t gperftools_left_out(const struct profile *p);

/*
 * gperftools_maps.c. The text behind the slots, which is all in the window. Adds the mappings that
 * hold code; lines that are none become comments. Returns 0 or -ENOMEM.
 */
int gperftools_read_maps(const struct input *in, struct profile *p);

/*
 * Names the locations, in no mapping yet, from the table of a Java profile, which stands in place
 * of the map. Returns 0 or -ENOMEM.
 */
int gperftools_read_names(const struct input *in, struct profile *p);

/* Whether a line of a memory map is next. */
bool gperftools_maps_begin(const struct input *in);

#endif
