// SPDX-License-Identifier: GPL-2.0-only
#include "format/message.h"

#include <string.h>
#include <zlib.h>

#include "util/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

static void put_big_endian(uint8_t *to, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = value >> 8 * (size - 1 - i);
}

void message_profile_id(const struct profile *p, size_t number, uint8_t id[static MESSAGE_ID_SIZE])
{
	put_big_endian(id, p->time_ns, 8);
	put_big_endian(id + 8, crc32(0, (const uint8_t *)p->host, strlen(p->host)), 4);
	put_big_endian(id + 12, number + 1, 4);
}

bool message_is_utf8(const char *text)
{
	uint32_t code;

	while (*text) {
		size_t size = utf8_decode(text, &code);

		if (!size)
			return false;
		text += size;
	}
	return true;
}

char *message_text(const char *text)
{
	char *copy = malloc(strlen(text) * strlen(REPLACEMENT) + 1), *to = copy;
	uint32_t code;

	if (!copy)
		return NULL;
	while (*text) {
		size_t size = utf8_decode(text, &code);

		to = mempcpy(to, size ? text : REPLACEMENT, size ?: strlen(REPLACEMENT));
		text += size ?: 1;
	}
	*to = '\0';
	return copy;
}
