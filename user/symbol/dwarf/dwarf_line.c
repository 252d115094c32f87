// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf_line.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

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
	if (array_reserve(&t->directories, &t->directory_room, t->directory_count + 1,
			  sizeof(*t->directories)))
		return -ENOMEM;
	t->directories[t->directory_count++] = name;
	return 0;
}

static int add_source(struct dwarf_lines *t, struct dwarf_text name, uint64_t directory)
{
	if (t->source_count == FILES_MAX)
		return -EINVAL;
	if (array_reserve(&t->sources, &t->source_room, t->source_count + 1, sizeof(*t->sources)))
		return -ENOMEM;
	t->sources[t->source_count++] = (struct dwarf_source){ name, directory, NULL };
	return 0;
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

int dwarf_lines_open(struct dwarf_lines *t, const struct dwarf_unit *unit, struct profile *p)
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

void dwarf_lines_close(struct dwarf_lines *t)
{
	free(t->directories);
	free(t->sources);
	*t = (struct dwarf_lines){ 0 };
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

int dwarf_lines_file(struct dwarf_lines *t, uint64_t number, const char **path)
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

int dwarf_lines_run(struct dwarf_lines *t, dwarf_row_visit *visit, void *context)
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
