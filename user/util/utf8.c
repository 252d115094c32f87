// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/utf8.h"

#include <locale.h>
#include <wchar.h>

#define FIRST_COMBINING 0x300 /* characters before it take one column each */

/* Characters that are invisible, or act on the terminal or on their neighbours */
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

bool utf8_is_hidden(uint32_t code)
{
	if (code >= ' ' && code <= '~')
		return false;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return true;
	return false;
}

size_t utf8_columns(uint32_t code)
{
	static locale_t utf8;
	locale_t before;
	int columns;

	if (code < FIRST_COMBINING)
		return 1;
	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL) ?: LC_GLOBAL_LOCALE;
	before = uselocale(utf8);
	columns = wcwidth(code);
	uselocale(before);
	return columns < 0 ? 1 : columns;
}

size_t utf8_decode(const char *s, uint32_t *code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = s[0];
	size_t size = lead < 0x80   ? 1
		      : lead < 0xc0 ? 0
		      : lead < 0xe0 ? 2
		      : lead < 0xf0 ? 3
		      : lead < 0xf8 ? 4
				    : 0;

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

bool utf8_is_hidden_at(const char *text, size_t i)
{
	size_t start = i;
	uint32_t code;

	/* Goes back to the lead byte of the character that text[i] belongs to. */
	while (start > 0 && i - start < 3 && (text[start] & 0xc0) == 0x80)
		start--;
	return utf8_decode(text + start, &code) <= i - start || utf8_is_hidden(code);
}
