// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "bpf/cell.h"
#include "kmod/region_table.h"
#include "kmod/settings.h"

/* Sorted and disjoint, so that a tick can search by bisection. Returns 0 or a negative errno. */
static int check_regions(const struct region_table *table)
{
	u64 next = 0; /* the first address that may be in the next region; 0 after the last one */

	for (u32 i = 0; i < table->count; i++) {
		const struct profil_device_region *region = &table->regions[i];

		if ((i && !next) || region->unused || region->first < next ||
		    region->first < region->offset || region->last < region->first)
			return -EINVAL;
		if (region->buffer != (unsigned long)region->buffer ||
		    region->bufsiz > ULONG_MAX - region->buffer ||
		    !access_ok((void __user *)(unsigned long)region->buffer, region->bufsiz))
			return -EFAULT;
		next = region->last + 1;
	}
	return 0;
}

struct region_table *region_table_read(const struct profil_device_set *set)
{
	struct region_table *table;
	int err;

	if (set->flags & ~(u32)PROFIL_WIDE)
		return ERR_PTR(-E2BIG);
	if (!set->hz || set->hz > settings_max_hz() || !set->region_count)
		return ERR_PTR(-EINVAL);
	if (set->region_count > settings_max_regions())
		return ERR_PTR(-E2BIG);
	if (set->regions != (unsigned long)set->regions)
		return ERR_PTR(-EFAULT);
	table = kvzalloc(struct_size(table, regions, set->region_count), GFP_KERNEL_ACCOUNT);
	if (!table)
		return ERR_PTR(-ENOMEM);
	kref_init(&table->refs);
	rate_init(&table->rate, set->hz);
	table->hz = set->hz;
	table->wide = set->flags & PROFIL_WIDE;
	table->count = set->region_count;
	if (copy_from_user(table->regions, (void __user *)(unsigned long)set->regions,
			   array_size(table->count, sizeof(*table->regions))))
		err = -EFAULT;
	else
		err = check_regions(table);
	if (!err)
		return table;
	region_table_put(table);
	return ERR_PTR(err);
}

struct region_table *region_table_get(struct region_table *table)
{
	kref_get(&table->refs);
	return table;
}

static void free_table(struct kref *refs)
{
	struct region_table *table = container_of(refs, struct region_table, refs);

	rate_remove(&table->rate);
	kvfree_rcu(table, rcu); /* vfree() is not possible with preemption disabled */
}

void region_table_put(struct region_table *table)
{
	kref_put(&table->refs, free_table);
}

/* Returns the last region that begins at or before pc, or NULL if there is none. */
static const struct profil_device_region *search(const struct region_table *table, u64 pc)
{
	const struct profil_device_region *found = NULL;
	u32 low = 0, high = table->count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (table->regions[middle].first <= pc) {
			found = &table->regions[middle];
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found;
}

unsigned long region_table_cell(const struct region_table *table, u64 pc)
{
	const struct profil_device_region *region = search(table, pc);
	unsigned int shift = table->wide ? 2 : 1; /* a cell has 1 << shift bytes */
	u64 number;

	if (!region || pc > region->last)
		return NO_CELL;
	number = cell_index(pc - region->offset, region->scale) >> table->wide;
	return number < region->bufsiz >> shift ? region->buffer + (number << shift) : NO_CELL;
}

/* Where the buffer is in the address space: on arm64 the pointer may carry a tag. */
static unsigned long buffer_start(const struct profil_device_region *region)
{
	return untagged_addr((unsigned long)region->buffer);
}

bool region_table_overlaps(const struct region_table *table, unsigned long start, unsigned long end)
{
	for (u32 i = 0; i < table->count; i++) {
		const struct profil_device_region *region = &table->regions[i];
		unsigned long buffer = buffer_start(region);

		if (start < buffer + region->bufsiz && end > buffer)
			return true;
	}
	return false;
}

void region_table_span(const struct region_table *table, unsigned long *start,
		       unsigned long *length)
{
	unsigned long end = 1;

	*start = ULONG_MAX - 1;
	for (u32 i = 0; i < table->count; i++) {
		const struct profil_device_region *region = &table->regions[i];
		unsigned long buffer = buffer_start(region);

		*start = min_t(unsigned long, *start, buffer);
		end = max_t(unsigned long, end, buffer + max(region->bufsiz, 1ULL));
	}
	*length = end - *start;
}
