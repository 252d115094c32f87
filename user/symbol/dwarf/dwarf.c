// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/profile.h"
#include "symbol/demangle.h"
#include "symbol/dwarf/dwarf_unit.h"
#include "util/array.h"
#include "util/memory.h"
#include "util/order.h"
#include "util/table.h"

/* --- Tables of lines --- */

/* A unit's line table in .debug_line: its files, and the program that generates the rows. */
struct dwarf_lines {
	const struct dwarf_unit *unit; /* NULL: not open */
	struct profile *p;	       /* owns the files' paths */

	/* private to dwarf_line.c */
	unsigned int version, offset_size;
	unsigned int instruction_size, line_range, opcode_base;
	int line_base;
	uint8_t operands[256]; /* of standard opcodes */
	uint64_t program, limit;
	struct dwarf_text *directories;
	size_t directory_count, directory_room;
	struct dwarf_source {
		struct dwarf_text name;
		uint64_t directory;
		const char *path; /* NULL: not read yet */
	} * sources;
	size_t source_count, source_room;
	bool moved; /* a name was read: up to DWARF 4 from the program's section */
};

struct dwarf_row {
	uint64_t address;
	uint64_t file;
	uint32_t line, column;
};

/* Called for a row, which covers [row->address, limit). Returns 0, or an error to end the run. */
typedef int dwarf_row_visit(void *context, const struct dwarf_row *row, uint64_t limit);

/* Bytes that are read at once, at most: an entry of the file table with its name */
#define AHEAD ((size_t)2 * PATH_MAX)
#define CHUNK ((size_t)32 * 1024)
/*
 * Bound: files: formats, directories and files of a line table; then: that part of the file has no
 * lines.
 */
#define FORMATS_MAX 16
#define FILES_MAX   4000000

/* Reads the table from front to back, a chunk at a time. */
struct stream {
	const struct dwarf_lines *t;
	struct dwarf_cursor c;
	const uint8_t *start;
	uint64_t from; /* offset of `start` in the section */
};

static uint64_t position(const struct stream *s)
{
	return s->from + (s->c.at - s->start);
}

static void seek(struct stream *s, uint64_t offset)
{
	uint64_t left = offset < s->t->limit ? s->t->limit - offset : 0;

	s->c = dwarf_section_cursor(&s->t->unit->file->sections[DWARF_LINE], offset,
				    left < CHUNK ? left : CHUNK);
	s->start = s->c.at;
	s->from = offset;
}

/* Reads the next chunk if less than AHEAD bytes are left. */
static void look_ahead(struct stream *s)
{
	if ((size_t)(s->c.end - s->c.at) < AHEAD && s->from + (s->c.end - s->start) < s->t->limit)
		seek(s, position(s));
}

static struct dwarf_text read_string(struct stream *s)
{
	struct dwarf_text text = { &s->t->unit->file->sections[DWARF_LINE], position(s) };

	dwarf_skip_string(&s->c);
	return text;
}

static int add_directory(struct dwarf_lines *t, struct dwarf_text name)
{
	if (t->directory_count == FILES_MAX)
		return -EINVAL;
	return array_add(t->directories, t->directory_count, t->directory_room, name);
}

static int add_source(struct dwarf_lines *t, struct dwarf_text name, uint64_t directory)
{
	if (t->source_count == FILES_MAX)
		return -EINVAL;
	return array_add(t->sources, t->source_count, t->source_room,
			 (struct dwarf_source){ name, directory, NULL });
}

/* Up to DWARF 4. Directories and files are numbered from 1; number 0 is the unit's own. */
static int read_old_tables(struct dwarf_lines *t, struct stream *s)
{
	int err = add_directory(t, t->unit->directory);

	err = err ?: add_source(t, t->unit->name, 0);
	for (look_ahead(s); !err && !s->c.bad && s->c.at < s->c.end && *s->c.at; look_ahead(s))
		err = add_directory(t, read_string(s));
	dwarf_skip(&s->c, 1);
	for (look_ahead(s); !err && !s->c.bad && s->c.at < s->c.end && *s->c.at; look_ahead(s)) {
		struct dwarf_text name = read_string(s);
		uint64_t directory = dwarf_uleb(&s->c);

		dwarf_uleb(&s->c); /* time, size */
		dwarf_uleb(&s->c);
		err = add_source(t, name, directory);
	}
	return err ?: s->c.bad ? -EINVAL : 0;
}

struct format {
	uint64_t content, form;
};

/* DWARF 5: tables define the format of their entries. files: the file table, else directories. */
static int read_table(struct dwarf_lines *t, struct stream *s, bool files)
{
	struct dwarf_section *section = &t->unit->file->sections[DWARF_LINE];
	struct dwarf_unit unit = *t->unit;
	struct format formats[FORMATS_MAX];
	uint64_t count, format_count = dwarf_number(&s->c, 1);
	int err = 0;

	unit.offset_size = t->offset_size;
	if (format_count > FORMATS_MAX)
		return -EINVAL;
	for (uint64_t i = 0; i < format_count; i++) {
		formats[i].content = dwarf_uleb(&s->c);
		formats[i].form = dwarf_uleb(&s->c);
	}
	count = dwarf_uleb(&s->c);
	if (!format_count && count)
		return -EINVAL;
	for (uint64_t i = 0; !err && i < count; i++) {
		struct dwarf_text name = { 0 };
		uint64_t directory = 0;

		look_ahead(s);
		for (uint64_t j = 0; j < format_count && !s->c.bad; j++) {
			struct dwarf_value v;

			if (!dwarf_read_value(&unit, formats[j].form, &s->c, position(s), &v))
				return -EINVAL;
			if (formats[j].content == DW_LNCT_directory_index)
				directory = v.number;
			if (formats[j].content != DW_LNCT_path)
				continue;
			if (formats[j].form == DW_FORM_string) /* it is in this section */
				v.strings = section;
			name = dwarf_text(t->unit, &v);
		}
		if (s->c.bad)
			return -EINVAL;
		err = files ? add_source(t, name, directory) : add_directory(t, name);
	}
	look_ahead(s);
	return err;
}

