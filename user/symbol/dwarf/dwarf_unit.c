// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/order.h"

/*
 * Browsers have a hundred thousand.
 * Bound: files: units of a file; then: it has no lines from there on.
 */
#define UNITS_MAX ((size_t)4 * 1024 * 1024)

/* Bytes of a unit that is kept in memory as a whole */
#define SMALL ((uint64_t)4 * 1024 * 1024)

/*
 * Compilers write some hundred per table, link-time optimizers some thousand.
 * Bound: files: abbreviations of a unit, and their bytes; then: that part of the file has no lines.
 */
#define ABBREVIATIONS_MAX 1000000
#define TABLE_MAX	  ((size_t)16 * 1024 * 1024)

/* An entry has less than 200 bytes, except for blocks, which may have any size. */
#define ENTRY_USUAL 4096
/* Bound: files: bytes of an entry; then: that part of the file has no lines. */
#define ENTRY_MAX ((size_t)64 * 1024 * 1024)

/* The encoding and meaning of an attribute's value. */
enum form_size {
	/* 0 to 31: that many bytes */
	SIZE_ADDRESS = 32,
	SIZE_OFFSET,
	SIZE_REF_ADDR, /* an address in DWARF 2, an offset later */
	SIZE_ULEB,
	SIZE_SLEB,
	SIZE_STRING,
	SIZE_IMPLICIT,
	SIZE_INDIRECT,
	SIZE_UNKNOWN,
	SIZE_BLOCK, /* its size comes first: a ULEB, or a number of 1, 2 or 4 bytes */
	SIZE_BLOCK1 = SIZE_BLOCK + 1,
	SIZE_BLOCK2 = SIZE_BLOCK + 2,
	SIZE_BLOCK4 = SIZE_BLOCK + 4,
};

struct form {
	uint16_t code;
	uint8_t size;
	uint8_t class;
};

static const struct form forms[] = {
	{ DW_FORM_addr, SIZE_ADDRESS, CLASS_ADDRESS },
	{ DW_FORM_block2, SIZE_BLOCK2, CLASS_OTHER },
	{ DW_FORM_block4, SIZE_BLOCK4, CLASS_OTHER },
	{ DW_FORM_data2, 2, CLASS_CONSTANT },
	{ DW_FORM_data4, 4, CLASS_CONSTANT },
	{ DW_FORM_data8, 8, CLASS_CONSTANT },
	{ DW_FORM_string, SIZE_STRING, CLASS_STRING },
	{ DW_FORM_block, SIZE_BLOCK, CLASS_OTHER },
	{ DW_FORM_block1, SIZE_BLOCK1, CLASS_OTHER },
	{ DW_FORM_data1, 1, CLASS_CONSTANT },
	{ DW_FORM_flag, 1, CLASS_OTHER },
	{ DW_FORM_sdata, SIZE_SLEB, CLASS_CONSTANT },
	{ DW_FORM_strp, SIZE_OFFSET, CLASS_STRING },
	{ DW_FORM_udata, SIZE_ULEB, CLASS_CONSTANT },
	{ DW_FORM_ref_addr, SIZE_REF_ADDR, CLASS_REFERENCE },
	{ DW_FORM_ref1, 1, CLASS_REFERENCE },
	{ DW_FORM_ref2, 2, CLASS_REFERENCE },
	{ DW_FORM_ref4, 4, CLASS_REFERENCE },
	{ DW_FORM_ref8, 8, CLASS_REFERENCE },
	{ DW_FORM_ref_udata, SIZE_ULEB, CLASS_REFERENCE },
	{ DW_FORM_indirect, SIZE_INDIRECT, CLASS_OTHER },
	{ DW_FORM_sec_offset, SIZE_OFFSET, CLASS_OFFSET },
	{ DW_FORM_exprloc, SIZE_BLOCK, CLASS_OTHER },
	{ DW_FORM_flag_present, 0, CLASS_OTHER },
	{ DW_FORM_strx, SIZE_ULEB, CLASS_STRING_INDEX },
	{ DW_FORM_addrx, SIZE_ULEB, CLASS_ADDRESS_INDEX },
	{ DW_FORM_ref_sup4, 4, CLASS_ALTERNATE },
	{ DW_FORM_strp_sup, SIZE_OFFSET, CLASS_STRING },
	{ DW_FORM_data16, 16, CLASS_OTHER },
	{ DW_FORM_line_strp, SIZE_OFFSET, CLASS_STRING },
	{ DW_FORM_ref_sig8, 8, CLASS_OTHER },
	{ DW_FORM_implicit_const, SIZE_IMPLICIT, CLASS_CONSTANT },
	{ DW_FORM_loclistx, SIZE_ULEB, CLASS_OTHER },
	{ DW_FORM_rnglistx, SIZE_ULEB, CLASS_LIST_INDEX },
	{ DW_FORM_ref_sup8, 8, CLASS_ALTERNATE },
	{ DW_FORM_strx1, 1, CLASS_STRING_INDEX },
	{ DW_FORM_strx2, 2, CLASS_STRING_INDEX },
	{ DW_FORM_strx3, 3, CLASS_STRING_INDEX },
	{ DW_FORM_strx4, 4, CLASS_STRING_INDEX },
	{ DW_FORM_addrx1, 1, CLASS_ADDRESS_INDEX },
	{ DW_FORM_addrx2, 2, CLASS_ADDRESS_INDEX },
	{ DW_FORM_addrx3, 3, CLASS_ADDRESS_INDEX },
	{ DW_FORM_addrx4, 4, CLASS_ADDRESS_INDEX },
	{ DW_FORM_GNU_addr_index, SIZE_ULEB, CLASS_ADDRESS_INDEX },
	{ DW_FORM_GNU_str_index, SIZE_ULEB, CLASS_STRING_INDEX },
	{ DW_FORM_GNU_ref_alt, SIZE_OFFSET, CLASS_ALTERNATE },
	{ DW_FORM_GNU_strp_alt, SIZE_OFFSET, CLASS_STRING },
};

