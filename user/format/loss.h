/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_LOSS_H
#define PROFIL_FORMAT_LOSS_H

#include <stddef.h>

#include "format/format.h"

/* The aspect in words: "call stacks". */
const char *aspect_name(enum format_aspect aspect);

/* The aspects that this profile has: KEEPS(aspect) | ... */
unsigned int loss_aspects(const struct profile *p);

/*
 * Writes to text[size] which of the aspects, and which extras of the profile, the format does not
 * keep: "names, build IDs and the account of ticks"; and which value it keeps of several, by
 * options. False: it keeps all.
 */
bool loss_list(const struct profile *p, unsigned int aspects, const struct format *format,
	       const struct format_options *options, char *text, size_t size);

#endif
