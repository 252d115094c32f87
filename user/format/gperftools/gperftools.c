// SPDX-License-Identifier: GPL-2.0-only
#include "format/gperftools/gperftools.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/build_id.h"
#include "profile/image_name.h"
#include "util/array.h"
#include "util/order.h"
#include "util/proc_maps.h"
#include "util/scan.h"

/*
 * The text after the slots of a gperftools profile. Writers differ; lines are read in these forms,
 * from the first column:
 *
 *	START-LIMIT PERMISSIONS OFFSET MAJOR:MINOR INODE [PATH]	as in /proc/PID/maps
 *	START-LIMIT: PATH					"cooked"
 *	START-LIMIT [PERMISSIONS] [PATH] [(@OFFSET)] [BUILD-ID]	"brief"
 *	build=PATH						value of $build in paths
 *
 * Any of them may have the prefix of a log line.
 */

/*
 * Longest path after $build is replaced: each of many short lines could expand to a long one.
 * Bound: files: bytes of a path with $build replaced; then: the line is no mapping.
 */
#define PATH_SIZE_MAX 4096

struct map_line {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	bool executable;
	struct text path;
	struct text build_id;
};

struct maps {
	struct profile *p;
	struct text build; /* value of the last build= line */
	char path[PATH_SIZE_MAX + 1];
};

/* Takes the next line, without its end and without NULs around it. */
static bool next_line(struct text *rest, struct text *line)
{
	if (!take_line(rest, line))
		return false;
	while (line->at < line->end && *line->at == '\0')
		line->at++;
	while (line->at < line->end && (line->end[-1] == '\r' || line->end[-1] == '\0'))
		line->end--;
	return true;
}

static struct text window_text(const struct input *in)
{
	const char *bytes = (const char *)in->bytes;

	return (struct text){ bytes, bytes + in->size };
}

/* Skips the prefix "...file.cc:123] " of a line that was copied from a log. */
static void skip_log_prefix(struct text *line)
{
	const char *bracket = memchr(line->at, ']', line->end - line->at);
	const char *digits = bracket;

	if (!bracket || bracket + 1 == line->end || !is_blank(bracket[1]) ||
	    memchr(line->at, '[', bracket - line->at))
		return;
	while (digits > line->at && digit_value(digits[-1]) < 10)
		digits--;
	if (digits == bracket || digits - line->at < 2 || digits[-1] != ':')
		return;
	line->at = bracket + 2;
}

static bool take_permissions(struct text *t, bool *executable)
{
	size_t size = 0;

	while (t->at + size < t->end && strchr("rwxps-", t->at[size]) && t->at[size])
		size++;
	if (size < 3 || (t->at + size < t->end && !is_blank(t->at[size])))
		return false;
	*executable = memchr(t->at, 'x', size);
	t->at += size;
	return true;
}

/* OFFSET MAJOR:MINOR INODE [PATH] */
static bool take_proc_rest(struct text *t, struct map_line *m)
{
	uint64_t ignored;

	if (!take_hex(t, &m->offset) || !take_blanks(t) || !take_hex(t, &ignored) ||
	    !take(t, ":") || !take_hex(t, &ignored) || !take_blanks(t) ||
	    !take_number(t, 10, &ignored) || !(take_blanks(t) || is_empty(t)))
		return false;
	m->path = *t;
	return true;
}

/* Cuts "(@OFFSET) BUILD-ID" or "@OFFSET BUILD-ID" off the end of a brief line's path. */
static void take_brief_tail(struct map_line *m)
{
	const char *sign = last_of(&m->path, '@');
	struct text tail = { sign ? sign + 1 : NULL, m->path.end };
	const char *before = sign;
	uint64_t offset;

	if (!sign || !take_hex(&tail, &offset))
		return;
	if (before > m->path.at && before[-1] == '(') {
		before--;
		if (!take(&tail, ")"))
			return;
	}
	if ((before > m->path.at && !is_blank(before[-1])) ||
	    (!take_blanks(&tail) && !is_empty(&tail)))
		return;
	m->offset = offset;
	m->build_id = tail;
	m->path.end = before;
	trim_end(&m->path);
}

