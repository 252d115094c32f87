// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf_names.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "symbol/dwarf/dwarf_line.h"
#include "util/array.h"

/*
 * References followed: an entry refers to its abstract origin, and that to its declaration.
 * Bound: files: references from an entry to its name; then: the function has no name here.
 */
#define HOPS_MAX 8

/*
 * Namespaces and types around a function.
 * Bound: files: namespaces around a function, nested entries, and bytes of the name with them;
 * then: the name has fewer, or the unit has no lines; seen: as the name without them.
 */
#define SCOPES_MAX 32
#define DEPTH_MAX  1024
#define NAME_LIMIT ((size_t)64 * 1024)

/* The unit whose entries are being read. */
struct reading {
	struct dwarf_names *n;
	struct dwarf_unit unit; /* .file NULL: none */
	struct dwarf_lines lines;
	/* Bound: state. */
	bool lines_tried;
};

int dwarf_names_add(struct dwarf_names *n, struct dwarf_file *file, uint64_t entry, uint32_t *id)
{
	const struct dwarf_function f = {
		.where = file,
		.entry = entry,
		.at = entry,
		.at_file = file,
		.pending = true,
	};

	return table_add(&n->functions, &f, offsetof(struct dwarf_function, name), id);
}

void dwarf_names_forget(struct dwarf_names *n)
{
	index_free(&n->functions.index);
	n->functions.index = (struct index){ 0 };
}

void dwarf_names_free(struct dwarf_names *n)
{
	table_free(&n->functions);
	free(n->scopes);
	*n = (struct dwarf_names){ 0 };
}

/* Reads the unit around an entry. Returns 0, -EINVAL (no such unit) or -ENOMEM. */
static int enter_unit(struct reading *r, struct dwarf_file *file, uint64_t entry)
{
	uint64_t offset;
	int err;

	if (r->unit.file == file && entry >= r->unit.first && entry < r->unit.limit)
		return 0;
	dwarf_lines_close(&r->lines);
	r->lines_tried = false;
	err = dwarf_unit_of(file, entry, &offset);
	err = err ?: dwarf_unit_read(file, offset, &r->unit);
	if (err)
		r->unit.file = NULL;
	else
		dwarf_unit_load(&r->unit);
	return err;
}

/*
 * Reads the function's next entry, notes what it says, and goes on to the entry that says more: the
 * function is pending if there is one. Returns 0, also if the entry cannot be read, or -ENOMEM.
 */
static int read_entry(struct reading *r, struct dwarf_function *f)
{
	const struct dwarf_unit *unit = &r->unit;
	const struct dwarf_value *next;
	enum dwarf_attribute which;
	struct dwarf_die die;
	int err;

	f->pending = false;
	err = enter_unit(r, f->at_file, f->at);
	err = err ?: dwarf_die_read(unit, f->at, DWARF_ENTRY, &die);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (!f->linkage.section)
		f->linkage = dwarf_text_of(unit, &die, ATTR_LINKAGE_NAME);
	if (!f->plain.section)
		f->plain = dwarf_text_of(unit, &die, ATTR_NAME);
	if (!f->line)
		f->line = dwarf_constant(&die, ATTR_DECL_LINE);
	if (!f->file && dwarf_has(&die, ATTR_DECL_FILE)) {
		if (!r->lines_tried)
			err = dwarf_lines_open(&r->lines, unit->file->skeleton ?: unit, r->n->p);
		r->lines_tried = true;
		if (r->lines.unit)
			err = dwarf_lines_file(&r->lines, dwarf_constant(&die, ATTR_DECL_FILE),
					       &f->file);
		if (err == -ENOMEM)
			return err;
	}
	/* A name of C, or of assembly, is whole without the scopes around the function. */
	f->qualified = !f->linkage.section && unit->language != DW_LANG_C &&
		       unit->language != DW_LANG_C89 && unit->language != DW_LANG_C99 &&
		       unit->language != DW_LANG_C11 && unit->language != DW_LANG_Mips_Assembler;
	which = dwarf_has(&die, ATTR_ORIGIN) ? ATTR_ORIGIN : ATTR_SPECIFICATION;
	next = &die.values[which];
	if (!dwarf_has(&die, which) || (f->linkage.section && f->file && f->line))
		return 0;
	if (next->class == CLASS_ALTERNATE)
		f->at_file = f->at_file->alternate;
	else if (next->class != CLASS_REFERENCE)
		return 0;
	f->at = next->number;
	f->pending = f->at_file != NULL;
	return 0;
}

