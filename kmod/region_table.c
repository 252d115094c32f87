// SPDX-License-Identifier: GPL-2.0-only
/* What is to be counted: regions of program counters, and where their cells are. */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "bpf/cell.h"
#include "kmod/counted_memory.h"
#include "kmod/settings.h"

static unsigned int cell_shift(const struct table *table)
{
	return table->wide ? 2 : 1; /* a cell has 1 << that many bytes */
}

static int check_region(const struct profil_device_region *region, u64 next)
{
	if (region->unused || region->first < next || region->first < region->offset ||
	    region->last < region->first)
		return -EINVAL;
	if (region->buffer != (unsigned long)region->buffer ||
	    region->bufsiz > ULONG_MAX - region->buffer ||
	    !access_ok((void __user *)(unsigned long)region->buffer, region->bufsiz))
		return -EFAULT;
	return 0;
}

/* They are in the order of their addresses, so that a tick can halve them. */
static int check_regions(const struct table *table)
{
	u64 next = 0;

	for (u32 i = 0; i < table->count; i++) {
		const struct profil_device_region *region = &table->regions[i];
		int err = check_region(region, next);

		if (err)
			return err;
		next = region->last + 1;
		if (!next && i + 1 < table->count)
			return -EINVAL;
	}
	return 0;
}

static int check_set(const struct profil_device_set *set)
{
	if (set->flags & ~(u32)PROFIL_WIDE)
		return -E2BIG;
	if (!set->hz || set->hz > settings_max_hz() || !set->region_count)
		return -EINVAL;
	return set->region_count > settings_max_regions() ? -E2BIG : 0;
}

struct table *table_read(const struct profil_device_set *set)
{
	struct table *table;
	int err = check_set(set);

	if (err)
		return ERR_PTR(err);
	if (set->regions != (unsigned long)set->regions)
		return ERR_PTR(-EFAULT);
	table = kvzalloc(struct_size(table, regions, set->region_count), GFP_KERNEL_ACCOUNT);
	if (!table)
		return ERR_PTR(-ENOMEM);
	kref_init(&table->users);
	RB_CLEAR_NODE(&table->rate);
	table->hz = set->hz;
	table->period = NSEC_PER_SEC / set->hz;
	table->wide = set->flags & PROFIL_WIDE;
	table->count = set->region_count;
	if (copy_from_user(table->regions, (void __user *)(unsigned long)set->regions,
			   array_size(table->count, sizeof(*table->regions))))
		err = -EFAULT;
	else
		err = check_regions(table);
	if (!err)
		return table;
	table_put(table);
	return ERR_PTR(err);
}

struct table *table_get(struct table *table)
{
	kref_get(&table->users);
	return table;
}

/* The last reference may go with preemption disabled, where vfree() is not possible. */
static void table_free(struct kref *users)
{
	struct table *table = container_of(users, struct table, users);

	clock_remove(table);
	kvfree_rcu(table, rcu);
}

void table_put(struct table *table)
{
	kref_put(&table->users, table_free);
}

/* The last region that begins at or before pc; NULL when all are behind it. */
static const struct profil_device_region *search(const struct table *table, u64 pc)
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

unsigned long table_cell(const struct table *table, u64 pc)
{
	const struct profil_device_region *region = search(table, pc);
	unsigned int shift = cell_shift(table);
	u64 number;

	if (!region || pc > region->last)
		return NO_CELL;
	number = cell_index(pc - region->offset, region->scale) >> table->wide;
	return number < region->bufsiz >> shift ? region->buffer + (number << shift) : NO_CELL;
}

/* Where its buffer is: arm64 has a tag in the address besides. */
static unsigned long place(const struct profil_device_region *region)
{
	return untagged_addr((unsigned long)region->buffer);
}

bool table_overlaps(const struct table *table, unsigned long start, unsigned long end)
{
	for (u32 i = 0; i < table->count; i++) {
		const struct profil_device_region *region = &table->regions[i];

		if (start < place(region) + region->bufsiz && end > place(region))
			return true;
	}
	return false;
}

void table_span(const struct table *table, unsigned long *start, unsigned long *length)
{
	unsigned long end = 1;

	*start = ULONG_MAX - 1;
	for (u32 i = 0; i < table->count; i++) {
		const struct profil_device_region *region = &table->regions[i];

		*start = min_t(unsigned long, *start, place(region));
		end = max_t(unsigned long, end, place(region) + max(region->bufsiz, 1ULL));
	}
	*length = end - *start;
}
