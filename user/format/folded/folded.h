/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FOLDED_H
#define PROFIL_FORMAT_FOLDED_H

#include "format/format.h"
#include "util/scan.h"

/* Folded stacks: a line for each stack, root first, with its count: "main;work;leaf 42". */

/* Replaces the stack of samples without one. */
#define FOLDED_NO_PC "[no pc]"

/* What the writer prints instead of nothing: an empty file could be of any format. */
#define FOLDED_EMPTY "# no samples\n"

/* folded_write.c */
int folded_write(const struct profile *p, const struct format_options *options, FILE *out,
		 struct error *e);

/*
 * Writes as \xHH what readers would misinterpret in a name (a semicolon, the end of a line, a count
 * at its end), what terminals would (util/utf8.h), and a backslash that looks like such an escape.
 * Sets *escaped, which the caller frees; NULL: the name needs no escapes. Returns 0 or -ENOMEM.
 */
int folded_escape(const char *name, char **escaped);

#endif
