// SPDX-License-Identifier: GPL-2.0-only
#include "profile/build_id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "util/index.h"
#include "util/proc_maps.h"
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

bool build_id_is_copy(const struct profile_image *a, const struct profile_image *b)
{
	const char *name = profile_basename(a->path), *other = profile_basename(b->path);
	size_t size = proc_path_size(name);

	return a->build_id_size && a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
	       a->provider == b->provider && size == proc_path_size(other) &&
	       memcmp(name, other, size) == 0;
}

uint64_t build_id_hash(const struct profile_image *image)
{
	const char *name = profile_basename(image->path);
	uint64_t hash = hash_bytes(image->build_id, image->build_id_size, image->provider);

	return hash_bytes(name, proc_path_size(name), hash);
}

EQUAL(is_copy, struct profile_image, struct profile_image, build_id_is_copy(a, b))

uint32_t *build_id_firsts(const struct profile *p)
{
	uint32_t *firsts = calloc(p->image_count + 1, sizeof(*firsts));
	struct index index = { 0 };
	int err = firsts ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < p->image_count; i++) {
		const struct profile_image *image = &p->images[i];
		uint64_t hash = build_id_hash(image);

		firsts[i] = i;
		if (!image->build_id_size)
			continue;
		firsts[i] = index_find(&index, hash, is_copy, p->images, image);
		if (firsts[i] != INDEX_NONE)
			continue;
		firsts[i] = i;
		err = index_add(&index, hash, i);
	}
	index_free(&index);
	if (!err)
		return firsts;
	free(firsts);
	return NULL;
}

uint32_t *build_id_circles(const struct profile *p)
{
	uint32_t *next = build_id_firsts(p);

	for (uint32_t i = 0; next && i < p->image_count; i++) {
		uint32_t first = next[i];

		next[i] = first == i ? i : next[first];
		next[first] = i;
	}
	return next;
}