/* Without permissions, the range could be a date or time: then it has to be followed by a path. */
static bool looks_like_path(const struct text *t)
{
	return !is_empty(t) && strchr("/[$(@", *t->at);
}

static bool parse_map_line(struct text line, struct map_line *m)
{
	bool permissions;
	struct text rest;

	*m = (struct map_line){ .executable = true };
	if (!take_hex(&line, &m->start) || !take(&line, "-") || !take_hex(&line, &m->limit))
		return false;
	if (take(&line, ":")) {
		take_blanks(&line);
		m->path = line;
		return looks_like_path(&line);
	}
	if (!take_blanks(&line))
		return false;
	permissions = take_permissions(&line, &m->executable);
	take_blanks(&line);
	rest = line;
	if (permissions && take_proc_rest(&rest, m))
		return true;
	if (!permissions && !looks_like_path(&line))
		return false;
	m->offset = 0;
	m->path = line;
	trim_end(&m->path);
	take_brief_tail(m);
	return true;
}

/* Whether the window begins with a line of a memory map. */
static bool gperftools_maps_begin(const struct input *in)
{
	struct text rest = window_text(in), line = { 0 };
	struct map_line m;

	return next_line(&rest, &line) && parse_map_line(line, &m);
}

static bool append_path(char *path, size_t *size, const char *from, size_t count)
{
	if (count > PATH_SIZE_MAX - *size)
		return false;
	memcpy(path + *size, from, count);
	*size += count;
	return true;
}

/* Sets maps->path to the path with $build and \012 replaced. False: it is too long. */
static bool expand_path(struct maps *maps, struct text path)
{
	static const char variable[] = "$build";
	size_t size = 0;

	while (!is_empty(&path)) {
		struct text rest = path;
		bool fits;

		if (take(&rest, "\\012")) { /* the kernel escapes nothing else */
			fits = append_path(maps->path, &size, "\n", 1);
			path = rest;
		} else if (maps->build.at && take(&rest, variable) &&
			   (is_empty(&rest) ||
			    !(isalnum((unsigned char)*rest.at) || *rest.at == '_'))) {
			fits = append_path(maps->path, &size, maps->build.at,
					   maps->build.end - maps->build.at);
			path = rest;
		} else {
			fits = append_path(maps->path, &size, path.at++, 1);
		}
		if (!fits)
			return false;
	}
	maps->path[size] = '\0';
	return true;
}

static bool take_build(struct text *line)
{
	take_blanks(line);
	return take(line, "build=");
}

/* Takes "0xID " of a Java profile's line "0xID NAME (FILE:LINE)". */
static bool take_name_id(struct text *line, uint64_t *id)
{
	take_blanks(line);
	return take(line, "0x") && take_number(line, 16, id) && take_blanks(line);
}

static int read_map_line(struct maps *maps, struct text line)
{
	struct text trimmed = line;
	const char *comment;
	struct map_line m;
	uint64_t id;

	trim_end(&trimmed);
	take_blanks(&trimmed);
	if (is_empty(&trimmed))
		return 0;
	skip_log_prefix(&line);
	if (parse_map_line(line, &m)) {
		const struct text *hex = &m.build_id;
		uint8_t build_id[PROFILE_BUILD_ID_MAX];
		uint32_t image, mapping;
		int err;

		if (!m.executable)
			return 0;
		if (m.start >= m.limit)
			return profile_warn(maps->p,
					    "a mapping in the memory map ends before it starts");
		if (!expand_path(maps, m.path))
			return profile_warn(maps->p, "a path in the memory map is too long");
		maps->path[proc_path_size(maps->path)] = '\0';
		if (image_is_kernel(maps->path))
			maps->path[strlen(IMAGE_KERNEL)] = '\0';
		err = profile_add_image(maps->p, maps->path, build_id,
					build_id_parse(hex->at, hex->end - hex->at, build_id),
					&image);
		if (err)
			return err;
		return profile_add_mapping(maps->p, m.start, m.limit, m.offset, image, &mapping);
	}
	line = trimmed;
	if (take_build(&line) || (!maps->p->return_addresses && take_name_id(&line, &id)))
		return 0;
	if (parse_map_line(trimmed, &m) &&
	    profile_warn(maps->p, "a line of the memory map begins with a blank and is ignored"))
		return -ENOMEM;
	if (profile_string_n(maps->p, trimmed.at, trimmed.end - trimmed.at, &comment))
		return -ENOMEM;
	return profile_add_comment(maps->p, comment);
}

