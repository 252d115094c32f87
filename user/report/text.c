// SPDX-License-Identifier: GPL-2.0-only
#include "report/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "util/utf8.h"

#define TAB 8
/*
 * Bound: files: nested brackets of a name that is shortened; then: deeper ones are replaced at
 * once; seen: not seen.
 */
#define LEVELS_MAX 8 /* brackets nested deeper are replaced at once */

/* Bound: format. */
#define CHARACTER_MAX 4			  /* bytes of one character in UTF-8 */
#define VISIBLE_MAX   (CHARACTER_MAX * 4) /* each byte as \xNN */

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/*
 * Stores the visible form of the next character in `visible`, VISIBLE_MAX bytes at most, and its
 * width in *columns, and moves *raw on. Returns its size in bytes.
 */
static size_t next_visible(const char **raw, char *visible, size_t *columns)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t code;
	size_t size = utf8_decode(*raw, &code);
	const char *s = *raw;
	char *end = visible;

	if (size && !utf8_is_hidden(code)) {
		memcpy(visible, s, size);
		*raw += size;
		*columns = utf8_columns(code);
		return size;
	}
	if (!size)
		size = 1;
	for (size_t i = 0; i < size; i++) {
		*end++ = '\\';
		*end++ = 'x';
		*end++ = digits[(unsigned char)s[i] >> 4];
		*end++ = digits[s[i] & 0xf];
	}
	*raw += size;
	*columns = size * 4;
	return size * 4;
}

/* Buffered, because a dump prints millions of names. */
void text_print(const char *raw, FILE *out)
{
	char buffer[256];
	size_t columns;

	while (*raw) {
		size_t size = 0;

		while (*raw && size + VISIBLE_MAX <= sizeof(buffer))
			size += next_visible(&raw, buffer + size, &columns);
		fwrite(buffer, 1, size, out);
	}
}

void text_vprintf(FILE *out, const char *format, va_list arguments)
{
	char one[16]; /* conversion */

	for (size_t size; *format; format += size) {
		size = strcspn(format, "%");
		if (size) {
			fwrite(format, 1, size, out);
			continue;
		}
		size = strcspn(format + 1, "%scdiuxf") + 2;
		if (format[size - 1] == 's') {
			text_print(va_arg(arguments, const char *), out);
			continue;
		}
		snprintf(one, sizeof(one), "%.*s", (int)size, format);
		if (format[size - 1] == '%')
			putc('%', out);
		else if (format[size - 1] == 'f')
			fprintf(out, one, va_arg(arguments, double));
		else if (strstr(one, "ll"))
			fprintf(out, one, va_arg(arguments, long long));
		else if (strpbrk(one, "lz"))
			fprintf(out, one, va_arg(arguments, long));
		else
			fprintf(out, one, va_arg(arguments, int));
	}
}

void text_printf(FILE *out, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text_vprintf(out, format, arguments);
	va_end(arguments);
}

void text_wrap(const char *raw, size_t column, size_t indent, size_t width, FILE *out)
{
	char *text = text_visible(raw), *rest = text, *word;
	bool first = true;

	while (rest && (word = strsep(&rest, " "))) {
		size_t columns = text_columns(word);

		if (width && column + !first + columns > width && (!first || column > indent)) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', out);
			column++;
		}
		fputs(word, out);
		column += columns;
		first = false;
	}
	free(text);
}

char *text_visible(const char *raw)
{
	char *text = calloc(strlen(raw) + 1, VISIBLE_MAX / CHARACTER_MAX);
	size_t columns;

	for (char *end = text; text && *raw;)
		end += next_visible(&raw, end, &columns);
	return text;
}

size_t text_columns(const char *raw)
{
	char visible[VISIBLE_MAX];
	size_t columns, sum = 0;

	while (*raw) {
		next_visible(&raw, visible, &columns);
		sum += columns;
	}
	return sum;
}

