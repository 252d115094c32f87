// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int array_reserve(void *array, size_t *room, size_t need, size_t size)
{
	size_t wanted = *room + *room / 2 + 2; /* there are many small ones */
	char *memory;

	if (need <= *room)
		return 0;
	wanted = MAX(wanted, need);
	/* `array` points to some T *. C has no type for "any T **", so the pointer is copied. */
	memcpy(&memory, array, sizeof(memory));
	if (!memory) { /* pages of a large one that stay unused take no time */
		memory = calloc(wanted, size);
	} else {
		memory = reallocarray(memory, wanted, size);
		if (memory)
			memset(memory + *room * size, 0, (wanted - *room) * size);
	}
	if (!memory)
		return -ENOMEM;
	memcpy(array, &memory, sizeof(memory));
	*room = wanted;
	return 0;
}

void array_free_texts(char **array, size_t count)
{
	for (size_t i = 0; array && i < count; i++)
		free(array[i]);
	free(array);
}

/* Bound: size. */
#define TRIM_BYTES ((size_t)64 * 1024)

void array_trim(void *array, size_t *room, size_t count, size_t size)
{
	size_t wanted = count + count / 2 + 2;
	char *memory;

	if (wanted >= *room || (*room - wanted) * size < TRIM_BYTES)
		return;
	memcpy(&memory, array, sizeof(memory));
	memory = realloc(memory, wanted * size);
	if (!memory)
		return;
	memcpy(array, &memory, sizeof(memory));
	*room = wanted;
}

/* Bound: size. */
#define HUGE_PAGES_BYTES ((size_t)8 << 20)

void *array_to_fill(size_t count, size_t size)
{
	char *memory = reallocarray(NULL, count, size);
	uintptr_t page = sysconf(_SC_PAGESIZE);

	if (memory && count * size >= HUGE_PAGES_BYTES) /* it is mapped */
		madvise(memory + (-(uintptr_t)memory & (page - 1)), count * size - page,
			MADV_HUGEPAGE);
	return memory;
}