static struct form find_form(uint64_t code)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (forms[i].code == code)
			return forms[i];
	return (struct form){ 0, SIZE_UNKNOWN, CLASS_OTHER };
}

static const struct {
	uint16_t code;
	uint8_t attribute;
} attributes[] = {
	{ DW_AT_sibling, ATTR_SIBLING },
	{ DW_AT_name, ATTR_NAME },
	{ DW_AT_linkage_name, ATTR_LINKAGE_NAME },
	{ DW_AT_MIPS_linkage_name, ATTR_LINKAGE_NAME },
	{ DW_AT_low_pc, ATTR_LOW_PC },
	{ DW_AT_high_pc, ATTR_HIGH_PC },
	{ DW_AT_ranges, ATTR_RANGES },
	{ DW_AT_abstract_origin, ATTR_ORIGIN },
	{ DW_AT_specification, ATTR_SPECIFICATION },
	{ DW_AT_decl_file, ATTR_DECL_FILE },
	{ DW_AT_decl_line, ATTR_DECL_LINE },
	{ DW_AT_call_file, ATTR_CALL_FILE },
	{ DW_AT_call_line, ATTR_CALL_LINE },
	{ DW_AT_call_column, ATTR_CALL_COLUMN },
	{ DW_AT_language, ATTR_LANGUAGE },
	{ DW_AT_stmt_list, ATTR_STMT_LIST },
	{ DW_AT_comp_dir, ATTR_COMP_DIR },
	{ DW_AT_str_offsets_base, ATTR_STR_OFFSETS_BASE },
	{ DW_AT_addr_base, ATTR_ADDR_BASE },
	{ DW_AT_GNU_addr_base, ATTR_ADDR_BASE },
	{ DW_AT_rnglists_base, ATTR_RANGES_BASE },
	{ DW_AT_GNU_ranges_base, ATTR_RANGES_BASE },
	{ DW_AT_dwo_name, ATTR_DWO_NAME },
	{ DW_AT_GNU_dwo_name, ATTR_DWO_NAME },
	{ DW_AT_GNU_dwo_id, ATTR_DWO_ID },
};

struct dwarf_abbreviation {
	uint64_t code;
	uint32_t tag;
	uint32_t first, count; /* its specs */
	uint32_t fixed;	       /* the size of all values; UINT32_MAX: variable */
	bool children;
};

struct dwarf_spec {
	struct form form;
	uint8_t attribute; /* ATTR_COUNT: not used */
	int64_t implicit;
};

struct dwarf_abbreviations {
	uint64_t offset;
	unsigned int version, offset_size, address_size;
	struct dwarf_abbreviation *entries; /* sorted by code */
	size_t count, room;
	struct dwarf_spec *specs;
	size_t spec_count, spec_room;
};

static void free_abbreviations(struct dwarf_abbreviations *a)
{
	if (!a)
		return;
	free(a->entries);
	free(a->specs);
	free(a);
}