/*
 * Reads the memory map after the slots, all of which is in the window. Adds the
 * executable mappings; other lines become comments. Returns 0 or -ENOMEM.
 */
static int gperftools_read_maps(const struct input *in, struct profile *p)
{
	struct maps maps = { .p = p };
	struct text rest = window_text(in), line = { 0 };

	/* The last build= line is valid for the lines before it, too. */
	while (next_line(&rest, &line)) {
		trim_end(&line);
		skip_log_prefix(&line);
		if (take_build(&line))
			maps.build = line;
	}
	rest = window_text(in);
	while (next_line(&rest, &line))
		if (read_map_line(&maps, line))
			return -ENOMEM;
	return 0;
}

/* Splits "NAME (FILE:LINE)"; the name may contain parentheses. */
static void split_name(struct text t, struct text *name, struct text *file, uint64_t *line)
{
	const char *open = last_of(&t, '('), *colon;

	trim_end(&t);
	*name = t;
	*file = (struct text){ t.end, t.end };
	*line = 0;
	if (!open || open == t.at || open[-1] != ' ' || t.end[-1] != ')')
		return;
	name->end = open - 1;
	*file = (struct text){ open + 1, t.end - 1 };
	colon = last_of(file, ':');
	if (colon) {
		struct text number = { colon + 1, file->end };

		if (take_number(&number, 10, line) && is_empty(&number))
			file->end = colon;
		else
			*line = 0;
	}
}

static int name_location(struct profile *p, uint32_t location, struct text text)
{
	struct profile_function function = { 0 };
	struct profile_line entry = { 0 };
	struct text name, file;
	uint64_t line;

	split_name(text, &name, &file, &line);
	if (is_empty(&name))
		return 0;
	if (profile_string_n(p, name.at, name.end - name.at, &function.name) ||
	    profile_string_n(p, file.at, file.end - file.at, &function.file))
		return -ENOMEM;
	if (!*function.name)
		return 0;
	function.system_name = function.name;
	entry.line = line > UINT32_MAX ? 0 : line;
	if (profile_add_function(p, &function, &entry.function))
		return -ENOMEM;
	return profile_set_lines(p, location, &entry, 1);
}

/*
 * Reads the table of names that a Java profile has instead of the map, and names the locations,
 * which have no mapping yet. Returns 0 or -ENOMEM.
 */
static int gperftools_read_names(const struct input *in, struct profile *p)
{
	struct text rest = window_text(in), line = { 0 };

	while (next_line(&rest, &line)) {
		uint32_t location;
		uint64_t id;

		if (!take_name_id(&line, &id))
			continue;
		location = profile_find_location(p, id, PROFILE_NONE);
		if (location != PROFILE_NONE && p->locations[location].line_count == 0 &&
		    name_location(p, location, line))
			return -ENOMEM;
	}
	return 0;
}

/*
 * The text at the beginning of a symbolized profile, as google-pprof --raw writes it:
 *
 *	%COMMAND			for the reader; optional
 *	--- symbol
 *	binary=PATH
 *	0xADDRESS NAME[--NAME]...	the outermost function first, then what is inlined in it
 *	---
 *	--- profile
 */

struct symbols {
	struct input *in;
	struct profile *p;
	struct error *e;
	struct profile_line *lines; /* of one address */
	size_t line_room;
};

static bool is_marker(struct text line, const char *word)
{
	if (!take(&line, "---"))
		return false;
	take_blanks(&line);
	return take(&line, word);
}

