/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_MAPS_H
#define PROFIL_LIB_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"

/* A line of /proc/PID/maps. */
struct map {
	uint64_t start, limit;
	uint64_t offset; /* of `start` in the file */
	uint64_t inode;	 /* 0: no file */
	bool executable;
	uint32_t image; /* the number of the first map of the same file */
	char *path;	/* in maps->text; "" when it has none */
};

/* In the order of addresses. Zero-initialised: empty. */
struct maps {
	struct map *all;
	size_t count, room;
	char *text;
};

/*
 * Parses the text of /proc/PID/maps, proc(5). Skips lines that are no mapping. Returns 0 or
 * -ENOMEM; in any case the caller frees *maps by profil__maps_free().
 */
int profil__maps_parse(struct maps *maps, const struct bytes *text);
void profil__maps_free(struct maps *maps);

/* Returns the mapping that has the address; NULL: none. */
const struct map *profil__maps_find(const struct maps *maps, uint64_t address);

#endif
