/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TEXT_H
#define PROFIL_REPORT_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Makes text from files and processes fit to print. Its visible form is valid UTF-8, in which \xNN
 * stands for every byte of a control character (C0, C1, DEL), of a character that is invisible or
 * turns the writing direction, and of invalid UTF-8. Its columns are those that it takes in a
 * terminal: utf8_columns().
 */

/* What switches the looks of text in a terminal; only for output in colours. */
#define TEXT_BOLD  "\033[1m"
#define TEXT_FAINT "\033[2m"
#define TEXT_RED   "\033[31m"
#define TEXT_PLAIN "\033[0m"

/* Prints the visible form. */
void text_print(const char *raw, FILE *out);

/* As fprintf(3), with the visible forms of texts. Conversions: %s %c %d %i %u %x %f, without "*".
 */
void text_printf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(FILE *out, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/*
 * Prints the visible form in lines of `width` columns, broken at blanks; 0: in one line. The first
 * line begins at `column`, the others at `indent`; a word that is longer than a line is not broken.
 */
void text_wrap(const char *raw, size_t column, size_t indent, size_t width, FILE *out);

/* Returns the visible form, to be free()d, or NULL when memory runs out. */
char *text_visible(const char *raw);

/* Returns the columns of the visible form. */
size_t text_columns(const char *raw);

/*
 * Shortens a visible form in place to `columns` (at least 4) or less: "..." replaces template
 * arguments and parameters, only as many as needed, then the middle, because the beginning of a
 * name shows where it belongs and its end distinguishes it from similar names.
 */
void text_shorten(char *visible, size_t columns);

/* The same for a file's path: drops its directories first, from the root on. */
void text_shorten_path(char *visible, size_t columns);

/* The same for a line of text: keeps its beginning. */
void text_shorten_line(char *visible, size_t columns);

/* The same for "a, b, c": keeps what comes first, of that as much as fits. */
void text_shorten_list(char *visible, size_t columns);

/*
 * Prints a text in `most` columns at most, by text_shorten(); 0: any. Returns its columns, or
 * -ENOMEM.
 */
int text_print_in(const char *raw, size_t most, FILE *out);

/* Returns valid UTF-8 for JSON, with U+FFFD for invalid bytes; to be free()d, or NULL. */
char *text_utf8(const char *raw);

/*
 * The last component of an image's path; all of names like [vdso]; "[unknown]" for ""; the last two
 * of a Python package's __init__.py.
 */
const char *text_basename(const char *path);

/* Returns a line with blanks for tabs and none at its end; to be free()d, or NULL. */
char *text_expand_tabs(const char *line);

#define TEXT_PERCENT_SIZE 24

/*
 * Both print two decimals, with a point in every locale: `part` in percent of `whole` (0 if that
 * is 0), or a value. Either may be negative.
 */
void text_percent(char text[TEXT_PERCENT_SIZE], double part, double whole);
void text_decimal(char text[TEXT_PERCENT_SIZE], double value);

/* The same with so many decimals, 1 or more; is_signed: with a "+" if it is above 0. Returns
 * `text`. */
const char *text_number(char text[TEXT_PERCENT_SIZE], double value, int decimals, bool is_signed);

/* Writes 0xNUMBER. Returns `text`. */
const char *text_hex(char text[TEXT_PERCENT_SIZE], uint64_t number);

#endif