/* Whether the window begins with names as text, or the slots' marker. */
static bool gperftools_symbols_begin(const struct input *in)
{
	const char *at = (const char *)in->bytes, *end = at + in->size;

	while (at && at < end && *at == '%') {
		at = memchr(at, '\n', end - at);
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return false;
	return is_marker((struct text){ at, end }, "symbol") ||
	       is_marker((struct text){ at, end }, "profile");
}

/* Takes the next line. Returns 0 or -errno; the end of the file is an error. */
static int next_symbol_line(struct symbols *s, struct text *line)
{
	const char *at;
	size_t size;
	int err = input_line(s->in, &at, &size, s->e);

	if (err)
		return err;
	if (!at)
		return input_line_error(s->in, s->e, "the file ends before \"--- profile\"");
	*line = (struct text){ at, at + size };
	trim_end(line);
	return 0;
}

/* Takes the next line that is not a command; commands become comments. */
static int next_marker(struct symbols *s, struct text *line)
{
	for (;;) {
		const char *command;
		int err = next_symbol_line(s, line);

		if (err || is_empty(line) || *line->at != '%')
			return err;
		if (profile_string_n(s->p, line->at, line->end - line->at, &command) ||
		    profile_add_comment(s->p, command))
			return -ENOMEM;
	}
}

/* Returns the end of the first name: the next "--", unless it follows "operator". */
static const char *name_end(const struct text *names)
{
	static const char word[] = "operator";
	const size_t size = sizeof(word) - 1;

	for (const char *at = names->at; names->end - at >= 2; at++) {
		if (at[0] != '-' || at[1] != '-')
			continue;
		if ((size_t)(at - names->at) < size || memcmp(at - size, word, size) != 0)
			return at;
		at++;
	}
	return names->end;
}

static int add_symbol(struct symbols *s, uint64_t address, struct text names)
{
	uint32_t location, count = 0;

	while (!is_empty(&names)) {
		struct profile_function f = { .file = "" };
		struct text name = { names.at, name_end(&names) }, rest;
		const char *open = last_of(&name, '<');
		struct text digits = { open ? open + 1 : NULL, name.end };
		size_t size = digits.end - digits.at;
		uint64_t number;

		names.at = name.end;
		take(&names, "--");
		/* google-pprof distinguishes functions of one name by their address:
		 * "f<00000000004011b0>". */
		if (open && (size == 9 || size == 17) && take_number(&digits, 16, &number) &&
		    take(&digits, ">"))
			name.end = open;
		/* A function without a name has "??" or its address. */
		rest = name;
		if (is_empty(&name) || text_is(&name, "??") ||
		    (take_hex(&rest, &number) && is_empty(&rest) && number == address))
			continue;
		if (array_reserve(&s->lines, &s->line_room, count + 1, sizeof(*s->lines)) ||
		    profile_string_n(s->p, name.at, name.end - name.at, &f.name))
			return -ENOMEM;
		f.system_name = f.name;
		s->lines[count] = (struct profile_line){ 0 };
		if (profile_add_function(s->p, &f, &s->lines[count++].function))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		struct profile_line outer = s->lines[i];

		s->lines[i] = s->lines[count - 1 - i];
		s->lines[count - 1 - i] = outer;
	}
	if (profile_add_location(s->p, address, PROFILE_NONE, &location))
		return -ENOMEM;
	return profile_set_lines(s->p, location, s->lines, count);
}

/* Reads the binary's path and the symbols. */
static int read_table(struct symbols *s)
{
	struct text line;

	for (;;) {
		uint64_t address;
		int err = next_symbol_line(s, &line);

		if (err || take(&line, "---"))
			return err;
		if (is_empty(&line))
			continue;
		if (take(&line, "binary="))
			err = profile_string_n(s->p, line.at, line.end - line.at, &s->p->command);
		else if (take(&line, "0x") && take_number(&line, 16, &address) &&
			 take_blanks(&line))
			err = add_symbol(s, address, line);
		else
			err = profile_warn(s->p, "a line of the symbol table is invalid and is "
						 "ignored");
		if (err)
			return -ENOMEM;
	}
}

/*
 * Reads that text, up to the slots. Sets *symbolized if it has names; they become names of
 * locations without a mapping. Returns 0 or -errno with e set.
 */
static int gperftools_read_symbols(struct input *in, struct profile *p, bool *symbolized,
				   struct error *e)
{
	struct symbols s = { .in = in, .p = p, .e = e };
	struct text line;
	int err = next_marker(&s, &line);

	*symbolized = !err && is_marker(line, "symbol");
	if (*symbolized) {
		err = read_table(&s);
		err = err ?: next_marker(&s, &line);
	}
	if (!err && !is_marker(line, "profile"))
		err = input_line_error(
			in, e,
			"\"%.*s\" where \"--- profile\" is expected: only CPU profiles are read",
			(int)MIN(line.end - line.at, 40), line.at);
	free(s.lines);
	return err;
}

#define HEADER_WORDS_MIN 3
/* Bound: files: words of a header; then: the file is refused. */
#define HEADER_WORDS_MAX 65535

enum version {
	VERSION_NATIVE = 0,
	VERSION_JAVA = 1
};

struct reader {
	struct input *in;
	struct profile *p;
	struct error *e;
	size_t slot; /* bytes: 4 or 8 */
	bool big_endian;
	bool symbolized; /* has names as text */
	uint64_t version;
	bool trailer;
	uint32_t labels;
	uint32_t *frames;
	size_t frame_room;
	/* For warnings */
	uint64_t zero_counts;
	uint64_t zero_pcs;
	uint64_t no_pcs;
};

/* A record at the beginning of the window. */
struct record {
	uint64_t count;
	uint64_t depth;
	size_t size; /* bytes */
};

/* Returns the value of the slot at this offset in the window. */
static uint64_t slot_at(const struct reader *r, size_t offset)
{
	uint32_t narrow;
	uint64_t wide;

	if (r->slot == sizeof(narrow)) {
		memcpy(&narrow, r->in->bytes + offset, sizeof(narrow));
		return r->big_endian ? be32toh(narrow) : le32toh(narrow);
	}
	memcpy(&wide, r->in->bytes + offset, sizeof(wide));
	return r->big_endian ? be64toh(wide) : le64toh(wide);
}

/* Sets the slots' width and byte order: those in which the first two slots are valid. */
static bool identify_slots(struct reader *r)
{
	for (r->slot = 4; r->slot <= 8; r->slot += 4) {
		if (r->in->size < 2 * r->slot)
			return false;
		for (int big = 0; big < 2; big++) {
			uint64_t words;

			r->big_endian = big;
			words = slot_at(r, r->slot);
			if (slot_at(r, 0) == 0 && words >= HEADER_WORDS_MIN &&
			    words <= HEADER_WORDS_MAX)
				return true;
		}
	}
	return false;
}

static bool gperftools_detect(const struct input *in)
{
	struct input window = *in;
	struct reader r = { .in = &window };

	return gperftools_symbols_begin(in) || identify_slots(&r);
}

static uint64_t multiply_saturating(uint64_t a, uint64_t b, uint64_t max)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) || product > max ? max : product;
}

