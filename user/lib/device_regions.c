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

static struct profil_device_region in_buffer(const struct region *region, bool wide)
{
	return (struct profil_device_region){
		.buffer = (uintptr_t)region->buffer,
		.bufsiz = (uint64_t)region->cell_count * (wide ? 4 : 2),
		.scale = region->scale,
	};
}

/* A 32-bit cell takes two of the 16-bit cells that the scale is for: so the scale is doubled. */
static struct profil_device_region in_memory(const struct region *region, void *memory)
{
	return (struct profil_device_region){
		.buffer = (uintptr_t)((uint32_t *)memory + region->base),
		.bufsiz = (uint64_t)region->cell_count * sizeof(uint32_t),
		.scale = region->scale * 2,
	};
}

static void add(struct device_regions *made, struct profil_device_region region, uint64_t first,
		uint64_t last, uint64_t offset)
{
	region.first = first;
	region.last = last;
	region.offset = offset;
	made->regions[made->count++] = region;
}

static int check_scales(const struct plan *plan)
{
	for (size_t i = 0; i < plan->region_count; i++)
		if (!has_buffers(plan) && plan->regions[i].scale > UINT32_MAX / 2)
			return profil__error(EBUSY,
					     "profil.ko has no sessions with a scale above %#x",
					     UINT32_MAX / 2);
	return 0;
}

int profil__device_regions_make(struct device_regions *made, const struct plan *plan, void *memory)
{
	const struct profil_device_region nothing = { .buffer = (uintptr_t)memory, .bufsiz = 1 };
	int err = check_scales(plan);

	if (err)
		return err;
	*made = (struct device_regions){ .wide = plan->wide || !has_buffers(plan) };
	made->regions = profil__memory_make((plan->range_count + 1) * sizeof(*made->regions));
	if (!made->regions)
		return profil__error(ENOMEM, "out of memory");
	for (size_t i = 0; i < plan->range_count; i++) {
		const struct profil_range *range = &plan->ranges[i];
		const struct region *region = profil__plan_region(plan, range->base);
		uint64_t last = range->last < NO_CODE ? range->last : NO_CODE - 1;

		if (range->first <= last)
			add(made,
			    region->buffer ? in_buffer(region, plan->wide)
					   : in_memory(region, memory),
			    range->first, last, range->offset);
	}
	add(made, nothing, NO_CODE, NO_CODE, NO_CODE);
	return 0;
}
