// SPDX-License-Identifier: GPL-2.0-only
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
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/gperftools/gperftools.h"
#include "util/scan.h"
#include "util/array.h"

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

bool gperftools_symbols_begin(const struct input *in)
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
static int next_line(struct symbols *s, struct text *line)
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
		int err = next_line(s, line);

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
		int err = next_line(s, &line);

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

int gperftools_read_symbols(struct input *in, struct profile *p, bool *symbolized, struct error *e)
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
			(int)(line.end - line.at < 40 ? line.end - line.at : 40), line.at);
	free(s.lines);
	return err;
}