static int read_header(struct reader *r)
{
	const struct profile_labels none = { .comm = "" };
	uint64_t words = slot_at(r, r->slot), period_us, tick_ns = 0;
	size_t size = (2 + words) * r->slot;
	struct profile *p = r->p;
	int err = input_need(r->in, size, r->e);

	if (err)
		return err;
	if (r->in->size < size)
		return input_error(r->in, r->in->offset + r->in->size, r->e,
				   "the header of %zu bytes is truncated", size);
	r->version = slot_at(r, 2 * r->slot);
	if (r->version > VERSION_JAVA)
		return input_error(r->in, r->in->offset + 2 * r->slot, r->e,
				   "version %" PRIu64 " is unsupported: only 0 and 1 are",
				   r->version);
	p->bits = r->slot * 8;
	p->big_endian = r->big_endian;
	p->return_addresses = r->version == VERSION_NATIVE && !r->symbolized;
	/* 1 is "unknown" in files by google-pprof --raw, and in ours: no clock ticks so often. */
	period_us = slot_at(r, 3 * r->slot);
	if (period_us == 0)
		err = profile_warn(p, "the header has a sampling period of 0: times are unknown");
	if (period_us > 1)
		tick_ns = multiply_saturating(period_us, 1000, UINT64_MAX);
	err = err ?: profile_add_clock(p, tick_ns);
	err = err ?: profile_add_labels(p, &none, &r->labels);
	if (!err && slot_at(r, 4 * r->slot) != 0)
		err = profile_warn(p, "the header's padding is not 0: other readers reject the "
				      "file");
	if (!err && words > HEADER_WORDS_MIN)
		err = profile_warn(p, "the header has %" PRIu64 " unknown words",
				   words - HEADER_WORDS_MIN);
	if (!err)
		input_skip(r->in, size);
	return err;
}

