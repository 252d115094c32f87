/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PROJECTION_H
#define PROFIL_FORMAT_PROJECTION_H

#include "format/format.h"
#include "util/sum.h"

/*
 * Sets *view to what a writer of the format is to be called with: p itself, but for its values. The
 * format cannot hold all that samples differ in (labels, callers, lines): those that are equal in
 * the rest are one for its readers. So their values are added up, and only the sums are judged.
 * Where the format has no sign, what is below 0 is taken from the other samples of the sum, and a
 * sum below 0 becomes 0. *below is set to the magnitude of these, of the first value that has any.
 *
 * Returns 0; or -errno with e set: all of a value is more than 63 bits, which no reader could add
 * up. After 0 the caller frees the view with projection_free(); p must outlive it.
 */
int projection_make(const struct profile *p, const struct format *format,
		    const struct format_options *options, struct profile *view,
		    magnitude_sum *below, struct error *e);
void projection_free(const struct profile *p, struct profile *view);

#endif
