// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/array.h"

/* Browsers have a hundred thousand. */
#define UNITS_MAX ((size_t)4 * 1024 * 1024)

/* Bytes of a unit that is kept in memory as a whole */
#define SMALL ((uint64_t)4 * 1024 * 1024)

/* --- Files --- */

static const char *const section_names[] = {
	[DWARF_INFO] = ".debug_info",	      [DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_LINE] = ".debug_line",	      [DWARF_STR] = ".debug_str",
	[DWARF_LINE_STR] = ".debug_line_str", [DWARF_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_ADDR] = ".debug_addr",	      [DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists", [DWARF_ARANGES] = ".debug_aranges",
};

int dwarf_file_open(struct dwarf_file *file)
{
	int err = 0;

	file->code_start = elf_code_start(file->elf.elf);
	for (size_t i = 0; i < DWARF_SECTIONS && !err; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%s", section_names[i], file->split ? ".dwo" : "");
		err = dwarf_section_open(&file->sections[i], &file->elf, name, file->room);
	}
	return err;
}

void dwarf_file_close(struct dwarf_file *file)
{
	for (size_t i = 0; i < DWARF_SECTIONS; i++)
		dwarf_section_close(&file->sections[i]);
	dwarf_forget_abbreviations(file);
	free(file->spans);
	if (file->owned)
		elf_file_close(&file->elf);
	if (file->alternate) {
		dwarf_file_close(file->alternate);
		free(file->alternate);
	}
	*file = (struct dwarf_file){ 0 };
}

/* --- Tables whose base is an attribute of the unit's entry --- */

struct dwarf_text dwarf_text(const struct dwarf_unit *unit, const struct dwarf_value *value)
{
	struct dwarf_text text = { value->strings, value->number };
	struct dwarf_section *sections = unit->file->sections;

	if (value->class == CLASS_STRING)
		return text;
	text.section = NULL;
	if (value->class == CLASS_STRING_INDEX &&
	    dwarf_section_element(&sections[DWARF_STR_OFFSETS], unit->str_offsets_base,
				  value->number, unit->offset_size, &text.offset))
		text.section = &sections[DWARF_STR];
	return text;
}

bool dwarf_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address)
{
	const struct dwarf_unit *main = unit->file->skeleton ?: unit;

	return dwarf_section_element(&main->file->sections[DWARF_ADDR], main->addr_base, index,
				     main->address_size, address);
}

/* --- Units --- */

/* A split unit has no attributes for the bases of its tables: these follow the tables' headers. */
static void set_default_bases(struct dwarf_unit *unit)
{
	const struct dwarf_file *file = unit->file;
	unsigned int wide = unit->offset_size == 8;

	unit->str_offsets_base = file->part[DWARF_STR_OFFSETS];
	unit->ranges_base = file->part[DWARF_RNGLISTS];
	if (unit->version < 5)
		return;
	unit->str_offsets_base += wide ? 16 : 8;
	unit->ranges_base += wide ? 20 : 12;
	unit->addr_base = wide ? 16 : 8;
}

static void note_attributes(struct dwarf_unit *unit, const struct dwarf_die *die)
{
	unit->tag = die->tag;
	unit->language = dwarf_constant(die, ATTR_LANGUAGE);
	if (dwarf_has(die, ATTR_STR_OFFSETS_BASE))
		unit->str_offsets_base = die->values[ATTR_STR_OFFSETS_BASE].number;
	if (dwarf_has(die, ATTR_ADDR_BASE))
		unit->addr_base = die->values[ATTR_ADDR_BASE].number;
	if (dwarf_has(die, ATTR_RANGES_BASE))
		unit->ranges_base = die->values[ATTR_RANGES_BASE].number;
	if (dwarf_has(die, ATTR_DWO_ID))
		unit->id = die->values[ATTR_DWO_ID].number;
	unit->has_lines = dwarf_has(die, ATTR_STMT_LIST);
	unit->lines = dwarf_value(die, ATTR_STMT_LIST).number;
	unit->low = dwarf_value(die, ATTR_LOW_PC);
	unit->high = dwarf_value(die, ATTR_HIGH_PC);
	unit->ranges = dwarf_value(die, ATTR_RANGES);
	unit->low_pc = unit->low.number;
	if (unit->low.class == CLASS_ADDRESS_INDEX)
		dwarf_address(unit, unit->low.number, &unit->low_pc);
	unit->name = dwarf_text_of(unit, die, ATTR_NAME);
	unit->directory = dwarf_text_of(unit, die, ATTR_COMP_DIR);
	unit->dwo_name = dwarf_text_of(unit, die, ATTR_DWO_NAME);
}