/* Whether the function's next entry is in the current unit, and that is in memory. */
static bool is_near(const struct reading *r, const struct dwarf_function *f)
{
	return r->unit.file == f->at_file && f->at >= r->unit.first && f->at < r->unit.limit &&
	       dwarf_unit_is_small(&r->unit);
}

static int by_place(const void *x, const void *y)
{
	const struct dwarf_function *const *a = x, *const *b = y;

	if ((*a)->at_file != (*b)->at_file)
		return (*a)->at_file < (*b)->at_file ? -1 : 1;
	return ((*a)->at > (*b)->at) - ((*a)->at < (*b)->at);
}

/* The functions [from, count) for which wanted() is true, sorted by their next entry. */
static size_t sort_functions(struct dwarf_names *n, size_t from,
			     bool (*wanted)(const struct dwarf_function *f),
			     struct dwarf_function **sorted)
{
	size_t count = 0;

	for (size_t i = from; i < n->functions.count; i++)
		if (wanted(&n->functions.all[i]))
			sorted[count++] = &n->functions.all[i];
	qsort(sorted, count, sizeof(*sorted), by_place);
	return count;
}

static bool is_pending(const struct dwarf_function *f)
{
	return !f->done && f->pending;
}

static bool is_qualified(const struct dwarf_function *f)
{
	return !f->done && f->qualified && f->at_file;
}

static bool is_scope(unsigned int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_class_type || tag == DW_TAG_union_type || tag == DW_TAG_module ||
	       tag == DW_TAG_enumeration_type || tag == DW_TAG_interface_type;
}

/* Walks from the unit down to the function's last entry, and notes the scopes on the way. */
static int find_scopes(struct reading *r, struct dwarf_function *f)
{
	struct dwarf_names *n = r->n;
	struct dwarf_text path[DEPTH_MAX];
	struct dwarf_die die;
	uint64_t at = r->unit.first;
	size_t depth = 0;

	for (; at < f->at; at = die.next) {
		int err = dwarf_die_read(&r->unit, at, DWARF_ENTRY, &die);

		if (err)
			return err;
		if (!die.tag) {
			if (!depth--)
				return -EINVAL;
			continue;
		}
		if (!die.children)
			continue;
		if (dwarf_has(&die, ATTR_SIBLING) && die.values[ATTR_SIBLING].number > die.next &&
		    die.values[ATTR_SIBLING].number <= f->at) {
			die.next = die.values[ATTR_SIBLING].number;
			continue;
		}
		if (depth == DEPTH_MAX)
			return -EINVAL;
		path[depth] = (struct dwarf_text){ 0 };
		if (is_scope(die.tag))
			path[depth] = dwarf_text_of(&r->unit, &die, ATTR_NAME);
		depth++;
	}
	if (array_reserve(&n->scopes, &n->scope_room, n->scope_count + SCOPES_MAX,
			  sizeof(*n->scopes)))
		return -ENOMEM;
	f->first_scope = n->scope_count;
	for (size_t i = 0; i < depth && f->scope_count < SCOPES_MAX; i++)
		if (path[i].section)
			n->scopes[f->first_scope + f->scope_count++] = path[i];
	n->scope_count += f->scope_count;
	return 0;
}

static int qualify(struct reading *r, struct dwarf_function *f)
{
	const struct dwarf_section *info = &f->at_file->sections[DWARF_INFO];
	int err;

	f->qualified = false;
	/* Scopes are optional: they must not use up the section's budget. */
	if (info->used / 4 > info->size + 16 * 1024 * 1024)
		return 0;
	err = enter_unit(r, f->at_file, f->at);
	err = err ?: find_scopes(r, f);
	return err == -ENOMEM ? err : 0;
}

/* A string to be read, and where to store it. */
struct wanted {
	struct dwarf_text text;
	const char **string;
};

static int by_text(const void *x, const void *y)
{
	const struct wanted *a = x, *b = y;

	if (a->text.section != b->text.section)
		return a->text.section < b->text.section ? -1 : 1;
	return (a->text.offset > b->text.offset) - (a->text.offset < b->text.offset);
}

