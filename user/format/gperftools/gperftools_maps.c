// SPDX-License-Identifier: GPL-2.0-only
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
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/gperftools/gperftools.h"
#include "util/proc_maps.h"
#include "util/scan.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "util/array.h"

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

bool gperftools_maps_begin(const struct input *in)
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

int gperftools_read_maps(const struct input *in, struct profile *p)
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

int gperftools_read_names(const struct input *in, struct profile *p)
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
