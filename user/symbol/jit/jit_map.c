// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "symbol/jit/jit_file.h"
#include "util/number.h"

/* perf-PID.map: a line "START SIZE NAME" for each function, the numbers hexadecimal. */

/* "0x" is allowed. Moves *text behind the number. */
static bool parse_hex(const char **text, uint64_t *number)
{
	const char *c = *text;
	unsigned int digits = 0;

	if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	for (*number = 0; digit_value(*c) < 16; c++, digits++)
		*number = *number << 4 | digit_value(*c);
	*text = c;
	return digits > 0 && digits <= 16;
}

/* line ends with '\n'. Returns its name, or NULL: it is no such line. */
static const char *parse_line(const char *line, uint64_t *start, uint64_t *size)
{
	if (!parse_hex(&line, start) || *line++ != ' ')
		return NULL;
	if (!parse_hex(&line, size) || *line++ != ' ')
		return NULL;
	return line;
}

/*
 * The line at `offset`, with its '\n'; what is longer than a window is taken apart, and no part of
 * it is a line. Returns its size; 0: the process has not written all of it, or there is none.
 */
static size_t read_line(struct jit_file *f, uint64_t offset, const char **line)
{
	size_t size = jit_read(f, offset, JIT_WINDOW, line);
	const char *end = memchr(*line, '\n', size);

	if (end)
		return end + 1 - *line;
	return size < JIT_WINDOW ? 0 : size;
}

static int find_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
		     struct jit_name *name)
{
	uint64_t start, size;
	const char *line;
	size_t length = read_line(f, entry - 1, &line);

	(void)address;
	(void)context;
	if (!length || line[length - 1] != '\n')
		return 0; /* the file was changed meanwhile */
	name->text = parse_line(line, &start, &size);
	if (name->text)
		name->size = strnlen(name->text, line + length - 1 - name->text);
	return 0;
}

int jit_map_resolve(struct batch *b, struct jit_file *f, struct jit_cover *c)
{
	uint64_t start, size;
	const char *line;
	size_t length;
	bool begins, ends = true;

	for (uint64_t at = 0; (length = read_line(f, at, &line)); at += length) {
		if (!jit_count_entry(f, at) || (f->entries % 65536 == 0 && batch_stopped(b)))
			break;
		begins = ends;
		ends = line[length - 1] == '\n';
		if (begins && ends && parse_line(line, &start, &size))
			jit_offer(c, start, size, at + 1);
	}
	return jit_name_all(b, f, c, find_name, NULL);
}
