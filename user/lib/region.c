// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/region.h"

#include <errno.h>
#include <string.h>

#include "bpf/cell.h"
#include "lib/last_error.h"
#include "lib/memory.h"
#include "util/order.h"

/* Inserts a range of the region as number i. */
static void insert_range(struct plan *plan, size_t i, const struct region *region, uint64_t first,
			 uint64_t last)
{
	struct profil_range *range = &plan->ranges[i];

	memmove(range + 1, range, (plan->range_count - i) * sizeof(*range));
	plan->range_count++;
	*range = (struct profil_range){
		.first = first,
		.last = last,
		.offset = region->offset,
		.scale = region->scale,
		.base = region->base,
		.wide = plan->wide,
	};
}

/* Adds ranges for the addresses of a region that are in no earlier region. */
static void add_region(struct plan *plan, const struct region *region)
{
	uint64_t next = region->offset, last = UINT64_MAX;
	size_t i;

	if (region->scale)
		last = cell_last_delta((uint64_t)region->cell_count << plan->wide, region->scale);
	last = last < UINT64_MAX - next ? next + last : UINT64_MAX;
	for (i = 0; i < plan->range_count; i++) {
		const struct profil_range taken = plan->ranges[i];

		if (taken.last < next)
			continue;
		if (taken.first > last)
			break;
		if (taken.first > next)
			insert_range(plan, i++, region, next, taken.first - 1);
		if (taken.last >= last)
			return;
		next = taken.last + 1;
	}
	insert_range(plan, i, region, next, last);
}

static bool buffers_overlap(const struct plan *plan)
{
	size_t width = plan->wide ? 4 : 2;

	for (size_t i = 0; i < plan->region_count; i++)
		for (size_t k = 0; k < i; k++) {
			const struct region *a = &plan->regions[i], *b = &plan->regions[k];

			if (a->buffer && b->buffer &&
			    a->buffer < b->buffer + b->cell_count * width &&
			    b->buffer < a->buffer + a->cell_count * width)
				return true;
		}
	return false;
}

/* Fills a plan whose region_count and wide are set. Returns 0 or -errno with the error set. */
static int fill_plan(struct plan *plan, const struct region *regions)
{
	/* Each region adds one range, and one more for each earlier range that it surrounds. */
	plan->regions = profil__memory_make(plan->region_count * sizeof(*plan->regions));
	plan->ranges = profil__memory_make(2 * plan->region_count * sizeof(*plan->ranges));
	if (!plan->regions || !plan->ranges)
		return profil__error(ENOMEM, "out of memory");
	memcpy(plan->regions, regions, plan->region_count * sizeof(*regions));
	for (size_t i = 0; i < plan->region_count; i++) {
		struct region *r = &plan->regions[i];
		uint64_t cells = r->bufsiz / (plan->wide ? 4 : 2);
		uint64_t last = cell_index(UINT64_MAX - r->offset, r->scale) >> plan->wide;

		/* Only cells that an address can count in. */
		if (last < cells)
			cells = last + 1;
		if (cells > PROFIL_CELLS - plan->cell_count)
			return profil__error(ENOMEM, "the regions have more than %u cells",
					     PROFIL_CELLS);
		r->base = plan->cell_count;
		r->cell_count = cells;
		plan->cell_count += cells;
	}
	plan->buffers_overlap = buffers_overlap(plan);
	for (size_t i = 0; i < plan->region_count; i++)
		if (plan->regions[i].cell_count)
			add_region(plan, &plan->regions[i]);
	return 0;
}

int profil__plan_make(struct plan *plan, const struct region *regions, size_t count, bool wide)
{
	int err;

	*plan = (struct plan){ .region_count = count, .wide = wide };
	if (!count || count > MOST_REGIONS)
		return profil__error(EINVAL, "%zu regions: must be 1 to %d", count, MOST_REGIONS);
	err = fill_plan(plan, regions);
	if (err)
		profil__plan_free(plan);
	return err;
}

void profil__plan_free(struct plan *plan)
{
	profil__memory_free(plan->regions);
	profil__memory_free(plan->ranges);
	*plan = (struct plan){ 0 };
}

const struct region *profil__plan_region(const struct plan *plan, uint32_t cell)
{
	size_t behind;

	FIND_FIRST(behind, 1, plan->region_count, plan->regions[behind].base <= cell);
	return &plan->regions[behind - 1];
}
