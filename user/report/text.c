// SPDX-License-Identifier: GPL-2.0-only
#include "report/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "util/utf8.h"

#define TAB 8

#define CHARACTER_MAX 4			  /* bytes of one character in UTF-8 */
#define VISIBLE_MAX   (CHARACTER_MAX * 4) /* all of them as \xNN */

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/*
 * Puts the visible form of the next character into `visible`, VISIBLE_MAX bytes at most, and moves
 * on. Returns its size in bytes; *columns receives how wide it is.
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

/* By the buffer, because a dump prints millions of names. */
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
	return path[0] ? profile_basename(path) : "[unknown]";
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

void text_percent(char text[TEXT_PERCENT_SIZE], uint64_t part, uint64_t whole)
{
	double hundredths = whole ? (double)part * 10000 / (double)whole + 0.5 : 0;
	uint64_t n = hundredths < 1e18 ? hundredths : 1e18; /* of a file that does not add up */

	snprintf(text, TEXT_PERCENT_SIZE, "%" PRIu64 ".%02u", n / 100, (unsigned int)(n % 100));
}
