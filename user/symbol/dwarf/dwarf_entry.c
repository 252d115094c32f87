// SPDX-License-Identifier: GPL-2.0-only
/* Entries of .debug_info, and the abbreviations that define their encoding. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "symbol/dwarf/dwarf_unit.h"
#include "util/array.h"

/* Compilers write some hundred per table, link-time optimizers some thousand. */
#define ABBREVIATIONS_MAX 1000000
#define TABLE_MAX	  ((size_t)16 * 1024 * 1024)

/* An entry has less than 200 bytes, except for blocks, which may have any size. */
#define ENTRY_USUAL 4096
#define ENTRY_MAX   ((size_t)64 * 1024 * 1024)

/* --- Forms: the encoding and meaning of an attribute's value --- */

enum form_size {
	/* 0 to 31: that many bytes */
	SIZE_ADDRESS = 32,
	SIZE_OFFSET,
	SIZE_REF_ADDR, /* an address in DWARF 2, an offset later */
	SIZE_ULEB,
	SIZE_SLEB,
	SIZE_STRING,
	SIZE_BLOCK1,
	SIZE_BLOCK2,
	SIZE_BLOCK4,
	SIZE_BLOCK,
	SIZE_IMPLICIT,
	SIZE_INDIRECT,
	SIZE_UNKNOWN
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

static uint8_t find_attribute(uint64_t code)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i].code == code)
			return attributes[i].attribute;
	return ATTR_COUNT;
}

/* --- Abbreviations --- */

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

void dwarf_forget_abbreviations(struct dwarf_file *file)
{
	free_abbreviations(file->abbreviations);
	file->abbreviations = NULL;
}

/* The size of a form's values; UINT32_MAX: variable. */
static uint32_t fixed_size(const struct dwarf_abbreviations *a, unsigned int size)
{
	switch (size) {
	case SIZE_ADDRESS:
		return a->address_size;
	case SIZE_OFFSET:
		return a->offset_size;
	case SIZE_REF_ADDR:
		return a->version == 2 ? a->address_size : a->offset_size;
	case SIZE_IMPLICIT:
		return 0;
	default:
		return size < SIZE_ADDRESS ? size : UINT32_MAX;
	}
}

static int read_specs(struct dwarf_abbreviations *a, struct dwarf_cursor *c,
		      struct dwarf_abbreviation *entry)
{
	while (!c->bad) {
		uint64_t name = dwarf_uleb(c), form = dwarf_uleb(c);
		struct dwarf_spec spec = { find_form(form), find_attribute(name), 0 };
		uint32_t size = fixed_size(a, spec.form.size);

		if (form == DW_FORM_implicit_const)
			spec.implicit = dwarf_sleb(c);
		if (!name && !form)
			return 0;
		if (array_reserve(&a->specs, &a->spec_room, a->spec_count + 1, sizeof(*a->specs)))
			return -ENOMEM;
		a->specs[a->spec_count++] = spec;
		entry->count++;
		entry->fixed = size == UINT32_MAX || entry->fixed == UINT32_MAX
				       ? UINT32_MAX
				       : entry->fixed + size;
	}
	return -EINVAL;
}

/* Returns 1, 0 at the end of the table, or a negative errno. */
static int read_abbreviation(struct dwarf_abbreviations *a, struct dwarf_cursor *c)
{
	struct dwarf_abbreviation entry = { .code = dwarf_uleb(c), .first = a->spec_count };
	int err;

	if (!entry.code)
		return c->bad ? -EINVAL : 0;
	entry.tag = dwarf_uleb(c);
	entry.children = dwarf_number(c, 1) == DW_CHILDREN_yes;
	err = read_specs(a, c, &entry);
	if (err)
		return err;
	if (a->count == ABBREVIATIONS_MAX)
		return -EINVAL;
	if (array_reserve(&a->entries, &a->room, a->count + 1, sizeof(*a->entries)))
		return -ENOMEM;
	a->entries[a->count++] = entry;
	return 1;
}

static int by_code(const void *x, const void *y)
{
	const struct dwarf_abbreviation *a = x, *b = y;

	return (a->code > b->code) - (a->code < b->code);
}

static int read_table(struct dwarf_file *file, struct dwarf_abbreviations *a)
{
	struct dwarf_section *section = &file->sections[DWARF_ABBREV];
	int more = -EINVAL;

	/* Only its end says how long the table is. */
	for (size_t want = 16 * 1024; want <= TABLE_MAX; want *= 32) {
		struct dwarf_cursor c = dwarf_section_cursor(section, a->offset, want);
		const uint8_t *start = c.at;

		a->count = a->spec_count = 0;
		do
			more = read_abbreviation(a, &c);
		while (more > 0);
		if (!dwarf_section_use(section, c.at - start))
			return -EINVAL;
		if (more != -EINVAL || !start || (size_t)(c.end - start) < want)
			break;
	}
	if (!more && a->count)
		qsort(a->entries, a->count, sizeof(*a->entries), by_code);
	return more;
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
		err = read_table(file, a);
		if (err) {
			free_abbreviations(a);
			file->abbreviations = NULL;
			return err;
		}
	}
	*found = a;
	return 0;
}

/* Compilers number abbreviations from 1 on. */
static const struct dwarf_abbreviation *find_code(const struct dwarf_abbreviations *a,
						  uint64_t code)
{
	struct dwarf_abbreviation key = { .code = code };

	if (code && code <= a->count && a->entries[code - 1].code == code)
		return &a->entries[code - 1];
	return a->count ? bsearch(&key, a->entries, a->count, sizeof(*a->entries), by_code) : NULL;
}

/* --- Entries --- */

static bool read_value(const struct dwarf_unit *unit, const struct dwarf_spec *spec,
		       struct dwarf_cursor *c, uint64_t position, struct dwarf_value *v);