static void dwarf_lines_close(struct dwarf_lines *t)
{
	free(t->directories);
	free(t->sources);
	*t = (struct dwarf_lines){ 0 };
}

/*
 * Reads the header of a unit's line table. The caller keeps unit while the table is open. Returns
 * 0, or -EINVAL (no table, or corrupt) or -ENOMEM, and then the table is closed.
 */
static int dwarf_lines_open(struct dwarf_lines *t, const struct dwarf_unit *unit, struct profile *p)
{
	struct dwarf_section *section = &unit->file->sections[DWARF_LINE];
	struct stream s = { .t = t };
	uint64_t length, header;
	int err;

	*t = (struct dwarf_lines){ .unit = unit, .p = p };
	if (!unit->has_lines)
		return -EINVAL;
	t->limit = section->size;
	seek(&s, unit->lines + unit->file->part[DWARF_LINE]);
	length = dwarf_length(&s.c, &t->offset_size);
	if (s.c.bad || length > t->limit - position(&s))
		return -EINVAL;
	t->limit = position(&s) + length;
	t->version = dwarf_number(&s.c, 2);
	if (t->version == 5)
		dwarf_skip(&s.c, 2); /* sizes of addresses and of segments */
	header = dwarf_number(&s.c, t->offset_size);
	if (t->version < 2 || t->version > 5 || header > t->limit - position(&s)) {
		err = -EINVAL;
		goto out;
	}
	t->program = position(&s) + header;
	t->instruction_size = dwarf_number(&s.c, 1);
	if (t->version >= 4)
		dwarf_skip(&s.c, 1); /* operations in a VLIW instruction */
	dwarf_skip(&s.c, 1);	     /* is_stmt's default */
	t->line_base = (int8_t)dwarf_number(&s.c, 1);
	t->line_range = dwarf_number(&s.c, 1);
	t->opcode_base = dwarf_number(&s.c, 1);
	for (unsigned int i = 1; i < t->opcode_base; i++)
		t->operands[i] = dwarf_number(&s.c, 1);
	if (s.c.bad || !t->line_range || !t->opcode_base) {
		err = -EINVAL;
	} else if (t->version < 5) {
		err = read_old_tables(t, &s);
	} else {
		err = read_table(t, &s, false) ?: read_table(t, &s, true);
	}
out:
	if (!dwarf_section_use(section, position(&s) - unit->lines))
		err = -EINVAL;
	if (err)
		dwarf_lines_close(t);
	return err;
}

/* Appends a path to a path. Returns false if it is missing, empty or too long. */
static bool append(char *path, size_t size, const struct dwarf_text *text)
{
	const char *string =
		text->section ? dwarf_section_string(text->section, text->offset) : NULL;
	size_t length = strlen(path);

	if (!string || !*string || strlen(string) >= size - length - 1)
		return false;
	/* Reproducible builds and Go have "." for the directory of the unit. */
	if (*string == '/' || strcmp(path, ".") == 0)
		length = 0;
	else if (length && path[length - 1] != '/')
		path[length++] = '/';
	strcpy(path + length, string);
	return true;
}

/* Sets *path to the path of a file, owned by p; NULL: unknown. Returns 0 or -ENOMEM. */
static int dwarf_lines_file(struct dwarf_lines *t, uint64_t number, const char **path)
{
	char whole[4 * PATH_MAX] = "";
	struct dwarf_source *source;
	int err;

	*path = NULL;
	if (number >= t->source_count)
		return 0;
	source = &t->sources[number];
	if (!source->path) {
		t->moved = true;
		append(whole, sizeof(whole), &t->unit->directory);
		if (source->directory < t->directory_count && source->directory)
			append(whole, sizeof(whole), &t->directories[source->directory]);
		if (!append(whole, sizeof(whole), &source->name))
			*whole = '\0';
		err = profile_string(t->p, whole, &source->path);
		if (err)
			return err;
	}
	if (*source->path)
		*path = source->path;
	return 0;
}

struct machine {
	struct dwarf_lines *t;
	struct dwarf_row row, last;
	bool has_last; /* in this sequence */
	/* Bound: state. */
	bool dropped; /* by the linker: the sequence's code is not in the file */
	dwarf_row_visit *visit;
	void *context;
};

static void reset(struct machine *m)
{
	m->row = (struct dwarf_row){ .file = 1, .line = 1 };
	m->has_last = false;
}

static int emit_row(struct machine *m)
{
	int err = 0;

	if (!m->has_last)
		m->dropped = m->row.address < m->t->unit->file->code_start;
	if (m->has_last && !m->dropped && m->last.address < m->row.address)
		err = m->visit(m->context, &m->last, m->row.address);
	m->last = m->row;
	m->has_last = true;
	return err;
}

static void advance(struct machine *m, uint64_t operations)
{
	m->row.address += operations * m->t->instruction_size;
}

