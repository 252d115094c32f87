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

#endif
