// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "report/text.h"
#include "util/utf8.h"

/*
 * Names of C++ and Rust carry template arguments and parameters that are longer than all else and
 * the same for many functions. What stands in brackets goes first, from the inside out.
 */
#define LEVELS_MAX 8 /* brackets deeper than that go at once */

static const char dots[] = "...";

/* Of the characters of valid UTF-8 that begin there. */
static size_t count_columns(const char *text, const char *end)
{
	size_t columns = 0;
	uint32_t code;

	for (; text < end; text++)
		if (utf8_decode(text, &code))
			columns += utf8_columns(code);
	return columns;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * The size of the next piece of a name: a bracket, or something else that is copied as it is: the
 * brackets of "operator<<" and "->" are none. turn: 1 when it opens, -1 when it closes, else 0.
 */
static size_t next_piece(const char *name, const char *s, int *turn)
{
	static const char operator_word[] = "operator";
	size_t size = strlen(operator_word);

	*turn = 0;
	if (strncmp(s, operator_word, size) == 0 && (s == name || !is_word(s[-1])))
		return size + (strncmp(s + size, "()", 2) ? strspn(s + size, "<>=-") : 2);
	if (strncmp(s, "->", 2) == 0)
		return 2;
	if (*s == '<' || *s == '(' || *s == '{')
		*turn = 1;
	else if (*s == '>' || *s == ')' || *s == '}')
		*turn = -1;
	return 1;
}

/* How deep brackets are in each other; 0: there are none, or they do not match. */
static size_t bracket_depth(const char *name)
{
	size_t depth = 0, deepest = 0;
	int turn;

	for (const char *s = name; *s;) {
		s += next_piece(name, s, &turn);
		if (turn < 0 && depth-- == 0)
			return 0;
		depth += turn > 0;
		deepest = depth > deepest ? depth : deepest;
	}
	return depth ? 0 : deepest;
}

/* The bracket that closes what has just been opened. */
static const char *find_end(const char *name, const char *s)
{
	size_t depth = 1;
	int turn;

	for (;;) {
		size_t size = next_piece(name, s, &turn);

		depth += turn;
		if (!depth)
			return s;
		s += size;
	}
}

static void append(char **to, const char *from, size_t size)
{
	if (*to) {
		memmove(*to, from, size);
		*to += size;
	}
}

/*
 * The name with `mark` in place of what stands in brackets so deep and is longer, to `to`, which
 * may be the name itself; NULL: nowhere. Returns its columns.
 */
static size_t fold(const char *name, size_t level, const char *mark, char *to)
{
	size_t depth = 0, columns = 0, mark_size = strlen(mark);
	int turn;

	for (const char *s = name, *end; *s; s = end) {
		end = s + next_piece(name, s, &turn);
		columns += count_columns(s, end);
		append(&to, s, end - s);
		depth += turn;
		if (turn <= 0 || depth != level)
			continue;
		s = end;
		end = find_end(name, s);
		depth--;
		if (count_columns(s, end) > mark_size) {
			columns += mark_size + 1;
			append(&to, mark, mark_size);
		} else {
			columns += count_columns(s, end) + 1;
			append(&to, s, end - s);
		}
		append(&to, end++, 1);
	}
	if (to)
		*to = '\0';
	return columns;
}

/* Returns the columns of what is left. */
static size_t fold_brackets(char *name, size_t columns)
{
	size_t depth = bracket_depth(name), level = depth < LEVELS_MAX ? depth : LEVELS_MAX;

	if (!level)
		return count_columns(name, name + strlen(name));
	while (level > 1 && fold(name, level, dots, NULL) > columns)
		level--;
	return fold(name, level, fold(name, level, dots, NULL) > columns ? "" : dots, name);
}

/*
 * Leaves so many columns at both ends of a text of `length`, which has more than these and the
 * dots. What combines with a character stays with it or goes with it.
 */
static void cut_between(char *visible, size_t length, size_t head, size_t tail)
{
	size_t column = 0, width, size;
	char *cut = NULL, *rest;
	uint32_t code;

	for (rest = visible; *rest; rest += size, column += width) {
		size = utf8_decode(rest, &code);
		width = utf8_columns(code);
		if (!cut && column + width > head)
			cut = rest;
		if (width && column >= length - tail)
			break;
	}
	/* More than three columns go, so that the dots cannot run over the rest. */
	memcpy(cut, dots, strlen(dots));
	memmove(cut + strlen(dots), rest, strlen(rest) + 1);
}

void text_shorten(char *visible, size_t columns)
{
	size_t length = count_columns(visible, visible + strlen(visible));
	size_t tail = (columns - strlen(dots)) / 2;

	if (length > columns)
		length = fold_brackets(visible, columns);
	if (length > columns)
		cut_between(visible, length, columns - strlen(dots) - tail, tail);
}

void text_shorten_path(char *visible, size_t columns)
{
	const char *end = visible + strlen(visible), *slash = strrchr(visible, '/');
	size_t length = count_columns(visible, end);

	if (length <= columns)
		return;
	if (slash && count_columns(slash, end) + strlen(dots) <= columns) {
		cut_between(visible, length, 0, columns - strlen(dots));
		return;
	}
	if (slash)
		memmove(visible, slash + 1, end - slash);
	text_shorten(visible, columns);
}

void text_shorten_line(char *visible, size_t columns)
{
	size_t length = count_columns(visible, visible + strlen(visible));

	if (length > columns)
		cut_between(visible, length, columns - strlen(dots), 0);
}