/* The size of a form's values; UINT32_MAX: variable. */
static uint32_t fixed_size(const struct dwarf_unit *unit, unsigned int size)
{
	switch (size) {
	case SIZE_ADDRESS:
		return unit->address_size;
	case SIZE_OFFSET:
		return unit->offset_size;
	case SIZE_REF_ADDR:
		return unit->version == 2 ? unit->address_size : unit->offset_size;
	case SIZE_IMPLICIT:
		return 0;
	default:
		return size < SIZE_ADDRESS ? size : UINT32_MAX;
	}
}

/* Reads all abbreviations up to the table's end. Returns 0, -EINVAL or -ENOMEM. */
static int read_abbreviations(const struct dwarf_unit *unit, struct dwarf_abbreviations *a,
			      struct dwarf_cursor *c)
{
	uint64_t code;

	while ((code = dwarf_uleb(c))) {
		struct dwarf_abbreviation entry = { .code = code, .first = a->spec_count };

		entry.tag = dwarf_uleb(c);
		entry.children = dwarf_number(c, 1) == DW_CHILDREN_yes;
		while (!c->bad) {
			uint64_t name = dwarf_uleb(c), form = dwarf_uleb(c);
			struct dwarf_spec spec = { find_form(form), ATTR_COUNT, 0 };
			uint32_t size = fixed_size(unit, spec.form.size);

			if (!name && !form)
				break;
			if (form == DW_FORM_implicit_const)
				spec.implicit = dwarf_sleb(c);
			for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
				if (attributes[i].code == name)
					spec.attribute = attributes[i].attribute;
			if (array_add(a->specs, a->spec_count, a->spec_room, spec))
				return -ENOMEM;
			entry.count++;
			if (size == UINT32_MAX || entry.fixed == UINT32_MAX)
				entry.fixed = UINT32_MAX;
			else
				entry.fixed += size;
		}
		if (c->bad || a->count == ABBREVIATIONS_MAX)
			return -EINVAL;
		if (array_add(a->entries, a->count, a->room, entry))
			return -ENOMEM;
	}
	return c->bad ? -EINVAL : 0;
}

ORDER(by_code, struct dwarf_abbreviation, LEAST(code))

static int read_abbreviation_table(const struct dwarf_unit *unit, struct dwarf_abbreviations *a)
{
	struct dwarf_section *section = &unit->file->sections[DWARF_ABBREV];
	int err = -EINVAL;

	/* Only its end says how long the table is. */
	for (size_t want = 16 * 1024; want <= TABLE_MAX; want *= 32) {
		struct dwarf_cursor c = dwarf_section_cursor(section, a->offset, want);
		const uint8_t *start = c.at;

		a->count = a->spec_count = 0;
		err = read_abbreviations(unit, a, &c);
		if (!dwarf_section_use(section, c.at - start))
			return -EINVAL;
		if (err != -EINVAL || !start || (size_t)(c.end - start) < want)
			break;
	}
	if (!err && a->count)
		qsort(a->entries, a->count, sizeof(*a->entries), by_code);
	return err;
}

/* Finds a unit's abbreviations, which stay valid until those of another unit are requested. */
static int find_abbreviations(const struct dwarf_unit *unit, struct dwarf_abbreviations **found)
{
	struct dwarf_file *file = unit->file;
	struct dwarf_abbreviations *a = file->abbreviations;
	int err;

	if (!a || a->offset != unit->abbreviations || a->version != unit->version ||
	    a->offset_size != unit->offset_size || a->address_size != unit->address_size) {
		free_abbreviations(a);
		a = file->abbreviations = calloc(1, sizeof(*a));
		if (!a)
			return -ENOMEM;
		a->offset = unit->abbreviations;
		a->version = unit->version;
		a->offset_size = unit->offset_size;
		a->address_size = unit->address_size;
		err = read_abbreviation_table(unit, a);
		if (err) {
			free_abbreviations(a);
			file->abbreviations = NULL;
			return err;
		}
	}
	*found = a;
	return 0;
}

/* position: the cursor's offset in .debug_info. Returns false for invalid values. */
static bool read_value(const struct dwarf_unit *unit, const struct dwarf_spec *spec,
		       struct dwarf_cursor *c, uint64_t position, struct dwarf_value *v)
{
	struct dwarf_file *file = unit->file;
	struct form form = spec->form;
	uint32_t size;

