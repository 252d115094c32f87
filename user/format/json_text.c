// SPDX-License-Identifier: GPL-2.0-only
#include "format/json_text.h"

#include <inttypes.h>

#include "util/utf8.h"

void json_text_put(const char *text, FILE *out)
{
	putc('"', out);
	for (size_t size; *text; text += size) {
		uint32_t code;

		size = utf8_decode(text, &code);
		if (!size) {
			fputs("\\ufffd", out);
			size = 1;
		} else if (code > 0xffff && utf8_is_hidden(code)) {
			code -= 0x10000;
			fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + (code >> 10),
				0xdc00 + (code & 0x3ff));
		} else if (code < 0x20 || code == '"' || code == '\\' || utf8_is_hidden(code)) {
			fprintf(out, "\\u%04" PRIx32, code);
		} else {
			fwrite(text, 1, size, out);
		}
	}
	putc('"', out);
}