static bool skip_block(struct dwarf_cursor *c, unsigned int size)
{
	uint64_t length = size == SIZE_BLOCK ? dwarf_uleb(c)
					     : dwarf_number(c, size == SIZE_BLOCK1   ? 1
							       : size == SIZE_BLOCK2 ? 2
										     : 4);

	dwarf_skip(c, length);
	return !c->bad;
}

static bool read_indirect(const struct dwarf_unit *unit, struct dwarf_cursor *c, uint64_t position,
			  struct dwarf_value *v)
{
	const uint8_t *start = c->at;
	struct dwarf_spec spec = { .form = find_form(dwarf_uleb(c)) };

	if (spec.form.size == SIZE_INDIRECT || spec.form.size == SIZE_IMPLICIT)
		return false;
	return read_value(unit, &spec, c, position + (c->at - start), v);
}

/* Makes a reference an offset in .debug_info, and sets the section of a string. */
static void relocate_value(const struct dwarf_unit *unit, const struct form *form,
			   struct dwarf_value *v)
{
	struct dwarf_file *file = unit->file, *other = file->alternate;

	if (v->class == CLASS_REFERENCE && form->code != DW_FORM_ref_addr)
		v->number += unit->offset;
	if (v->class != CLASS_STRING || form->code == DW_FORM_string)
		return;
	if (form->code == DW_FORM_GNU_strp_alt || form->code == DW_FORM_strp_sup)
		v->strings = other ? &other->sections[DWARF_STR] : NULL;
	else if (form->code == DW_FORM_line_strp)
		v->strings = &file->sections[DWARF_LINE_STR];
	else
		v->strings = &file->sections[DWARF_STR];
}

/* position: the cursor's offset in .debug_info. Returns false for invalid values. */
static bool read_value(const struct dwarf_unit *unit, const struct dwarf_spec *spec,
		       struct dwarf_cursor *c, uint64_t position, struct dwarf_value *v)
{
	const struct form *form = &spec->form;
	uint32_t size = form->size;

	*v = (struct dwarf_value){ .class = form->class };
	switch (size) {
	case SIZE_BLOCK1:
	case SIZE_BLOCK2:
	case SIZE_BLOCK4:
	case SIZE_BLOCK:
		return skip_block(c, size);
	case SIZE_STRING:
		v->number = position;
		v->strings = &unit->file->sections[DWARF_INFO];
		dwarf_skip_string(c);
		return !c->bad;
	case SIZE_INDIRECT:
		return read_indirect(unit, c, position, v);
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
		if (size >= SIZE_ADDRESS)
			size = size == SIZE_ADDRESS || (size == SIZE_REF_ADDR && unit->version == 2)
				       ? unit->address_size
				       : unit->offset_size;
		if (size > 8)
			dwarf_skip(c, size);
		else
			v->number = dwarf_number(c, size);
	}
	relocate_value(unit, form, v);
	return !c->bad;
}

static bool is_function(unsigned int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
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

static int read_values(const struct dwarf_unit *unit, const struct dwarf_abbreviations *a,
		       const struct dwarf_abbreviation *entry, struct dwarf_cursor *c,
		       struct dwarf_die *die)
{
	const uint8_t *start = c->at;
	uint64_t position = die->next;

	for (uint32_t i = 0; i < entry->count; i++) {
		const struct dwarf_spec *spec = &a->specs[entry->first + i];
		struct dwarf_value unused;
		bool wanted = spec->attribute < ATTR_COUNT;

		if (!read_value(unit, spec, c, position + (c->at - start),
				wanted ? &die->values[spec->attribute] : &unused))
			return -EINVAL;
		if (wanted)
			die->have |= 1u << spec->attribute;
	}
	return 0;
}

/* c: at the entry. Sets die->next to the end of its values. */
static int read_die(const struct dwarf_unit *unit, const struct dwarf_abbreviations *a,
		    struct dwarf_cursor *c, enum dwarf_wanted wanted, struct dwarf_die *die)
{
	const uint8_t *start = c->at;
	const struct dwarf_abbreviation *entry;
	uint64_t code = dwarf_uleb(c);
	int err = 0;

	die->tag = die->have = 0;
	die->children = false;
	die->next = die->offset + (c->at - start);
	if (!code)
		return c->bad ? -EINVAL : 0;
	entry = find_code(a, code);
	if (!entry || !entry->tag)
		return -EINVAL;
	die->tag = entry->tag;
	die->children = entry->children;
	if (wanted && entry->fixed != UINT32_MAX && !is_function(entry->tag) &&
	    !(entry->children && has_no_code(entry->tag, wanted)))
		dwarf_skip(c, entry->fixed);
	else
		err = read_values(unit, a, entry, c, die);
	die->next = die->offset + (c->at - start);
	return c->bad ? -EINVAL : err;
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
		struct dwarf_cursor c =
			dwarf_section_cursor(info, offset, want < left ? want : left);

		die->offset = offset;
		if (!c.at)
			return -EINVAL;
		err = read_die(unit, a, &c, wanted, die);
		if (err != -EINVAL || !c.bad || want >= left)
			break;
	}
	if (err || !dwarf_section_use(info, die->next - offset))
		return err ? err : -EINVAL;
	if (wanted && die->children && has_no_code(die->tag, wanted) &&
	    dwarf_has(die, ATTR_SIBLING) && die->values[ATTR_SIBLING].number > die->next) {
		die->next = die->values[ATTR_SIBLING].number;
		die->children = false;
	}
	return 0;
}

uint64_t dwarf_constant(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	if (!dwarf_has(die, attribute) || die->values[attribute].class != CLASS_CONSTANT)
		return 0;
	return die->values[attribute].number;
}
