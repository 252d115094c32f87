// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/table.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"

struct elements {
	const char *at;
	size_t size, key_size;
};

static const char *text_at(const void *element)
{
	const char *text;

	memcpy(&text, element, sizeof(text));
	return text;
}

static bool key_equal(const void *array, uint32_t id, const void *key)
{
	const struct elements *e = array;
	const char *element = e->at + id * e->size;

	return e->key_size ? memcmp(element, key, e->key_size) == 0
			   : strcmp(text_at(element), text_at(key)) == 0;
}

static uint64_t key_hash(const void *key, size_t key_size)
{
	return key_size ? hash_bytes(key, key_size, 0)
			: hash_bytes(text_at(key), strlen(text_at(key)), 0);
}

uint32_t table_find_element(const void *elements, const struct index *index, size_t size,
			    const void *key, size_t key_size)
{
	const struct elements e = { elements, size, key_size };

	return index_find(index, key_hash(key, key_size), key_equal, &e, key);
}

int table_add_element(void *array, size_t *count, size_t *room, struct index *index, size_t size,
		      const void *entry, size_t key_size, uint32_t *id)
{
	char *elements;

	memcpy(&elements, array, sizeof(elements));
	*id = table_find_element(elements, index, size, entry, key_size);
	if (*id != INDEX_NONE)
		return 0;
	if (array_reserve(array, room, *count + 1, size) ||
	    index_add(index, key_hash(entry, key_size), *count))
		return -ENOMEM;
	memcpy(&elements, array, sizeof(elements));
	memcpy(elements + *count * size, entry, size);
	*id = (*count)++;
	return 0;
}
