// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf_ranges.h"

#include <dwarf.h>
#include <errno.h>

/* The most bytes of an entry: one byte and two numbers. Bound: format. */
#define ENTRY_MAX 32

struct list {
	const struct dwarf_unit *unit;
	enum dwarf_section_kind kind;
	uint64_t at, base;
	dwarf_range *visit;
	void *context;
};

/* Reads an index into .debug_addr, and the address there. */
static bool read_indexed(const struct list *l, struct dwarf_cursor *c, uint64_t *address)
{
	uint64_t index = dwarf_uleb(c);

	return !c->bad && dwarf_address(l->unit, index, address);
}

/* Reads an entry of .debug_rnglists: a range, a base (leaves the range empty), or the end. */
static bool read_entry(struct list *l, struct dwarf_cursor *c, uint64_t *start, uint64_t *limit,
		       bool *end)
{
	unsigned int size = l->unit->address_size;

	*start = *limit = 0;
	switch (dwarf_number(c, 1)) {
	case DW_RLE_end_of_list:
		*end = true;
		return !c->bad;
	case DW_RLE_base_addressx:
		return read_indexed(l, c, &l->base);
	case DW_RLE_startx_endx:
		return read_indexed(l, c, start) && read_indexed(l, c, limit);
	case DW_RLE_startx_length:
		if (!read_indexed(l, c, start))
			return false;
		*limit = *start + dwarf_uleb(c);
		break;
	case DW_RLE_offset_pair:
		*start = l->base + dwarf_uleb(c);
		*limit = l->base + dwarf_uleb(c);
		break;
	case DW_RLE_base_address:
		l->base = dwarf_number(c, size);
		break;
	case DW_RLE_start_end:
		*start = dwarf_number(c, size);
		*limit = dwarf_number(c, size);
		break;
	case DW_RLE_start_length:
		*start = dwarf_number(c, size);
		*limit = *start + dwarf_uleb(c);
		break;
	default:
		return false;
	}
	return !c->bad;
}

/* Reads an entry of .debug_ranges, up to DWARF 4: likewise. */
static bool read_old_entry(struct list *l, struct dwarf_cursor *c, uint64_t *start, uint64_t *limit,
			   bool *end)
{
	unsigned int size = l->unit->address_size;

	*start = dwarf_number(c, size);
	*limit = dwarf_number(c, size);
	*end = !*start && !*limit;
	if (*start == (size == 8 ? UINT64_MAX : UINT32_MAX)) {
		l->base = *limit;
		*limit = 0;
	} else if (!*end) {
		*start += l->base;
		*limit += l->base;
	}
	return !c->bad;
}

static int read_list(struct list *l)
{
	struct dwarf_section *section = &l->unit->file->sections[l->kind];
	bool end = false, valid;
	int err = 0;

	while (!end && !err) {
		struct dwarf_cursor c = dwarf_section_cursor(section, l->at, ENTRY_MAX);
		const uint8_t *at = c.at;
		uint64_t start, limit;

		if (c.bad || !dwarf_section_use(section, ENTRY_MAX / 2))
			return -EINVAL;
		valid = l->kind == DWARF_RANGES ? read_old_entry(l, &c, &start, &limit, &end)
						: read_entry(l, &c, &start, &limit, &end);
		if (!valid)
			return -EINVAL;
		l->at += c.at - at;
		if (start < limit)
			err = l->visit(l->context, start, limit);
	}
	return err;
}

static bool find_address(const struct dwarf_unit *unit, const struct dwarf_value *v, uint64_t *a)
{
	*a = v->number;
	if (v->class == CLASS_ADDRESS_INDEX)
		return dwarf_address(unit, v->number, a);
	return v->class == CLASS_ADDRESS;
}

int dwarf_ranges(const struct dwarf_unit *unit, const struct dwarf_code *code, dwarf_range *visit,
		 void *context)
{
	const struct dwarf_value *ranges = &code->ranges, *high = &code->high;
	const struct dwarf_unit *main = unit->file->skeleton;
	struct list l = { .unit = unit,
			  .kind = DWARF_RNGLISTS,
			  .at = ranges->number,
			  .base = main ? main->low_pc : unit->low_pc,
			  .visit = visit,
			  .context = context };
	uint64_t start, limit;

	if (ranges->class == CLASS_OFFSET || ranges->class == CLASS_LIST_INDEX ||
	    ranges->class == CLASS_CONSTANT) {
		if (unit->version < 5) {
			l.kind = DWARF_RANGES;
			if (main) {
				l.unit = main;
				l.at += main->ranges_base;
			}
			return read_list(&l);
		}
		if (ranges->class == CLASS_LIST_INDEX) { /* in the table at the unit's base */
			if (!dwarf_section_element(&unit->file->sections[DWARF_RNGLISTS],
						   unit->ranges_base, ranges->number,
						   unit->offset_size, &l.at))
				return -EINVAL;
			l.at += unit->ranges_base;
		}
		return read_list(&l);
	}
	if (high->class == CLASS_OTHER)
		return 0;
	if (!find_address(unit, &code->low, &start))
		return -EINVAL;
	if (high->class == CLASS_CONSTANT)
		limit = start + high->number;
	else if (!find_address(unit, high, &limit))
		return -EINVAL;
	return start < limit ? visit(context, start, limit) : 0;
}

/* The ranges of a unit in .debug_aranges. */
struct set {
	uint64_t unit, at, limit; /* at: the next range */
	unsigned int address_size;
};

static bool read_set(struct dwarf_section *section, uint64_t offset, struct set *set)
{
	struct dwarf_cursor c = dwarf_section_cursor(section, offset, 64);
	const uint8_t *start = c.at;
	unsigned int offset_size, segment_size;
	uint64_t length = dwarf_length(&c, &offset_size);

	set->at = offset + (c.at - start);
	if (c.bad || set->at > section->size || length > section->size - set->at)
		return false;
	set->limit = set->at + length;
	dwarf_skip(&c, 2);
	set->unit = dwarf_number(&c, offset_size);
	set->address_size = dwarf_number(&c, 1);
	segment_size = dwarf_number(&c, 1);
	if (c.bad || segment_size || (set->address_size != 4 && set->address_size != 8))
		return false;
	/* Ranges are aligned to their size, relative to the beginning of the set. */
	set->at = c.at - start;
	set->at += 2 * set->address_size - 1;
	set->at = offset + set->at - set->at % (2 * set->address_size);
	return true;
}

int dwarf_unit_ranges(struct dwarf_file *file, uint64_t *unit, dwarf_range *visit, void *context)
{
	struct dwarf_section *section = &file->sections[DWARF_ARANGES];
	uint64_t offset = 0;
	struct set set;

	for (; offset < section->size; offset = set.limit) {
		if (!read_set(section, offset, &set) || set.limit <= offset)
			return -EINVAL;
		while (set.at < set.limit) {
			struct dwarf_cursor c = dwarf_section_cursor(section, set.at, 16);
			uint64_t start = dwarf_number(&c, set.address_size),
				 size = dwarf_number(&c, set.address_size);
			int err;

			if (c.bad)
				return -EINVAL;
			if (!start && !size)
				break;
			set.at += 2 * set.address_size;
			*unit = set.unit;
			err = size ? visit(context, start, start + size) : 0;
			if (err)
				return err;
		}
	}
	return 0;
}