char *text_utf8(const char *raw)
{
	char *text = calloc(strlen(raw) + 1, strlen(replacement));
	uint32_t code;

	for (char *end = text; text && *raw;) {
		size_t size = utf8_decode(raw, &code);
		size_t put = size ? size : strlen(replacement);

		memcpy(end, size ? raw : replacement, put);
		end += put;
		raw += size ? size : 1;
	}
	return text;
}

const char *text_basename(const char *path)
{
	const char *name = path[0] ? profile_basename(path) : "[unknown]";

	/* Each package of Python has files of these names. */
	if (strcmp(name, "__init__.py") != 0 && strcmp(name, "__main__.py") != 0)
		return name;
	for (name -= name > path; name > path && name[-1] != '/'; name--)
		;
	return name;
}

char *text_expand_tabs(const char *line)
{
	char *copy = calloc(strlen(line) + 1, TAB), *end = copy, visible[VISIBLE_MAX];
	size_t column = 0, columns;

	while (copy && *line) {
		const char *start = line;

		next_visible(&line, visible, &columns);
		if (*start == '\t') {
			columns = TAB - column % TAB;
			memset(end, ' ', columns);
			end += columns;
		} else {
			end = mempcpy(end, start, line - start);
		}
		column += columns;
	}
	while (end > copy && (end[-1] == ' ' || end[-1] == '\r'))
		*--end = '\0';
	return copy;
}

/* Printed as integers, because the locale may make "%.2f" write a comma. unit: 10^decimals. */
static void print_scaled(char text[TEXT_PERCENT_SIZE], double scaled, uint64_t unit, int decimals,
			 bool is_signed)
{
	double size = scaled < 0 ? -scaled : scaled;
	uint64_t n = size < 1e18 ? size + 0.5 : 1e18; /* of an inconsistent file */
	const char *sign = scaled < 0 ? "-" : is_signed ? "+" : "";

	snprintf(text, TEXT_PERCENT_SIZE, "%s%" PRIu64 ".%0*" PRIu64, n ? sign : "", n / unit,
		 decimals, n % unit);
}

void text_percent(char text[TEXT_PERCENT_SIZE], double part, double whole)
{
	print_scaled(text, whole > 0 ? part * 10000 / whole : 0, 100, 2, false);
}

void text_decimal(char text[TEXT_PERCENT_SIZE], double value)
{
	print_scaled(text, value * 100, 100, 2, false);
}

const char *text_number(char text[TEXT_PERCENT_SIZE], double value, int decimals, bool is_signed)
{
	uint64_t unit = 1;

	for (int i = 0; i < decimals; i++)
		unit *= 10;
	print_scaled(text, value * (double)unit, unit, decimals, is_signed);
	return text;
}

const char *text_hex(char text[TEXT_PERCENT_SIZE], uint64_t number)
{
	snprintf(text, TEXT_PERCENT_SIZE, "0x%" PRIx64, number);
	return text;
}

/*
 * Names of C++ and Rust carry template arguments and parameters that are longer than the rest and
 * the same for many functions. So the contents of brackets are replaced first, from the innermost.
 */

static const char dots[] = "...";

/* The columns of the characters of valid UTF-8 that begin in [text, end). */
static size_t count_columns(const char *text, const char *end)
{
	size_t columns = 0;
	uint32_t code;

	for (; text < end; text++)
		if (utf8_decode(text, &code))
			columns += utf8_columns(code);
	return columns;
}

/*
 * Returns the size of the next token of a name: a bracket, or text that is copied as it is, which
 * includes "operator<<" and "->". *turn: 1 for an opening bracket, -1 for a closing one, else 0.
 */
static size_t next_token(const char *name, const char *s, int *turn)
{
	static const char operator_word[] = "operator";
	size_t size = strlen(operator_word);
	bool in_word = s > name && (isalnum((unsigned char)s[-1]) || s[-1] == '_');

	*turn = 0;
	if (!in_word && strncmp(s, operator_word, size) == 0)
		return size + (strncmp(s + size, "()", 2) ? strspn(s + size, "<>=-") : 2);
	if (strncmp(s, "->", 2) == 0)
		return 2;
	if (*s == '<' || *s == '(' || *s == '{')
		*turn = 1;
	else if (*s == '>' || *s == ')' || *s == '}')
		*turn = -1;
	return 1;
}

