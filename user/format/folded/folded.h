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
 * Fractions of counts are multiples of 1 / FOLDED_ONE, so that sums of decimal numbers are exact.
 */
#define FOLDED_ONE INT64_C(1000000000000000000)

/* whole + fraction / FOLDED_ONE. The two have one sign. */
struct folded_count {
	int64_t whole;
	int64_t fraction; /* its magnitude is less than FOLDED_ONE */
	bool inexact;	  /* further digits were dropped */
};

/*
 * folded_text.c. Takes the count, and the blanks before it, off the end of a line: a decimal number
 * as in C, "42", "-3", "0.25" or "1e-10". FOLDED_TOO_LARGE: it has more than 63 bits.
 */
enum folded_field {
	FOLDED_NO_COUNT,
	FOLDED_COUNT,
	FOLDED_TOO_LARGE
};
enum folded_field folded_take_count(struct text *line, struct folded_count *count);

/*
 * Writes as \xHH what readers would misinterpret in a name (a semicolon, the end of a line, a count
 * at its end), what terminals would (util/utf8.h), and a backslash that looks like such an escape.
 * Sets *escaped, which the caller frees; NULL: the name needs no escapes. Returns 0 or -ENOMEM.
 */
int folded_escape(const char *name, char **escaped);

/* Undoes folded_escape(). `name` has room for `size` bytes. Returns the name's size. */
size_t folded_unescape(const char *text, size_t size, char *name);

#endif
