// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/memory.h"

#include <stdint.h>
#include <sys/mman.h>

/* In front of the caller's bytes. */
struct block {
	size_t size; /* of the mapping */
	_Alignas(16) char bytes[];
};

void *profil__memory_make(size_t size)
{
	struct block *block;

	if (size > SIZE_MAX - sizeof(*block))
		return NULL;
	size += sizeof(*block);
	block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return NULL;
	block->size = size;
	return block->bytes;
}

void profil__memory_free(void *memory)
{
	struct block *block = (struct block *)((char *)memory - offsetof(struct block, bytes));

	if (memory)
		munmap(block, block->size);
}
