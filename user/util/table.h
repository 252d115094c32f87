/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_TABLE_H
#define PROFIL_UTIL_TABLE_H

#include <stdlib.h>

#include "util/index.h"

/*
 * An array whose elements are found by their keys. The key of an element is its first bytes, with
 * no padding between them; or its first member, a text. Zero-
 * initialised: empty. Not thread-safe.
 */
#define TABLE(type)                 \
	struct {                    \
		type *all;          \
		size_t count, room; \
		struct index index; \
	}

/*
 * Sets *id to the number of the element with the key of `entry`, a pointer to an element, which is
 * appended if there is none; the key has key_size bytes. Returns 0 or -ENOMEM.
 */
#define table_add(table, entry, key_size, id)                                              \
	table_add_element(&(table)->all, &(table)->count, &(table)->room, &(table)->index, \
			  sizeof(*(table)->all), (entry), (key_size), (id))

/* The number of the element with this key, or INDEX_NONE. */
#define table_find(table, key, key_size) \
	table_find_element((table)->all, &(table)->index, sizeof(*(table)->all), (key), (key_size))

/* For key_size: the key is a text, which is compared as such, and stays the caller's. */
#define TABLE_TEXT 0

#define table_free(table)                    \
	do {                                 \
		free((table)->all);          \
		index_free(&(table)->index); \
	} while (0)

/* Called by the macros. array: points to the pointer to the elements. */
int table_add_element(void *array, size_t *count, size_t *room, struct index *index, size_t size,
		      const void *entry, size_t key_size, uint32_t *id);
uint32_t table_find_element(const void *elements, const struct index *index, size_t size,
			    const void *key, size_t key_size);

#endif