static int run_extended(struct machine *m, struct stream *s)
{
	uint64_t length = dwarf_uleb(&s->c);
	const uint8_t *start = s->c.at;
	int err = 0;

	if (!length || length > (uint64_t)(s->c.end - s->c.at))
		return -EINVAL;
	switch (dwarf_number(&s->c, 1)) {
	case DW_LNE_end_sequence:
		err = emit_row(m);
		reset(m);
		break;
	case DW_LNE_set_address:
		m->row.address = length <= 9 ? dwarf_number(&s->c, length - 1) : 0;
		break;
	}
	s->c.at = start + length;
	return err;
}

static int run_standard(struct machine *m, unsigned int opcode, struct dwarf_cursor *c)
{
	switch (opcode) {
	case DW_LNS_copy:
		return emit_row(m);
	case DW_LNS_advance_pc:
		advance(m, dwarf_uleb(c));
		break;
	case DW_LNS_advance_line:
		m->row.line += dwarf_sleb(c);
		break;
	case DW_LNS_set_file:
		m->row.file = dwarf_uleb(c);
		break;
	case DW_LNS_set_column:
		m->row.column = dwarf_uleb(c);
		break;
	case DW_LNS_const_add_pc:
		advance(m, (255 - m->t->opcode_base) / m->t->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->row.address += dwarf_number(c, 2);
		break;
	default:
		for (unsigned int i = 0; i < m->t->operands[opcode]; i++)
			dwarf_uleb(c);
	}
	return 0;
}

/* Calls visit() for all rows. Returns 0, -EINVAL if the program is corrupt, or visit()'s error. */
static int dwarf_lines_run(struct dwarf_lines *t, dwarf_row_visit *visit, void *context)
{
	struct machine m = { .t = t, .visit = visit, .context = context };
	struct stream s = { .t = t };
	int err = 0;

	if (!dwarf_section_use(&t->unit->file->sections[DWARF_LINE], t->limit - t->program))
		return -EINVAL;
	reset(&m);
	seek(&s, t->program);
	for (look_ahead(&s); !err && !s.c.bad && s.c.at < s.c.end; look_ahead(&s)) {
		unsigned int opcode = *s.c.at++, special = opcode - t->opcode_base;

		t->moved = false;
		if (opcode >= t->opcode_base) {
			advance(&m, special / t->line_range);
			m.row.line += t->line_base + (int)(special % t->line_range);
			err = emit_row(&m);
		} else if (opcode) {
			err = run_standard(&m, opcode, &s.c);
		} else {
			err = run_extended(&m, &s);
		}
		if (t->moved)
			seek(&s, position(&s));
	}
	return err ?: s.c.bad && position(&s) < t->limit ? -EINVAL : 0;
}

/* --- Names --- */

/*
 * Names, files and lines of functions, given their entries in .debug_info. Functions are added
 * first, then read together in the order of each section: an entry may refer to any other, and a
 * compressed section is best read once.
 *
 * They are read in two passes. dwarf_names_read() reads what is in the current unit, which is most,
 * while that is in memory. dwarf_names_resolve() reads the rest, in other units, and all strings,
 * in the order of the file, so that each section is read once.
 */
struct dwarf_function {
	/* the key: */
	struct dwarf_file *where;
	uint64_t entry;

	const char *name;	 /* as shown; NULL: unknown */
	const char *system_name; /* the linkage name; without one, as above */
	const char *file;	 /* NULL: unknown */
	uint32_t line;		 /* 0: unknown */

	uint64_t at; /* the entry to be read next */
	struct dwarf_file *at_file;
	bool pending, done;
	bool qualified; /* needs its scopes in the name, for lack of a linkage name */
	struct dwarf_text plain, linkage;
	uint32_t first_scope, scope_count;
};

struct dwarf_names {
	struct profile *p;
	TABLE(struct dwarf_function) functions;
	struct dwarf_text *scopes; /* names of namespaces and types, outermost first */
	size_t scope_count, scope_room;
};

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

/* Adds the function of an entry, unless it is known; sets its number. Returns 0 or -ENOMEM. */
static int dwarf_names_add(struct dwarf_names *n, struct dwarf_file *file, uint64_t entry,
			   uint32_t *id)
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

/* Forgets the entries of functions, but not the functions: call it before closing their file. */
static void dwarf_names_forget(struct dwarf_names *n)
{
	index_free(&n->functions.index);
	n->functions.index = (struct index){ 0 };
}

static void dwarf_names_free(struct dwarf_names *n)
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

ORDER(by_place, struct dwarf_function *const,
      COMPARE((*a)->at_file, (*b)->at_file) ?: COMPARE((*a)->at, (*b)->at))

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

ORDER(by_text, struct wanted, LEAST(text.section) ?: LEAST(text.offset))

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

/*
 * Reads what a unit, if it is small, says about functions [from, count). lines: its line table,
 * open or not. Returns 0 or -ENOMEM.
 */
static int dwarf_names_read(struct dwarf_names *n, const struct dwarf_unit *unit,
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

/*
 * Reads the rest of functions [from, count), whose files must still be open. What cannot be read
 * stays unknown. Returns 0 or -ENOMEM.
 */
static int dwarf_names_resolve(struct dwarf_names *n, size_t from)
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

/* --- Ranges --- */

/* Called for a range of code; start < limit. Returns 0, or an error that ends the reading. */
typedef int dwarf_range(void *context, uint64_t start, uint64_t limit);

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
static bool read_range(struct list *l, struct dwarf_cursor *c, uint64_t *start, uint64_t *limit,
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
						: read_range(l, &c, &start, &limit, &end);
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

/*
 * Calls visit() for each range of an entry's code. Returns 0, -EINVAL if the ranges are corrupt, or
 * visit()'s error.
 */
static int dwarf_ranges(const struct dwarf_unit *unit, const struct dwarf_code *code,
			dwarf_range *visit, void *context)
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

/* The same for each range in .debug_aranges, after it has set *unit to its unit's offset. */
static int dwarf_unit_ranges(struct dwarf_file *file, uint64_t *unit, dwarf_range *visit,
			     void *context)
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

/* --- Split DWARF --- */

/* Debug information in further files. */

/* .gnu_debugaltlink: a name, a '\0', and a build ID. */
struct link {
	const char *name;
	const uint8_t *build_id;
	size_t build_id_size;
};

/* of: the file with the link */
static bool open_link(const struct link *link, const struct elf_source *of, int root,
		      const char *path, struct elf_file *elf)
{
	int fd = elf_open_companion(of->fd, root, path);
	struct error ignored;

	if (fd < 0 || elf_object_open(elf, fd, of->budget, &ignored))
		return false;
	if (elf_has_build_id(elf, link->build_id, link->build_id_size))
		return true;
	elf_file_close(elf);
	return false;
}

/*
 * Opens file->alternate: the file to which dwz(1) has moved what several files have in common. It
 * is found by build ID under /usr/lib/debug, else by the name in .gnu_debugaltlink, and must have
 * the build ID there. root: as for debug_file_find(). Returns 0, also if the file has no link,
 * -ENOENT (not found), or an error of dwarf_section_open().
 */
static int dwarf_open_alternate(struct dwarf_file *file, int root)
{
	const struct elf_source *source = &file->elf.source;
	char self[32], from[PATH_MAX], path[2 * PATH_MAX + 2];
	struct elf_file elf;
	size_t size, length;
	char *bytes = elf_section_bytes(&file->elf, ".gnu_debugaltlink",
					PATH_MAX + PROFILE_BUILD_ID_MAX, &size);
	struct link link = { .name = bytes };
	bool found;
	ssize_t n;

	length = bytes ? strnlen(bytes, size) : 0;
	if (!length || length >= PATH_MAX || size < length + 3 ||
	    size - length - 1 > PROFILE_BUILD_ID_MAX) {
		free(bytes);
		return 0;
	}
	link.build_id = (const uint8_t *)bytes + length + 1;
	link.build_id_size = size - length - 1;
	found = elf_debug_path(link.build_id, link.build_id_size, path) &&
		open_link(&link, source, root, path, &elf);
	if (!found && link.name[0] == '/') {
		found = open_link(&link, source, root, link.name, &elf);
	} else if (!found && root < 0) {
		/* A relative name is relative to the directory of the file with the link. */
		snprintf(self, sizeof(self), "/proc/self/fd/%d", source->fd);
		n = readlink(self, from, sizeof(from) - 1);
		if (n > 0) {
			from[n] = '\0';
			snprintf(path, sizeof(path), "%s/%s", dirname(from), link.name);
			found = open_link(&link, source, root, path, &elf);
		}
	}
	free(bytes);
	if (!found)
		return -ENOENT;
	file->alternate = calloc(1, sizeof(*file->alternate));
	if (!file->alternate) {
		elf_file_close(&elf);
		return -ENOMEM;
	}
	file->alternate->elf = elf;
	file->alternate->owned = true;
	file->alternate->room = file->room;
	return dwarf_file_open(file->alternate);
}

/* The sections of an index's columns, by their numbers, where it is another one than DWARF_INFO. */
static const enum dwarf_section_kind columns[] = {
	[3] = DWARF_ABBREV,
	[4] = DWARF_LINE,
	[6] = DWARF_STR_OFFSETS,
	[8] = DWARF_RNGLISTS, /* in version 5; version 2 is GNU's, for DWARF 4 */
};

/* The index of a .dwp file, which is many .dwo files in one, by their IDs. */
struct package_index {
	struct dwarf_section section;
	uint64_t version, columns, units, slots;
};

/* The row of a unit, from 1 on; 0: not found. */
static uint64_t find_row(struct package_index *x, uint64_t id)
{
	uint64_t mask = x->slots - 1, slot = id & mask, step = ((id >> 32) & mask) | 1;

	for (uint64_t tried = 0; tried < x->slots && tried < 65536; tried++) {
		uint64_t found, row;

		if (!dwarf_section_number(&x->section, 16 + 8 * slot, 8, &found) ||
		    !dwarf_section_number(&x->section, 16 + 8 * x->slots + 4 * slot, 4, &row) ||
		    !row)
			return 0;
		if (found == id)
			return row <= x->units ? row : 0;
		slot = (slot + step) & mask;
	}
	return 0;
}

/* Sets file->part. Returns whether the package has the unit. */
static bool find_parts(struct dwarf_file *file, uint64_t id)
{
	struct package_index x;
	uint64_t row = 0;
	bool found;

	if (dwarf_section_open(&x.section, &file->elf, ".debug_cu_index", file->room))
		return false;
	if (dwarf_section_number(&x.section, 0, 4, &x.version) &&
	    dwarf_section_number(&x.section, 4, 4, &x.columns) &&
	    dwarf_section_number(&x.section, 8, 4, &x.units) &&
	    dwarf_section_number(&x.section, 12, 4, &x.slots)) {
		/* In DWARF 5 the version has two bytes, and two bytes of padding follow. */
		if (x.version != 2)
			x.version = x.section.big_endian ? x.version >> 16 : x.version & 0xffff;
		if ((x.version == 2 || x.version == 5) && x.slots && !(x.slots & (x.slots - 1)) &&
		    x.columns <= 16)
			row = find_row(&x, id);
	}
	found = row > 0;
	for (uint64_t i = 0; found && i < x.columns; i++) {
		uint64_t table = 16 + 12 * x.slots, number, offset;
		found = dwarf_section_number(&x.section, table + 4 * i, 4, &number) &&
			dwarf_section_number(&x.section, table + 4 * (row * x.columns + i), 4,
					     &offset);
		if (found && number < sizeof(columns) / sizeof(*columns) &&
		    (number == 1 || columns[number]) && (number != 8 || x.version == 5))
			file->part[columns[number]] = offset;
	}
	dwarf_section_close(&x.section);
	return found;
}

/*
 * Opens a .dwo file, or a package of them, and reads the skeleton's unit in it. Returns 0, or
 * closes the file and returns -ENOENT or an error of dwarf_section_open().
 */
static int open_split_file(const struct dwarf_unit *skeleton, int root, const char *path,
			   bool package, struct dwarf_file *file, struct dwarf_unit *unit)
{
	const struct elf_source *source = &skeleton->file->elf.source;
	int fd = elf_open_companion(source->fd, root, path), err;
	struct error ignored;

	*file = (struct dwarf_file){ .split = true, .owned = true, .room = skeleton->file->room };
	if (fd < 0 || elf_object_open(&file->elf, fd, source->budget, &ignored)) {
		*file = (struct dwarf_file){ 0 };
		return -ENOENT;
	}
	file->skeleton = skeleton;
	err = dwarf_file_open(file);
	if (!err && package && !find_parts(file, skeleton->id))
		err = -ENOENT;
	if (!err) {
		err = dwarf_unit_read(file, file->part[DWARF_INFO], unit);
		if (err != -ENOMEM && (err || unit->id != skeleton->id))
			err = -ENOENT;
	}
	if (err)
		dwarf_file_close(file);
	return err;
}

static bool copy_text(const struct dwarf_text *text, char *copy, size_t size)
{
	const char *string =
		text->section ? dwarf_section_string(text->section, text->offset) : NULL;

	if (!string || strlen(string) >= size)
		return false;
	strcpy(copy, string);
	return true;
}

/*
 * Opens the split unit of a skeleton unit: in IMAGE.dwp, else in the .dwo file that the skeleton
 * names, else in a file of that name next to the image. It must have the same ID. image: its path;
 * root: as above. Returns 0, and the caller closes *file; or -ENOENT (not found), or an error of
 * dwarf_section_open().
 */
static int dwarf_open_split(const struct dwarf_unit *skeleton, int root, const char *image,
			    struct dwarf_file *file, struct dwarf_unit *unit)
{
	char name[PATH_MAX], directory[PATH_MAX], beside[PATH_MAX], path[2 * PATH_MAX + 2];
	int err;

	snprintf(path, sizeof(path), "%s.dwp", image);
	err = open_split_file(skeleton, root, path, true, file, unit);
	if (err != -ENOENT)
		return err;
	if (!copy_text(&skeleton->dwo_name, name, sizeof(name)) || strlen(image) >= sizeof(beside))
		return -ENOENT;
	if (*name == '/' || !copy_text(&skeleton->directory, directory, sizeof(directory)))
		strcpy(path, name);
	else
		snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (*path == '/')
		err = open_split_file(skeleton, root, path, false, file, unit);
	if (err != -ENOENT)
		return err;
	strcpy(beside, image);
	snprintf(path, sizeof(path), "%s/%s", dirname(beside), basename(name));
	return open_split_file(skeleton, root, path, false, file, unit);
}

/* --- Lines of addresses --- */

/*
 * Bound: files: frames of all addresses; then: that part of the file has no lines.
 */
#define FRAMES_MAX ((size_t)4 * 1024 * 1024)
#define NONE	   UINT32_MAX

/*
 * An address is in one function, the functions inlined there, and one row. In a malicious file it
 * may be in every range: the visits of addresses by ranges are limited to VISITS_MAX per address on
 * average, and VISITS_LEAST more.
 * Bound: files: visits of addresses by ranges, for each address; then: that part of the file has no
 * lines.
 */
#define VISITS_MAX   1000
#define VISITS_LEAST ((uint64_t)10 * 1000 * 1000)

/*
 * Compressed sections are kept whole in 1/SHARE of the available memory, which is enough for all
 * but the largest debug files and leaves memory to other processes; but at least in ROOM_LEAST
 * bytes, which is enough for most programs.
 * Bound: as ROOM_LEAST.
 */
#define SHARE 8
/*
 * Bound: files: bytes of compressed sections that are kept whole, at least; else a part of the free
 * memory; then: they are decompressed in parts, again and again; with zstd not at all.
 */
#define ROOM_LEAST ((uint64_t)16 * 1024 * 1024)

/* Entries read between two calls of batch_stopped() */
#define ASK_STOP 65536

/* A function at an address: the function around it, or one inlined there. */
struct frame {
	uint64_t entry;
	uint32_t outer; /* the frame around it, or NONE */
	uint32_t function;
	uint64_t call_file;    /* number in the unit's file table */
	const char *call_path; /* that file's path */
	uint32_t call_line, call_column;
	bool inlined;
};

/* What DWARF says about an address. */
struct place {
	uint64_t unit;	/* offset of its unit; UINT64_MAX: unknown */
	uint32_t inner; /* its innermost frame, or NONE */
	bool has_row;
	uint32_t line, column;
	const char *file;
};

struct work {
	struct batch *b;
	struct dwarf_file file;
	int root;
	const char *image;
	struct place *places; /* by address of the batch */
	uint64_t unit;	      /* offset of the one whose ranges are read */
	struct frame *frames;
	size_t frame_count, frame_room;
	struct dwarf_names names;
	uint64_t visits; /* of addresses by ranges */
	uint64_t room;	 /* left for keeping compressed sections whole */

	/* To be warned of */
	bool corrupt;
	bool no_zstd;	   /* a section is compressed with zstd; libzstd is missing */
	bool too_large;	   /* a section compressed with zstd exceeds `room` */
	bool no_alternate; /* dwz(1)'s file is missing */
	size_t missing;	   /* number of missing .dwo files */
};

/* Notes an unreadable part of the file, which is skipped. Returns 0; other errors unchanged. */
static int skip_unreadable(struct work *w, int err)
{
	w->corrupt |= err == -EINVAL;
	w->no_zstd |= err == -ENOTSUP;
	w->too_large |= err == -EFBIG;
	return err == -EINVAL || err == -ENOTSUP || err == -EFBIG ? 0 : err;
}

/* Counts a visit of an address by a range. Returns 0, or -EINVAL above the limit. */
static int count_visit(struct work *w)
{
	return w->visits++ / VISITS_MAX > w->b->count + VISITS_LEAST / VISITS_MAX ? -EINVAL : 0;
}

/* The addresses in the range are w->unit's, unless they are another's. */
static int claim(void *context, uint64_t start, uint64_t limit)
{
	struct work *w = context;

	if (start < w->file.code_start)
		return 0;
	for (size_t i = batch_lower_bound(w->b->addresses, 0, w->b->count, start); i < w->b->count;
	     i++) {
		if (w->b->addresses[i].address >= limit)
			break;
		if (count_visit(w))
			return -EINVAL;
		if (w->places[i].unit == UINT64_MAX)
			w->places[i].unit = w->unit;
	}
	return 0;
}

static int claim_unit(void *context, const struct dwarf_unit *unit)
{
	struct work *w = context;

	if (batch_stopped(w->b))
		return -ECANCELED;
	w->unit = unit->offset;
	return dwarf_ranges(unit, &unit->code, claim, w);
}

/* Finds the units by .debug_aranges; if they miss an address, by the units themselves. */
static int find_units(struct work *w)
{
	struct elf_range plt[8]; /* no unit has it */
	size_t count = elf_plt_ranges(w->file.elf.elf, plt, sizeof(plt) / sizeof(*plt));
	int err = skip_unreadable(w, dwarf_unit_ranges(&w->file, &w->unit, claim, w));

	for (size_t i = 0; !err && i < w->b->count; i++) {
		uint64_t address = w->b->addresses[i].address;
		bool found = w->places[i].unit != UINT64_MAX;

		for (size_t j = 0; !found && j < count; j++)
			found = address >= plt[j].start && address < plt[j].limit;
		if (!found)
			return dwarf_find_units(&w->file, claim_unit, w);
	}
	return err;
}

struct scan {
	struct work *w;
	const struct dwarf_unit *unit;
	struct dwarf_die die;
	uint64_t around; /* entry of the function around this one; UINT64_MAX: none */
	size_t depth;
	uint64_t arounds[DEPTH_MAX];
	bool covers; /* the function covers an address */
};

/* Adds the current function as the innermost one of an address. */
static int add_frame(struct scan *s, struct place *place)
{
	struct work *w = s->w;
	const struct dwarf_value *origin = &s->die.values[ATTR_ORIGIN];
	struct dwarf_file *file = s->unit->file;
	uint64_t entry = s->die.offset; /* that has the name */
	struct frame frame = {
		.entry = s->die.offset,
		.outer = NONE,
		.inlined = s->die.tag == DW_TAG_inlined_subroutine,
		.call_file = dwarf_constant(&s->die, ATTR_CALL_FILE),
		.call_line = dwarf_constant(&s->die, ATTR_CALL_LINE),
		.call_column = dwarf_constant(&s->die, ATTR_CALL_COLUMN),
	};

	if (w->frame_count == FRAMES_MAX)
		return -EINVAL;
	if (frame.inlined) {
		frame.outer = place->inner;
		if (dwarf_has(&s->die, ATTR_ORIGIN) &&
		    (origin->class == CLASS_REFERENCE ||
		     (origin->class == CLASS_ALTERNATE && file->alternate))) {
			file = origin->class == CLASS_ALTERNATE ? file->alternate : file;
			entry = origin->number;
		}
	}
	if (dwarf_names_add(&w->names, file, entry, &frame.function))
		return -ENOMEM;
	place->inner = w->frame_count;
	return array_add(w->frames, w->frame_count, w->frame_room, frame);
}

/*
 * The current function becomes the innermost one of each address in a range of its own: if it is
 * nested in, or inlined into, the innermost function so far. Of functions that overlap otherwise,
 * which only corrupt files have, the first counts. A function is not nested in itself, so its own
 * ranges may overlap.
 */
static int cover_range(void *context, uint64_t start, uint64_t limit)
{
	struct scan *s = context;
	struct batch *b = s->w->b;
	bool is_outermost = s->die.tag == DW_TAG_subprogram;
	int err = 0;

	if (start < s->w->file.code_start)
		return 0;
	for (size_t i = batch_lower_bound(b->addresses, 0, b->count, start); !err && i < b->count;
	     i++) {
		struct place *place = &s->w->places[i];

		if (b->addresses[i].address >= limit)
			break;
		s->covers = true;
		err = count_visit(s->w);
		if (!err && (place->inner == NONE ? is_outermost
						  : s->w->frames[place->inner].entry == s->around))
			err = add_frame(s, place);
	}
	return err;
}

/* Handles the entry just read, and tracks the depth. *end becomes true at the end of the unit. */
static int visit_entry(struct scan *s, bool *end)
{
	struct dwarf_die *die = &s->die;
	bool is_function = dwarf_is_function(die->tag);

	if (is_function) {
		const struct dwarf_code code = dwarf_code(die);
		int err;

		s->covers = false;
		err = dwarf_ranges(s->unit, &code, cover_range, s);
		if (err)
			return err;
		/* Code inlined into this code is within its ranges. */
		if (!s->covers && die->tag == DW_TAG_inlined_subroutine)
			dwarf_skip_children(die);
	}
	if (!die->tag) {
		*end = s->depth <= 1;
		if (s->depth)
			s->around = s->arounds[--s->depth];
	} else if (die->children) {
		if (s->depth == DEPTH_MAX)
			return -EINVAL;
		s->arounds[s->depth++] = s->around;
		if (is_function)
			s->around = die->offset;
	}
	*end |= !s->depth || die->next >= s->unit->limit;
	return 0;
}

static int scan_entries(struct work *w, const struct dwarf_unit *unit)
{
	struct scan s = { .w = w, .unit = unit, .around = UINT64_MAX };
	uint64_t at = unit->first;
	enum dwarf_wanted wanted;
	bool end = false;
	int err = 0;

	for (size_t n = 1; !err && !end; n++, at = s.die.next) {
		if (n % ASK_STOP == 0 && batch_stopped(w->b))
			err = -ECANCELED;
		wanted = s.around == UINT64_MAX ? DWARF_CODE : DWARF_CODE_OF_FUNCTION;
		err = err ?: dwarf_die_read(unit, at, wanted, &s.die);
		err = err ?: visit_entry(&s, &end);
	}
	return err;
}

struct rows {
	struct work *w;
	struct dwarf_lines table;
	size_t next; /* the first address at or after `from` */
	uint64_t from;
};

static int place_row(void *context, const struct dwarf_row *row, uint64_t limit)
{
	struct rows *r = context;
	struct batch *b = r->w->b;
	int err = 0;

	/* Rows are mostly in order: continues where the last search ended. */
	if (row->address < r->from ||
	    (r->next < b->count && b->addresses[r->next].address < row->address))
		r->next = batch_lower_bound(b->addresses, 0, b->count, row->address);
	for (; !err && r->next < b->count && b->addresses[r->next].address < limit; r->next++) {
		struct place *place = &r->w->places[r->next];

		err = count_visit(r->w);
		if (err || place->has_row)
			continue;
		place->has_row = true;
		place->line = row->line;
		place->column = row->column;
		err = dwarf_lines_file(&r->table, row->file, &place->file);
	}
	r->from = limit;
	return err;
}

/*
 * Scans the entries of a split unit, which are in another file. That file is closed at once: a
 * program may have ten thousand of them.
 */
static int scan_split(struct work *w, const struct dwarf_unit *skeleton)
{
	size_t first = w->names.functions.count;
	struct dwarf_file *file = calloc(1, sizeof(*file));
	struct dwarf_unit unit;
	int err;

	if (!file)
		return -ENOMEM;
	err = dwarf_open_split(skeleton, w->root, w->image, file, &unit);
	if (!err) {
		err = dwarf_note_unit(&unit);
		err = err ?: skip_unreadable(w, scan_entries(w, &unit));
		err = err ?: dwarf_names_resolve(&w->names, first);
		dwarf_names_forget(&w->names);
		dwarf_file_close(file);
	}
	free(file);
	w->missing += err == -ENOENT;
	return err == -ENOENT ? 0 : skip_unreadable(w, err);
}

/* Reads a unit's functions, those of their names that are in this unit, and its lines. */
static int scan_unit(struct work *w, uint64_t offset)
{
	size_t first_frame = w->frame_count, first_name = w->names.functions.count;
	struct rows r = { .w = w };
	struct dwarf_unit unit;
	int err = dwarf_unit_read(&w->file, offset, &unit);

	if (err)
		return skip_unreadable(w, err);
	dwarf_unit_load(&unit);
	err = dwarf_note_unit(&unit);
	if (!err && unit.has_lines)
		err = skip_unreadable(w, dwarf_lines_open(&r.table, &unit, w->b->p));
	if (!err && unit.dwo_name.section)
		err = scan_split(w, &unit);
	else if (!err)
		err = skip_unreadable(w, scan_entries(w, &unit))
			      ?: dwarf_names_read(&w->names, &unit, &r.table, first_name);
	for (size_t i = first_frame; !err && i < w->frame_count; i++)
		if (w->frames[i].inlined)
			err = dwarf_lines_file(&r.table, w->frames[i].call_file,
					       &w->frames[i].call_path);
	if (!err && r.table.program)
		err = skip_unreadable(w, dwarf_lines_run(&r.table, place_row, &r));
	dwarf_lines_close(&r.table);
	return err;
}

ORDER(by_offset, uint64_t, COMPARE(*a, *b))

/* Scans each unit that has an address once, in the order of the file. */
static int scan_units(struct work *w)
{
	uint64_t *units = calloc(w->b->count + 1, sizeof(*units));
	size_t count = 0;
	int err = 0;

	if (!units)
		return -ENOMEM;
	for (size_t i = 0; i < w->b->count; i++)
		if (w->places[i].unit != UINT64_MAX)
			units[count++] = w->places[i].unit;
	qsort(units, count, sizeof(*units), by_offset);
	for (size_t i = 0; !err && i < count; i++) {
		if (i && units[i] == units[i - 1])
			continue;
		err = batch_stopped(w->b) ? -ECANCELED : scan_unit(w, units[i]);
		batch_progress(w->b, i * w->b->count / count, NULL);
	}
	free(units);
	return err;
}

/* Adds a frame's function to the profile. The outermost keeps the name from the symbol table. */
static int find_function(struct work *w, const struct batch_address *address,
			 const struct frame *frame, uint32_t *id)
{
	const struct profile_location *l = &w->b->p->locations[address->location];
	const struct dwarf_function *known = &w->names.functions.all[frame->function];
	struct profile_function f = {
		.name = known->name,
		.system_name = known->system_name,
		.file = known->file ?: "",
		.start_line = known->line,
	};

	*id = PROFILE_NONE;
	if (frame->outer == NONE && l->line_count) {
		const struct profile_function *symbol =
			&w->b->p->functions[w->b->p->lines[l->first_line].function];

		f.name = symbol->name;
		f.system_name = symbol->system_name;
	}
	return f.name ? profile_add_function(w->b->p, &f, id) : 0;
}

/* lines: an array with room for all frames of any address. */
static int set_lines(struct work *w, size_t i, struct profile_line *lines)
{
	const struct place *place = &w->places[i];
	uint32_t location = w->b->addresses[i].location, count = 0;
	const struct profile_location *l = &w->b->p->locations[location];
	struct profile_line at = { .line = place->line,
				   .column = place->column,
				   .file = place->file };

	for (uint32_t n = place->inner; n != NONE; n = w->frames[n].outer) {
		const struct frame *frame = &w->frames[n];
		int err = find_function(w, &w->b->addresses[i], frame, &at.function);

		if (err)
			return err;
		if (at.function == PROFILE_NONE)
			continue; /* no name: its code counts as its caller's */
		if (at.file == w->b->p->functions[at.function].file)
			at.file = NULL;
		lines[count++] = at;
		at.line = frame->call_line;
		at.column = frame->call_column;
		at.file = frame->call_path;
	}
	if (!count && l->line_count && place->line) { /* DWARF has a line, but no function */
		lines[count++] = (struct profile_line){
			.function = w->b->p->lines[l->first_line].function,
			.line = place->line,
			.column = place->column,
			.file = place->file,
		};
	}
	return count ? profile_set_lines(w->b->p, location, lines, count) : 0;
}

static int set_all_lines(struct work *w)
{
	struct profile_line *lines;
	size_t most = 1;
	int err = 0;

	for (size_t i = 0; i < w->b->count; i++) {
		size_t count = 0;

		for (uint32_t n = w->places[i].inner; n != NONE; n = w->frames[n].outer)
			count++;
		most = MAX(count, most);
	}
	lines = calloc(most, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; !err && i < w->b->count; i++)
		err = set_lines(w, i, lines);
	free(lines);
	return err;
}

/* Warns of debug information that is corrupt or missing. */
static int warn_of_missing(const struct work *w)
{
	struct profile *p = w->b->p;
	char missing[128];
	const struct {
		bool is_so;
		const char *what;
	} warnings[] = {
		{ w->corrupt, "its debug information is corrupt: source lines and inlined "
			      "functions may be missing" },
		{ w->no_zstd, "its debug information is compressed with zstd, and there is no "
			      "libzstd.so.1: source lines and inlined functions may be missing "
			      "(install libzstd1 (Debian) or libzstd (Fedora))" },
		{ w->too_large, "its debug information is compressed with zstd, and larger than an "
				"eighth of the available memory: source lines and inlined "
				"functions may be missing (objcopy --decompress-debug-sections "
				"decompresses it)" },
		{ w->missing, missing },
		{ w->no_alternate, "the file of dwz(1) with part of its debug information is "
				   "missing: inlined functions may be missing" },
	};
	int err = 0;

	snprintf(missing, sizeof(missing),
		 "%zu .dwo files with its debug information are missing: so are the functions "
		 "inlined there",
		 w->missing);
	for (size_t i = 0; i < sizeof(warnings) / sizeof(*warnings) && !err; i++)
		if (warnings[i].is_so)
			err = profile_warn(p, "%s: %s", p->images[w->b->image].path,
					   warnings[i].what);
	return err;
}

int dwarf_resolve(struct batch *b, const struct elf_file *elf, int root, const char *image)
{
	struct work w = { .b = b, .file = { .elf = *elf }, .root = root, .image = image };
	int err = 0;

	w.room = memory_available() / SHARE;
	w.room = MAX(w.room, ROOM_LEAST);
	w.file.room = &w.room;
	w.names.p = b->p;
	w.places = calloc(b->count + 1, sizeof(*w.places));
	if (!w.places)
		return -ENOMEM;
	for (size_t i = 0; i < b->count; i++) {
		w.places[i].unit = UINT64_MAX;
		w.places[i].inner = NONE;
	}
	err = dwarf_file_open(&w.file);
	if (err) {
		err = skip_unreadable(&w, err);
	} else {
		err = dwarf_open_alternate(&w.file, w.root);
		w.no_alternate = err == -ENOENT;
		err = err == -ENOENT ? 0 : skip_unreadable(&w, err);
		err = err ?: find_units(&w);
		err = err ?: scan_units(&w);
		err = err ?: dwarf_names_resolve(&w.names, 0);
		err = err ?: set_all_lines(&w);
	}
	if (err == -ECANCELED)
		err = 0;
	err = err ?: warn_of_missing(&w);
	dwarf_names_free(&w.names);
	dwarf_file_close(&w.file);
	free(w.places);
	free(w.frames);
	return err;
}

bool dwarf_is_in(const struct elf_file *elf)
{
	struct dwarf_section section;
	bool found = dwarf_section_open(&section, elf, ".debug_info", NULL) != 0 || section.size;

	dwarf_section_close(&section);
	return found;
}