/* The depth to which brackets are nested; 0: none, or unbalanced. */
static size_t bracket_depth(const char *name)
{
	size_t depth = 0, deepest = 0;
	int turn;

	for (const char *s = name; *s;) {
		s += next_token(name, s, &turn);
		if (turn < 0 && depth-- == 0)
			return 0;
		depth += turn > 0;
		deepest = MAX(depth, deepest);
	}
	return depth ? 0 : deepest;
}

/* The closing bracket that matches the opening one before s. */
static const char *find_end(const char *name, const char *s)
{
	size_t depth = 1;
	int turn;

	for (;;) {
		size_t size = next_token(name, s, &turn);

		depth += turn;
		if (!depth)
			return s;
		s += size;
	}
}

static void append_bytes(char **to, const char *from, size_t size)
{
	if (*to) {
		memmove(*to, from, size);
		*to += size;
	}
}

/*
 * Copies the name to `to`, which can be the name itself, with the contents of brackets at this
 * level replaced by `mark` where that is shorter. to: NULL to copy nothing. Returns the columns of
 * the copy.
 */
static size_t fold_brackets(const char *name, size_t level, const char *mark, char *to)
{
	size_t depth = 0, columns = 0, mark_size = strlen(mark);
	int turn;

	for (const char *s = name, *end; *s; s = end) {
		end = s + next_token(name, s, &turn);
		columns += count_columns(s, end);
		append_bytes(&to, s, end - s);
		depth += turn;
		if (turn <= 0 || depth != level)
			continue;
		s = end;
		end = find_end(name, s);
		depth--;
		if (count_columns(s, end) > mark_size) {
			columns += mark_size + 1;
			append_bytes(&to, mark, mark_size);
		} else {
			columns += count_columns(s, end) + 1;
			append_bytes(&to, s, end - s);
		}
		append_bytes(&to, end++, 1);
	}
	if (to)
		*to = '\0';
	return columns;
}

/*
 * Replaces the middle of a text by dots and keeps `head` and `tail` columns of its ends. length:
 * its columns, more than head + 3 + tail. Combining characters stay with their base character.
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
	/* More than three columns are removed, so the dots cannot overwrite the rest. */
	memcpy(cut, dots, strlen(dots));
	memmove(cut + strlen(dots), rest, strlen(rest) + 1);
}

void text_shorten(char *visible, size_t columns)
{
	size_t length = count_columns(visible, visible + strlen(visible));
	size_t tail = (columns - strlen(dots)) / 2;
	const char *mark = dots;
	size_t level;

	if (length <= columns)
		return;
	/* The contents of brackets first, from the innermost, as far as needed. */
	level = bracket_depth(visible);
	level = MIN(level, LEVELS_MAX);
	while (level > 1 && fold_brackets(visible, level, dots, NULL) > columns)
		level--;
	if (level && fold_brackets(visible, level, dots, NULL) > columns)
		mark = "";
	if (level)
		length = fold_brackets(visible, level, mark, visible);
	if (length > columns)
		cut_between(visible, length, columns - strlen(dots) - tail, tail);
}

int text_print_in(const char *raw, size_t most, FILE *out)
{
	char *visible = text_visible(raw);
	int columns;

	if (!visible)
		return -ENOMEM;
	if (most)
		text_shorten(visible, MAX(most, 4));
	columns = (int)text_columns(visible);
	fputs(visible, out);
	free(visible);
	return columns;
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

void text_shorten_list(char *visible, size_t columns)
{
	char *comma;

	while (text_columns(visible) > columns && (comma = strrchr(visible, ',')))
		*comma = '\0';
	text_shorten_line(visible, columns);
}