/* Reads a unit's length. Returns 0, or -EINVAL: the next unit cannot be found. */
static int read_length(struct dwarf_file *file, uint64_t offset, struct dwarf_cursor *c,
		       struct dwarf_unit *unit)
{
	struct dwarf_section *info = &file->sections[DWARF_INFO];
	const uint8_t *start;
	uint64_t length;

	*c = dwarf_section_cursor(info, offset, 64);
	start = c->at;
	*unit = (struct dwarf_unit){ .file = file, .offset = offset };
	length = dwarf_length(c, &unit->offset_size);
	unit->first = offset + (c->at - start);
	if (c->bad || unit->first > info->size || length > info->size - unit->first)
		return -EINVAL;
	unit->limit = unit->first + length;
	return 0;
}

static bool read_header(struct dwarf_cursor *c, struct dwarf_unit *unit)
{
	const uint8_t *start = c->at;

	unit->version = dwarf_number(c, 2);
	if (unit->version < 2 || unit->version > 5)
		return false;
	if (unit->version == 5) {
		unit->type = dwarf_number(c, 1);
		unit->address_size = dwarf_number(c, 1);
		unit->abbreviations = dwarf_number(c, unit->offset_size);
		if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
			unit->id = dwarf_number(c, 8);
	} else {
		unit->type = DW_UT_compile;
		unit->abbreviations = dwarf_number(c, unit->offset_size);
		unit->address_size = dwarf_number(c, 1);
	}
	unit->abbreviations += unit->file->part[DWARF_ABBREV];
	unit->first += c->at - start;
	return !c->bad && (unit->address_size == 4 || unit->address_size == 8) &&
	       unit->type != DW_UT_type && unit->type != DW_UT_split_type;
}

int dwarf_unit_read(struct dwarf_file *file, uint64_t offset, struct dwarf_unit *unit)
{
	struct dwarf_cursor c;
	struct dwarf_die die;
	int err = read_length(file, offset, &c, unit);

	if (err || !read_header(&c, unit))
		return -EINVAL;
	set_default_bases(unit);
	err = dwarf_die_read(unit, unit->first, DWARF_ENTRY, &die);
	/* After all are read: the base of strings may follow the first string. */
	if (!err)
		note_attributes(unit, &die);
	return err;
}

bool dwarf_unit_is_small(const struct dwarf_unit *unit)
{
	return unit->limit - unit->offset <= SMALL;
}

void dwarf_unit_load(const struct dwarf_unit *unit)
{
	if (dwarf_unit_is_small(unit))
		dwarf_section_cursor(&unit->file->sections[DWARF_INFO], unit->offset,
				     unit->limit - unit->offset);
}

int dwarf_note_unit(const struct dwarf_unit *unit)
{
	struct dwarf_file *file = unit->file;

	if (file->all_known)
		return 0;
	if (array_reserve(&file->spans, &file->span_room, file->span_count + 1,
			  sizeof(*file->spans)))
		return -ENOMEM;
	file->spans[file->span_count++] = (struct dwarf_span){ unit->offset, unit->limit };
	return 0;
}

int dwarf_find_units(struct dwarf_file *file,
		     int (*visit)(void *context, const struct dwarf_unit *unit), void *context)
{
	uint64_t offset = 0;
	int err = 0;

	file->span_count = 0;
	file->all_known = false;
	while (!err && offset < file->sections[DWARF_INFO].size) {
		struct dwarf_cursor c;
		struct dwarf_unit unit;

		if (read_length(file, offset, &c, &unit) || unit.limit == unit.first ||
		    file->span_count == UNITS_MAX)
			break;
		err = dwarf_note_unit(&unit);
		if (!err && visit)
			err = dwarf_unit_read(file, offset, &unit) ?: visit(context, &unit);
		if (err == -EINVAL)
			err = 0;
		offset = unit.limit;
	}
	file->all_known = !err;
	return err;
}

static int compare_span(const void *offset, const void *span)
{
	const struct dwarf_span *s = span;
	uint64_t at = *(const uint64_t *)offset;

	return at < s->offset ? -1 : at >= s->limit;
}

static struct dwarf_span *find_span(const struct dwarf_file *file, uint64_t offset)
{
	if (!file->span_count)
		return NULL;
	return bsearch(&offset, file->spans, file->span_count, sizeof(*file->spans), compare_span);
}

int dwarf_unit_of(struct dwarf_file *file, uint64_t entry, uint64_t *unit)
{
	struct dwarf_span *span = find_span(file, entry);

	if (!span && !file->all_known) {
		int err = dwarf_find_units(file, NULL, NULL);

		if (err)
			return err;
		span = find_span(file, entry);
	}
	if (!span)
		return -EINVAL;
	*unit = span->offset;
	return 0;
}
