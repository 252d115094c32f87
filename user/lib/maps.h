/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_MAPS_H
#define PROFIL_LIB_MAPS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "util/proc_maps.h"

/* The mappings of a process, in the order of addresses. Zero-initialised: empty. */
struct maps {
	struct proc_map *all; /* their paths are in `text`, without " (deleted)" */
	uint32_t *images;     /* for each: the number of the first mapping of the same file */
	size_t count, room, image_room;
	char *text;
};

/*
 * Parses the text of /proc/PID/maps. Skips lines that are no mapping. Returns 0 or -ENOMEM; in any
 * case the caller frees *maps by profil__maps_free().
 */
int profil__maps_parse(struct maps *maps, const struct bytes *text);
void profil__maps_free(struct maps *maps);

/* Returns the mapping that has the address; NULL: none. */
const struct proc_map *profil__maps_find(const struct maps *maps, uint64_t address);

#endif