	if (form.size == SIZE_INDIRECT) { /* the value begins with its form */
		const uint8_t *start = c->at;

		form = find_form(dwarf_uleb(c));
		position += c->at - start;
		if (form.size == SIZE_INDIRECT || form.size == SIZE_IMPLICIT)
			return false;
	}
	*v = (struct dwarf_value){ .class = form.class };
	switch (form.size) {
	case SIZE_BLOCK:
		dwarf_skip(c, dwarf_uleb(c));
		break;
	case SIZE_BLOCK1:
	case SIZE_BLOCK2:
	case SIZE_BLOCK4:
		dwarf_skip(c, dwarf_number(c, form.size - SIZE_BLOCK));
		break;
	case SIZE_STRING:
		v->number = position;
		v->strings = &file->sections[DWARF_INFO];
		dwarf_skip_string(c);
		return !c->bad;
	case SIZE_ULEB:
		v->number = dwarf_uleb(c);
		break;
	case SIZE_SLEB:
		v->number = dwarf_sleb(c);
		break;
	case SIZE_IMPLICIT:
		v->number = spec->implicit;
		break;
	case SIZE_UNKNOWN:
		return false;
	default:
		size = fixed_size(unit, form.size);
		if (size > 8)
			dwarf_skip(c, size);
		else
			v->number = dwarf_number(c, size);
	}
	/* Makes a reference an offset in .debug_info, and sets the section of a string. */
	if (v->class == CLASS_REFERENCE && form.code != DW_FORM_ref_addr)
		v->number += unit->offset;
	if (v->class != CLASS_STRING)
		return !c->bad;
	if (form.code == DW_FORM_GNU_strp_alt || form.code == DW_FORM_strp_sup)
		v->strings = file->alternate ? &file->alternate->sections[DWARF_STR] : NULL;
	else if (form.code == DW_FORM_line_strp)
		v->strings = &file->sections[DWARF_LINE_STR];
	else
		v->strings = &file->sections[DWARF_STR];
	return !c->bad;
}

bool dwarf_read_value(const struct dwarf_unit *unit, uint64_t form, struct dwarf_cursor *c,
		      uint64_t position, struct dwarf_value *v)
{
	const struct dwarf_spec spec = { .form = find_form(form) };

	return spec.form.size && spec.form.size != SIZE_IMPLICIT &&
	       read_value(unit, &spec, c, position, v);
}

/*
 * Whether an entry has no functions with code below it. Compilers define methods outside of types;
 * but in types that are local to a function, such as generic lambdas, GCC defines them inside.
 */
static bool has_no_code(unsigned int tag, enum dwarf_wanted wanted)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return wanted != DWARF_CODE_OF_FUNCTION;
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_formal_parameter_pack:
	case DW_TAG_GNU_template_parameter_pack:
	case DW_TAG_variant_part:
		return true;
	default:
		return false;
	}
}

/* c: at the entry. Sets die->next to the end of its values. */
static int read_die(const struct dwarf_unit *unit, const struct dwarf_abbreviations *a,
		    struct dwarf_cursor *c, enum dwarf_wanted wanted, struct dwarf_die *die)
{
	const uint8_t *start = c->at;
	const struct dwarf_abbreviation *entry = NULL;
	struct dwarf_abbreviation key = { .code = dwarf_uleb(c) };

	die->tag = die->have = 0;
	die->children = false;
	die->next = die->offset + (c->at - start);
	if (!key.code)
		return c->bad ? -EINVAL : 0;
	/* Compilers number abbreviations from 1 on. */
	if (key.code <= a->count && a->entries[key.code - 1].code == key.code)
		entry = &a->entries[key.code - 1];
	else if (a->count)
		entry = bsearch(&key, a->entries, a->count, sizeof(key), by_code);
	if (!entry || !entry->tag)
		return -EINVAL;
	die->tag = entry->tag;
	die->children = entry->children;
	if (wanted && entry->fixed != UINT32_MAX && !dwarf_is_function(entry->tag) &&
	    !(entry->children && has_no_code(entry->tag, wanted))) {
		dwarf_skip(c, entry->fixed);
	} else {
		for (uint32_t i = 0; i < entry->count; i++) {
			const struct dwarf_spec *spec = &a->specs[entry->first + i];
			bool is_used = spec->attribute < ATTR_COUNT;
			struct dwarf_value unused;

			if (!read_value(unit, spec, c, die->offset + (c->at - start),
					is_used ? &die->values[spec->attribute] : &unused))
				return -EINVAL;
			if (is_used)
				die->have |= 1u << spec->attribute;
		}
	}
	die->next = die->offset + (c->at - start);
	return c->bad ? -EINVAL : 0;
}

