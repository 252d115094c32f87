// SPDX-License-Identifier: GPL-2.0-only
#include "report/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define CHARACTER_MAX 4			  /* bytes of one character in UTF-8 */
#define VISIBLE_MAX   (CHARACTER_MAX * 4) /* all of them as \xNN */

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Characters that act on the terminal or on their neighbours, or that nobody can see. */
static const struct {
	uint32_t first;
	uint32_t last;
} hidden[] = {
	{ 0x0, 0x1f },	      /* C0 controls */
	{ 0x7f, 0x9f },	      /* DEL, C1 controls */
	{ 0xad, 0xad },	      /* soft hyphen */
	{ 0x61c, 0x61c },     /* Arabic letter mark */
	{ 0x180e, 0x180e },   /* Mongolian vowel separator */
	{ 0x200b, 0x200f },   /* zero widths, left-to-right and right-to-left marks */
	{ 0x2028, 0x202e },   /* line and paragraph separators, embeddings and overrides */
	{ 0x2060, 0x206f },   /* word joiner, invisible operators, isolates */
	{ 0xfeff, 0xfeff },   /* byte order mark */
	{ 0xfff9, 0xfffb },   /* interlinear annotations */
	{ 0xe0000, 0xe0fff }, /* tags */
};

static bool is_hidden(uint32_t code)
{
	if (code >= ' ' && code <= '~')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return true;
	return false;
}

static size_t size_by_lead(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc0 && lead < 0xe0)
		return 2;
	if (lead >= 0xe0 && lead < 0xf0)
		return 3;
	return lead >= 0xf0 && lead < 0xf8 ? 4 : 0;
}

/* The size of the character at s in bytes, or 0 when there is none: RFC 3629. */
static size_t utf8_decode(const char *s, uint32_t *code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = s[0];
	size_t size = size_by_lead(lead);

	if (size <= 1) {
		*code = lead;
		return size;
	}
	*code = lead & (0x7f >> size);
	for (size_t i = 1; i < size; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < smallest[size] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
		return 0;
	return size;
}

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

	if (size && !is_hidden(code)) {
		memcpy(visible, s, size);
		*raw += size;
		*columns = 1;
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

static bool begins_character(char c)
{
	return (c & 0xc0) != 0x80;
}

/* Where the character with this number begins, in valid UTF-8; the end when there is none. */
static char *character_at(char *text, size_t number)
{
	for (; *text; text++)
		if (begins_character(*text) && number-- == 0)
			break;
	return text;
}

void text_shorten(char *visible, size_t columns)
{
	static const char dots[] = "...";
	size_t length = 0, tail = (columns - strlen(dots)) / 2;
	size_t head = columns - strlen(dots) - tail;
	char *cut, *rest;

	for (const char *s = visible; *s; s++)
		length += begins_character(*s);
	if (length <= columns)
		return;
	cut = character_at(visible, head);
	rest = character_at(visible, length - tail);
	/* More than three characters go, so that the dots cannot run over the rest. */
	memcpy(cut, dots, strlen(dots));
	memmove(cut + strlen(dots), rest, strlen(rest) + 1);
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

void text_percent(char text[TEXT_PERCENT_SIZE], uint64_t part, uint64_t whole)
{
	double hundredths = whole ? (double)part * 10000 / (double)whole + 0.5 : 0;
	uint64_t n = hundredths;

	snprintf(text, TEXT_PERCENT_SIZE, "%" PRIu64 ".%02u", n / 100, (unsigned int)(n % 100));
}
