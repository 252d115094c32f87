/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_DEVICE_REGIONS_H
#define PROFIL_LIB_DEVICE_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/device.h"
#include "lib/region.h"

/* A plan as /dev/profil takes it. */
struct device_regions {
	struct profil_device_region *regions;
	uint32_t count;
	bool wide;
};

/* The bytes of memory that it takes beside the buffers. */
size_t profil__device_memory_size(const struct plan *plan);

/*
 * Makes it. Cells of regions without a buffer are in `memory`, of 32 bits each and numbered as the
 * plan's. Besides, there is a region that has `memory` for its buffer and counts nothing: what is
 * on goes off when that memory is unmapped. made->regions is the caller's, to free(). Returns 0,
 * -ENOMEM, or -EBUSY for a scale that such cells cannot have.
 */
int profil__device_regions_make(struct device_regions *made, const struct plan *plan, void *memory);

#endif
