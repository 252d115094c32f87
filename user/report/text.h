/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TEXT_H
#define PROFIL_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Text from files and processes made fit to print. Its visible form is valid UTF-8 in which every
 * byte of a control character (C0, C1, DEL), of a character that is invisible or turns the
 * writing direction, and of anything that is no UTF-8 stands as \xNN. Its columns are those that
 * it takes in a terminal: utf8_columns().
 */

/* What a terminal takes for the looks of a text; only where colours are wanted. */
#define TEXT_BOLD  "\033[1m"
#define TEXT_FAINT "\033[2m"
#define TEXT_RED   "\033[31m"
#define TEXT_PLAIN "\033[0m"

/* Prints the visible form. */
void text_print(const char *raw, FILE *out);

/*
 * Prints the visible form in lines of `width` columns, broken at blanks; 0: in one line. It begins
 * at `column`, each other line at `indent`; a word that is too long for a line is left whole.
 */
void text_wrap(const char *raw, size_t column, size_t indent, size_t width, FILE *out);

/* The visible form, the caller's to free(), or NULL when memory runs out. */
char *text_visible(const char *raw);

/* How many columns the visible form takes. */
size_t text_columns(const char *raw);

/*
 * Shortens a visible form to `columns` (at least 4) or less, in place: template arguments and
 * parameters become "...", no more of them than it takes; then the middle, for the beginning of a
 * name tells where it belongs and the end tells it from its neighbours.
 */
void text_shorten(char *visible, size_t columns);

/* The same for a file's path: its folders give way first, from the root on. */
void text_shorten_path(char *visible, size_t columns);

/* The same for a line of a text, of which the beginning stays. */
void text_shorten_line(char *visible, size_t columns);

/* Valid UTF-8 for JSON, wrong bytes as U+FFFD; the caller's to free(), or NULL. */
char *text_utf8(const char *raw);

/* The last component of an image's path; names like [vdso] are whole, no path is [unknown]. */
const char *text_basename(const char *path);

/* A copy of a line with blanks in place of tabs, and none at its end; to be free()d, or NULL. */
char *text_expand_tabs(const char *line);

#define TEXT_PERCENT_SIZE 24

/* What `part` is of `whole` in percent, two decimals, whatever the locale; of nothing it is 0. */
void text_percent(char text[TEXT_PERCENT_SIZE], uint64_t part, uint64_t whole);

#endif
