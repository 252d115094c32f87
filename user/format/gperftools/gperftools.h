/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GPERFTOOLS_H
#define PROFIL_FORMAT_GPERFTOOLS_H

#include "format/format.h"

/*
 * The CPU profile of gperftools: slots as wide as a pointer (header, records, trailer), then the
 * memory map as text. In a symbolized profile, by google-pprof --raw, names as text come first.
 */

/*
 * gperftools records no deeper stacks. Deeper ones are truncated at the root's end.
 * Bound: format.
 */
#define GPERFTOOLS_DEPTH_MAX 254

/* gperftools_write.c */
int gperftools_write(const struct profile *p, const struct format_options *options, FILE *out,
		     struct error *e);

/* The samples that gperftools_write() drops: those without an address. */
uint64_t gperftools_dropped_samples(const struct profile *p, const struct format_options *options);

/* gperftools_symbols.c: whether the window begins with names as text, or the slots' marker. */
bool gperftools_symbols_begin(const struct input *in);

/*
 * Reads that text, up to the slots. Sets *symbolized if it has names; they become names of
 * locations without a mapping. Returns 0 or -errno with e set.
 */
int gperftools_read_symbols(struct input *in, struct profile *p, bool *symbolized, struct error *e);

/*
 * gperftools_maps.c: reads the memory map after the slots, all of which is in the window. Adds the
 * executable mappings; other lines become comments. Returns 0 or -ENOMEM.
 */
int gperftools_read_maps(const struct input *in, struct profile *p);

/*
 * Reads the table of names that a Java profile has instead of the map, and names the locations,
 * which have no mapping yet. Returns 0 or -ENOMEM.
 */
int gperftools_read_names(const struct input *in, struct profile *p);

/* Whether the window begins with a line of a memory map. */
bool gperftools_maps_begin(const struct input *in);

#endif
