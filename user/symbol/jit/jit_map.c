// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "symbol/jit/jit_file.h"
#include "util/scan.h"

/* perf-PID.map: a line "START SIZE NAME" for each function, the numbers hexadecimal. */

/* Moves *line to the name. */
static bool parse_line(struct text *line, uint64_t *start, uint64_t *size)
{
	return take_hex(line, start) && take(line, " ") && take_hex(line, size) && take(line, " ");
}

/*
 * The line at `offset`, without its newline. A line longer than a window comes in parts; *ends is
 * true for the last one. Returns its size in the file; 0: there is none, or it is half written.
 */
static size_t read_line(struct jit_file *f, uint64_t offset, struct text *line, bool *ends)
{
	const char *bytes;
	size_t size = jit_read(f, offset, JIT_WINDOW, &bytes);
	const char *end = memchr(bytes, '\n', size);

	*line = (struct text){ bytes, end ?: bytes + size };
	*ends = end;
	if (end)
		return end + 1 - bytes;
	return size < JIT_WINDOW ? 0 : size;
}

static int find_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
		     struct jit_name *name)
{
	uint64_t start, size;
	struct text line;
	bool ends;

	(void)address;
	(void)context;
	if (!read_line(f, entry - 1, &line, &ends) || !ends || !parse_line(&line, &start, &size))
		return 0; /* the file has changed meanwhile */
	name->text = line.at;
	name->size = strnlen(line.at, line.end - line.at);
	return 0;
}

int jit_map_resolve(struct batch *b, struct jit_file *f, struct jit_cover *c)
{
	uint64_t start, size;
	struct text line;
	size_t length;
	bool begins = true, ends;

	for (uint64_t at = 0; (length = read_line(f, at, &line, &ends)); at += length) {
		if (!jit_count_entry(f, at) || (f->entries % 65536 == 0 && batch_stopped(b)))
			break;
		if (begins && ends && parse_line(&line, &start, &size))
			jit_offer(c, start, size, at + 1);
		begins = ends;
	}
	return jit_name_all(b, f, c, find_name, NULL);
}
