// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/device_regions.h"

#include <errno.h>

#include "lib/last_error.h"
#include "lib/memory.h"

/* The highest address, which has no code. */
#define NO_CODE UINT64_MAX

static bool has_buffers(const struct plan *plan)
{
	return plan->regions[0].buffer;
}

size_t profil__device_memory_size(const struct plan *plan)
{
	return has_buffers(plan) ? 1 : plan->cell_count * sizeof(uint32_t);
}

int profil__device_regions_make(struct device_regions *made, const struct plan *plan, void *memory)
{
	bool buffers = has_buffers(plan);

	for (size_t i = 0; i < plan->region_count; i++)
		if (!buffers && plan->regions[i].scale > UINT32_MAX / 2)
			return profil__error(EBUSY,
					     "profil.ko has no sessions with a scale above %#x",
					     UINT32_MAX / 2);
	*made = (struct device_regions){ .wide = plan->wide || !buffers };
	made->regions = profil__memory_make((plan->range_count + 1) * sizeof(*made->regions));
	if (!made->regions)
		return profil__error(ENOMEM, "out of memory");
	for (size_t i = 0; i < plan->range_count; i++) {
		const struct profil_range *range = &plan->ranges[i];
		const struct region *region = profil__plan_region(plan, range->base);
		struct profil_device_region *r = &made->regions[made->count];
		size_t width = made->wide ? 4 : 2;

		if (range->first == NO_CODE)
			continue;
		made->count++;
		*r = (struct profil_device_region){
			.first = range->first,
			.last = range->last < NO_CODE ? range->last : NO_CODE - 1,
			.offset = range->offset,
			.buffer = (uintptr_t)region->buffer,
			.bufsiz = region->cell_count * width,
			.scale = region->scale,
		};
		if (!buffers) {
			r->buffer = (uintptr_t)((uint32_t *)memory + region->base);
			/* A 32-bit cell takes two of the 16-bit cells that the scale is for. */
			r->scale *= 2;
		}
	}
	made->regions[made->count++] = (struct profil_device_region){
		.first = NO_CODE,
		.last = NO_CODE,
		.offset = NO_CODE,
		.buffer = (uintptr_t)memory,
		.bufsiz = 1,
	};
	return 0;
}
