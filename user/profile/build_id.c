// SPDX-License-Identifier: GPL-2.0-only
#include "profile/build_id.h"

#include <string.h>

#include "util/scan.h"

size_t build_id_parse(const char *text, size_t size, uint8_t bytes[static PROFILE_BUILD_ID_MAX])
{
	if (size % 2 || size / 2 > PROFILE_BUILD_ID_MAX)
		return 0;
	for (size_t i = 0; i < size; i += 2) {
		int high = digit_value(text[i]), low = digit_value(text[i + 1]);

		if (high > 15 || low > 15)
			return 0;
		bytes[i / 2] = high << 4 | low;
	}
	return size / 2;
}

void build_id_format(const uint8_t *bytes, size_t size, char text[static BUILD_ID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		*text++ = digits[bytes[i] >> 4];
		*text++ = digits[bytes[i] & 15];
	}
	*text = '\0';
}

bool build_id_equal(const struct profile_image *a, const struct profile_image *b)
{
	return a->build_id_size && a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}
