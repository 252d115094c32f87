/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FOLDED_H
#define PROFIL_FORMAT_FOLDED_H

#include "format/format.h"
#include "util/scan.h"

/* Folded stacks: a line for each stack, root first, with its count: "main;work;leaf 42". */
extern const struct format format_folded;

/* Replaces the stack of samples without one. */
#define FOLDED_NO_PC "[no pc]"

/* What the writer prints instead of nothing: an empty file could be of any format. */
#define FOLDED_EMPTY "# no samples\n"

/* folded_write.c */
int folded_write(const struct profile *p, const struct format_options *options, FILE *out,
		 struct error *e);

/*
 * folded_text.c. Takes the count, and the blanks before it, off the end of a line: digits,
 * optionally with a minus sign or a fraction. Rounds the fraction; sets *rounded when it is not 0.
 * Returns 1; 0 when the line has no count; -ERANGE when it has more than 63 bits.
 */
int folded_take_count(struct text *line, int64_t *count, bool *rounded);

/*
 * Writes as \xHH what readers would misinterpret in a name (a semicolon, the end of a line, a count
 * at its end), what terminals would (util/utf8.h), and a backslash that looks like such an escape.
 * Sets *escaped, which the caller frees; NULL: the name needs no escapes. Returns 0 or -ENOMEM.
 */
int folded_escape(const char *name, char **escaped);

/* Undoes folded_escape(). `name` has room for `size` bytes. Returns the name's size. */
size_t folded_unescape(const char *text, size_t size, char *name);

#endif
