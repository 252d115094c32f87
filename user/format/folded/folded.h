/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FOLDED_H
#define PROFIL_FORMAT_FOLDED_H

#include "format/format.h"
#include "util/scan.h"

/* A line for each stack, its root first: "main;work;leaf 42". */
extern const struct format format_folded;

/* What stands in place of a stack for samples that have none. */
#define FOLDED_NO_PC "[no pc]"

/* folded_write.c */
int folded_write(const struct profile *p, const struct format_options *options, FILE *out,
		 struct error *e);

/*
 * folded_text.c. Takes the count from the end of a line, with the blanks before it: digits, perhaps
 * with a minus or a fraction. The fraction is rounded; *rounded becomes true when it is not 0.
 * Returns 1, 0 when there is none, or -ERANGE.
 */
int folded_take_count(struct text *line, int64_t *count, bool *rounded);

/*
 * What a reader would take for something else in a name (a semicolon, the end of a line, a count at
 * its end), or a terminal for a command (util/utf8.h), is written as \xHH, and so is a backslash
 * that would begin such an escape.
 * *escaped is the caller's to free(), or NULL when the name needs none. Returns 0 or -ENOMEM.
 */
int folded_escape(const char *name, char **escaped);

/* The other way round; `name` has room for `size` bytes. Returns the name's size. */
size_t folded_unescape(const char *text, size_t size, char *name);

#endif