/*
 * Sets *record to the next one, all of which is in the window then. *more: false after the last
 * record, with the window at the text. Returns 0 or -errno with r->e set.
 */
static int next_record(struct reader *r, struct record *record, bool *more)
{
	size_t left;
	int err = input_need(r->in, 3 * r->slot, r->e);

	*more = false;
	if (err || r->in->size == 0)
		return err;
	if (r->in->size >= 3 * r->slot && slot_at(r, 0) == 0 && slot_at(r, r->slot) == 1 &&
	    slot_at(r, 2 * r->slot) == 0) {
		r->trailer = true;
		input_skip(r->in, 3 * r->slot);
		return 0;
	}
	*record = (struct record){ .size = 2 * r->slot };
	if (r->in->size >= record->size) {
		record->count = slot_at(r, 0);
		record->depth = slot_at(r, r->slot);
	}
	record->size += multiply_saturating(record->depth, r->slot, SIZE_MAX - record->size);
	err = input_need(r->in, MIN(record->size, INPUT_WINDOW), r->e);
	if (!err && r->in->size < record->size) {
		/* Without a trailer, the text after the records looks like a very deep stack. */
		if (gperftools_maps_begin(r->in))
			return 0;
		err = input_need(r->in, record->size, r->e);
	}
	if (err)
		return err;
	*more = r->in->size >= record->size;
	if (*more)
		return 0;
	left = r->in->size / r->slot;
	if (left < 2)
		return input_error(r->in, r->in->offset, r->e,
				   "the file ends within a record: it is truncated");
	return input_error(r->in, r->in->offset, r->e,
			   "a record of %" PRIu64 " pcs, but the rest of the file has %zu: it is "
			   "truncated or corrupt",
			   record->depth, left - 2);
}

/* Adds a record. Locations have no mapping yet: the memory map follows the records. */
static int add_record(struct reader *r, const struct record *record)
{
	uint32_t copies = 0; /* of the leaf */
	int64_t values[2];

	/*
	 * A leaf stands twice where readers would else strip a frame of the profiler's own: it is
	 * one frame. That of a call has its return address, which is not that of the leaf.
	 */
	while (r->p->return_addresses && copies + 1 < record->depth &&
	       slot_at(r, (3 + (size_t)copies) * r->slot) == slot_at(r, 2 * r->slot))
		copies++;
	if (array_reserve(&r->frames, &r->frame_room, record->depth + 1, sizeof(*r->frames)))
		return -ENOMEM;
	for (uint32_t i = 0; i < record->depth - copies; i++) {
		uint64_t address = slot_at(r, (2 + (size_t)copies + i) * r->slot);

		r->zero_pcs += address == 0;
		if (i > 0) {
			bool is_return = r->p->return_addresses;

			/*
			 * The address in a caller's call instruction. In symbolized files, pc is
			 * that address; or, in those from a server, a return address, and only the
			 * names have the address in the call.
			 */
			if (r->symbolized)
				is_return = profile_find_location(r->p, address, PROFILE_NONE) ==
						    PROFILE_NONE &&
					    profile_find_location(r->p, address - 1,
								  PROFILE_NONE) != PROFILE_NONE;
			address -= is_return;
		}
		if (profile_add_location(r->p, address, PROFILE_NONE, &r->frames[i]))
			return -ENOMEM;
	}
	r->zero_counts += record->count == 0;
	r->no_pcs += record->depth == 0;
	profile_set_ticks(r->p, record->count, values);
	return profile_add_sample(r->p, r->frames, record->depth - copies, r->labels, values);
}

/* --- Mappings --- */

/* The mappings of a profile in the order of their addresses. */
struct mapping_index {
	struct mapping_entry {
		uint64_t start;
		uint64_t limit;
		uint64_t limit_so_far; /* highest limit up to this entry */
		uint32_t mapping;
	} * entries;
	size_t count;
};

/* mapping_index_find() searches downwards, and has to find the first in the file. */
ORDER(compare_start, struct mapping_entry, LEAST(start) ?: MOST(mapping))