int dwarf_die_read(const struct dwarf_unit *unit, uint64_t offset, enum dwarf_wanted wanted,
		   struct dwarf_die *die)
{
	struct dwarf_section *info = &unit->file->sections[DWARF_INFO];
	struct dwarf_abbreviations *a;
	int err = find_abbreviations(unit, &a);

	if (err)
		return err;
	if (offset < unit->first || offset >= unit->limit)
		return -EINVAL;
	for (size_t want = ENTRY_USUAL; want <= ENTRY_MAX; want *= 128) {
		uint64_t left = unit->limit - offset;
		struct dwarf_cursor c = dwarf_section_cursor(info, offset, MIN(want, left));

		die->offset = offset;
		if (!c.at)
			return -EINVAL;
		err = read_die(unit, a, &c, wanted, die);
		if (err != -EINVAL || !c.bad || want >= left)
			break;
	}
	if (err || !dwarf_section_use(info, die->next - offset))
		return err ? err : -EINVAL;
	if (wanted && die->children && has_no_code(die->tag, wanted))
		dwarf_skip_children(die);
	return 0;
}

uint64_t dwarf_constant(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	if (!dwarf_has(die, attribute) || die->values[attribute].class != CLASS_CONSTANT)
		return 0;
	return die->values[attribute].number;
}

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
	free_abbreviations(file->abbreviations);
	free(file->spans);
	if (file->owned)
		elf_file_close(&file->elf);
	if (file->alternate) {
		dwarf_file_close(file->alternate);
		free(file->alternate);
	}
	*file = (struct dwarf_file){ 0 };
}

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

/* Reads a unit's length. Returns 0, or -EINVAL: the next unit cannot be found. */
static int read_unit_length(struct dwarf_file *file, uint64_t offset, struct dwarf_cursor *c,
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

static bool read_unit_header(struct dwarf_cursor *c, struct dwarf_unit *unit)
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
	bool wide;
	int err = read_unit_length(file, offset, &c, unit);

	if (err || !read_unit_header(&c, unit))
		return -EINVAL;
	/*
	 * A split unit has no attributes for its tables' bases: these follow the tables' headers.
	 */
	unit->str_offsets_base = file->part[DWARF_STR_OFFSETS];
	unit->ranges_base = file->part[DWARF_RNGLISTS];
	if (unit->version >= 5) {
		wide = unit->offset_size == 8;
		unit->str_offsets_base += wide ? 16 : 8;
		unit->ranges_base += wide ? 20 : 12;
		unit->addr_base = wide ? 16 : 8;
	}
	err = dwarf_die_read(unit, unit->first, DWARF_ENTRY, &die);
	if (err)
		return err;
	/* The bases come first: that of strings may follow the first string. */
	if (dwarf_has(&die, ATTR_STR_OFFSETS_BASE))
		unit->str_offsets_base = die.values[ATTR_STR_OFFSETS_BASE].number;
	if (dwarf_has(&die, ATTR_ADDR_BASE))
		unit->addr_base = die.values[ATTR_ADDR_BASE].number;
	if (dwarf_has(&die, ATTR_RANGES_BASE))
		unit->ranges_base = die.values[ATTR_RANGES_BASE].number;
	if (dwarf_has(&die, ATTR_DWO_ID))
		unit->id = die.values[ATTR_DWO_ID].number;
	unit->tag = die.tag;
	unit->language = dwarf_constant(&die, ATTR_LANGUAGE);
	unit->has_lines = dwarf_has(&die, ATTR_STMT_LIST);
	unit->lines = dwarf_value(&die, ATTR_STMT_LIST).number;
	unit->code = dwarf_code(&die);
	unit->low_pc = unit->code.low.number;
	if (unit->code.low.class == CLASS_ADDRESS_INDEX)
		dwarf_address(unit, unit->low_pc, &unit->low_pc);
	unit->name = dwarf_text_of(unit, &die, ATTR_NAME);
	unit->directory = dwarf_text_of(unit, &die, ATTR_COMP_DIR);
	unit->dwo_name = dwarf_text_of(unit, &die, ATTR_DWO_NAME);
	return 0;
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
	return array_add(file->spans, file->span_count, file->span_room,
			 (struct dwarf_span){ unit->offset, unit->limit });
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

		if (read_unit_length(file, offset, &c, &unit) || unit.limit == unit.first ||
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

ORDER_OF_KEY(compare_span, uint64_t, struct dwarf_span, *a < b->offset ? -1 : *a >= b->limit)

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
