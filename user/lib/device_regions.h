/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_DEVICE_REGIONS_H
#define PROFIL_LIB_DEVICE_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/device.h"
#include "lib/region.h"

/* The regions of a plan as /dev/profil takes them. */
struct device_regions {
	struct profil_device_region *regions;
	uint32_t count;
	bool wide;
};

/* Returns the size of the memory that profil__device_regions_make() needs, in bytes. */
size_t profil__device_memory_size(const struct plan *plan);

/*
 * Makes the regions of a plan. Regions without a buffer get their cells in `memory`: 32 bits each,
 * in the plan's numbering. One more region has `memory` as its buffer and counts nothing: the
 * module stops when that memory is unmapped. The caller releases made->regions by
 * profil__memory_free(). Returns 0, -ENOMEM, or -EBUSY for a scale that 32-bit cells cannot have.
 */
int profil__device_regions_make(struct device_regions *made, const struct plan *plan, void *memory);

#endif