static int mapping_index_init(struct mapping_index *index, const struct profile *p)
{
	uint64_t limit = 0;

	index->count = p->mapping_count;
	index->entries = calloc(index->count + 1, sizeof(*index->entries));
	if (!index->entries)
		return -ENOMEM;
	for (size_t i = 0; i < index->count; i++)
		index->entries[i] = (struct mapping_entry){ .start = p->mappings[i].start,
							    .limit = p->mappings[i].limit,
							    .mapping = i };
	qsort(index->entries, index->count, sizeof(*index->entries), compare_start);
	for (size_t i = 0; i < index->count; i++) {
		limit = MAX(limit, index->entries[i].limit);
		index->entries[i].limit_so_far = limit;
	}
	return 0;
}

/* Returns the mapping that contains the address, or PROFILE_NONE. */
static uint32_t mapping_index_find(const struct mapping_index *index, uint64_t address)
{
	size_t i;

	FIND_FIRST(i, 0, index->count, index->entries[i].start <= address);
	for (; i && index->entries[i - 1].limit_so_far > address; i--)
		if (index->entries[i - 1].limit > address)
			return index->entries[i - 1].mapping;
	return PROFILE_NONE;
}

static int add_warnings(struct reader *r)
{
	struct profile *p = r->p;

	/* Files by google-pprof --raw have neither trailer nor map. */
	if ((!r->trailer && !r->symbolized &&
	     profile_warn(p, "the trailer after the records is missing: the file may be "
			     "truncated")) ||
	    (r->zero_counts &&
	     profile_warn(p, "%" PRIu64 " record(s) have a count of 0", r->zero_counts)) ||
	    (r->zero_pcs && profile_warn(p, "%" PRIu64 " pc(s) are 0", r->zero_pcs)) ||
	    (r->no_pcs &&
	     profile_warn(p, "%" PRIu64 " record(s) have a count but no pc", r->no_pcs)) ||
	    (p->mapping_count == 0 && p->return_addresses &&
	     profile_warn(p, "the file has no memory map: addresses cannot be resolved to names")))
		return -ENOMEM;
	return 0;
}

static int gperftools_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	struct mapping_index mappings = { 0 };
	struct record record = { 0 };
	bool more = true;
	int err = 0;

	/* Names as text may precede the slots. */
	if (!identify_slots(&r)) {
		err = gperftools_read_symbols(in, p, &r.symbolized, e);
		err = err ?: input_need(in, 2 * sizeof(uint64_t), e);
		if (!err && !identify_slots(&r))
			err = input_error(in, in->offset, e,
					  "no CPU profile follows the line \"--- profile\"");
	}
	err = err ?: read_header(&r);
	while (!err && more) {
		input_skip(in, record.size);
		err = next_record(&r, &record, &more);
		if (!err && more)
			err = add_record(&r, &record);
	}
	if (!err) {
		/* The text after the records; after an error, as much of it as there is. */
		err = input_need_all(in, e);
		if (gperftools_read_maps(in, p) ||
		    (r.version == VERSION_JAVA && gperftools_read_names(in, p)) ||
		    mapping_index_init(&mappings, p))
			err = -ENOMEM;
		for (size_t i = 0; i < p->location_count && err != -ENOMEM; i++) {
			uint32_t mapping = mapping_index_find(&mappings, p->locations[i].address);

			if (mapping != PROFILE_NONE && profile_place_location(p, i, mapping))
				err = -ENOMEM;
		}
		free(mappings.entries);
	}
	err = err ?: add_warnings(&r);
	free(r.frames);
	return err;
}

const struct format format_gperftools = {
	.name = "gperftools",
	.extensions = (const char *const[]){ ".prof", NULL },
	.keeps = KEEPS(ADDRESSES) | KEEPS(STACKS) | KEEPS(IMAGES) | KEEPS(MAPPINGS) | KEEPS(PERIOD),
	.depth_max = GPERFTOOLS_DEPTH_MAX,
	.streams = true,
	.detect = gperftools_detect,
	.read = gperftools_read,
	.write = gperftools_write,
	.dropped_samples = gperftools_dropped_samples,
	.cannot_hold = "frames without an address",
};