/* "outer::inner::name", to be free()d */
static char *qualified_name(const char **scopes, size_t count, const char *name)
{
	size_t size = strlen(name) + 1;
	char *joined, *end;

	for (size_t i = 0; i < count; i++)
		size += scopes[i] ? strlen(scopes[i]) + 2 : 0;
	if (size > NAME_LIMIT)
		return strdup(name);
	joined = end = malloc(size);
	for (size_t i = 0; joined && i < count; i++)
		if (scopes[i])
			end = stpcpy(stpcpy(end, scopes[i]), "::");
	if (joined)
		strcpy(end, name);
	return joined;
}

static int name_function(struct dwarf_names *n, struct dwarf_function *f, const char **scopes)
{
	char *made;
	int err;

	if (f->linkage.section && f->system_name && *f->system_name) {
		made = demangle(f->system_name);
		err = profile_string(n->p, made ? made : f->system_name, &f->name);
		free(made);
		return err;
	}
	f->system_name = NULL;
	if (!f->name || !*f->name) {
		f->name = NULL;
		return 0;
	}
	made = qualified_name(scopes + f->first_scope, f->scope_count, f->name);
	err = made ? profile_string(n->p, made, &f->name) : -ENOMEM;
	f->system_name = f->name;
	free(made);
	return err;
}

/* Reads the strings of functions [from, count), in the order of the file, and sets their names. */
static int name_functions(struct dwarf_names *n, size_t from)
{
	size_t count = 0, room = n->functions.count - from + n->scope_count;
	struct wanted *wanted = calloc(room + 1, sizeof(*wanted));
	const char **scopes = calloc(n->scope_count + 1, sizeof(*scopes));
	int err = wanted && scopes ? 0 : -ENOMEM;

	for (size_t i = from; !err && i < n->functions.count; i++) {
		struct dwarf_function *f = &n->functions.all[i];

		if (f->done)
			continue;
		if (f->linkage.section)
			wanted[count++] = (struct wanted){ f->linkage, &f->system_name };
		else if (f->plain.section)
			wanted[count++] = (struct wanted){ f->plain, &f->name };
		for (size_t j = f->first_scope; j < f->first_scope + f->scope_count; j++)
			wanted[count++] = (struct wanted){ n->scopes[j], &scopes[j] };
	}
	if (!err)
		qsort(wanted, count, sizeof(*wanted), by_text);
	for (size_t i = 0; !err && i < count; i++) {
		const struct dwarf_text *text = &wanted[i].text;
		const char *string = dwarf_section_string(text->section, text->offset);

		if (string)
			err = profile_string(n->p, string, wanted[i].string);
	}
	for (size_t i = from; !err && i < n->functions.count; i++) {
		if (!n->functions.all[i].done)
			err = name_function(n, &n->functions.all[i], scopes);
		n->functions.all[i].done = true;
	}
	free(wanted);
	free(scopes);
	return err;
}

/* Reads a function's next entry, and those it refers to as far as they are near. */
static int visit_function(struct reading *r, struct dwarf_function *f)
{
	int err = read_entry(r, f);

	for (int hop = 1; !err && f->pending && hop < HOPS_MAX && is_near(r, f); hop++)
		err = read_entry(r, f);
	if (!err && is_qualified(f) && !f->pending && is_near(r, f))
		err = qualify(r, f);
	return err;
}

int dwarf_names_read(struct dwarf_names *n, const struct dwarf_unit *unit,
		     const struct dwarf_lines *lines, size_t from)
{
	struct reading r = { .n = n, .unit = *unit, .lines = *lines, .lines_tried = true };
	int err = 0;

	if (!dwarf_unit_is_small(unit))
		return 0;
	for (size_t i = from; !err && i < n->functions.count; i++)
		if (is_near(&r, &n->functions.all[i]))
			err = visit_function(&r, &n->functions.all[i]);
	return err;
}

int dwarf_names_resolve(struct dwarf_names *n, size_t from)
{
	struct dwarf_function **sorted = calloc(n->functions.count - from + 1, sizeof(*sorted));
	struct reading r = { .n = n };
	size_t count = 1;
	int err = sorted ? 0 : -ENOMEM;

	for (int hop = 0; !err && count && hop < HOPS_MAX; hop++) {
		count = sort_functions(n, from, is_pending, sorted);
		for (size_t i = 0; !err && i < count; i++)
			err = visit_function(&r, sorted[i]);
	}
	count = err ? 0 : sort_functions(n, from, is_qualified, sorted);
	for (size_t i = 0; !err && i < count; i++)
		err = qualify(&r, sorted[i]);
	dwarf_lines_close(&r.lines);
	free(sorted);
	return err ?: name_functions(n, from);
}
