// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/dwarf/dwarf_line.h"
#include "symbol/dwarf/dwarf_names.h"
#include "symbol/dwarf/dwarf_ranges.h"
#include "symbol/dwarf/dwarf_split.h"
#include "symbol/dwarf/dwarf_unit.h"
#include "util/array.h"
#include "util/memory.h"
#include "util/sum.h"

/*
 * Bound: files: nested entries of a unit, and frames of all; then: that part of the file has no
 * lines.
 */
#define DEPTH_MAX  1024
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
	if (dwarf_names_add(&w->names, file, entry, &frame.function) ||
	    array_reserve(&w->frames, &w->frame_room, w->frame_count + 1, sizeof(*w->frames)))
		return -ENOMEM;
	place->inner = w->frame_count;
	w->frames[w->frame_count++] = frame;
	return 0;
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

static int by_offset(const void *x, const void *y)
{
	return compare_u64(*(const uint64_t *)x, *(const uint64_t *)y);
}

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
		most = count > most ? count : most;
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
	w.room = w.room > ROOM_LEAST ? w.room : ROOM_LEAST;
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
