/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_ARRAY_H
#define PROFIL_UTIL_ARRAY_H

#include <errno.h>
#include <stddef.h>

#include "util/order.h"

/*
 * Makes room for `need` elements of `size` bytes in *array, which has room for *room elements.
 * Grows by half, so that appending one by one takes linear time. New memory is zeroed.
 * Returns 0, or -ENOMEM and leaves *array as it was. The caller owns *array and free()s it.
 */
int array_reserve(void *array, size_t *room, size_t need, size_t size);

/*
 * Appends a value to an array of `count` elements, the variable of which it increases; with room as
 * above. Returns 0 or -ENOMEM.
 */
#define array_add(array, count, room, ...)                               \
	(array_reserve(&(array), &(room), (count) + 1, sizeof(*(array))) \
		 ? -ENOMEM                                               \
		 : ((array)[(count)++] = (__VA_ARGS__), 0))

/* Frees an array, which may be NULL, and the `count` texts in it. */
void array_free_texts(char **array, size_t count);

/*
 * Gives back most of what is reserved beyond `count` elements, if that is much: a moment needed it.
 * The first `count` elements stay, at another address.
 */
void array_trim(void *array, size_t *room, size_t count, size_t size);

/*
 * As reallocarray(NULL, count, size), for an array that will be filled to its end: where that is
 * large, the kernel is asked for huge pages, as it takes long to make many small ones.
 */
void *array_to_fill(size_t count, size_t size);

#endif
