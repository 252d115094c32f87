// SPDX-License-Identifier: GPL-2.0-only
#include "report/disassembly.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/objdump.h"
#include "report/text.h"
#include "util/array.h"

/*
 * The address that an instruction jumps to: "jne    129b <burn+0x2a>". 0: none; an address after #
 * is data, and calls are no jumps.
 */
static uint64_t jump_target(const char *text)
{
	const char *name = strstr(text, " <"), *digits = name;

	if (!name || memchr(text, '#', name - text) || strncmp(text, "call", 4) == 0 ||
	    strncmp(text, "bl ", 3) == 0)
		return 0;
	while (digits > text && strchr("0123456789abcdef", digits[-1]))
		digits--;
	return strtoull(digits, NULL, 16);
}

/*
 * Adds the instruction of "    11f9:\tmov    %edi,%eax"; ignores other lines, which are names.
 * Returns 0, -ENOMEM, or -E2BIG: there are DISASSEMBLY_MAX already.
 */
static int take_line(struct disassembly *d, const char *line)
{
	struct instruction *i;
	char *end;
	uint64_t address;

	if (*line != ' ')
		return 0;
	address = strtoull(line, &end, 16);
	if (end[0] != ':' || end[1] != '\t' ||
	    (d->count && address <= d->instructions[d->count - 1].address))
		return 0;
	if (d->count == DISASSEMBLY_MAX)
		return -E2BIG;
	if (array_reserve(&d->instructions, &d->room, d->count + 1, sizeof(*i)))
		return -ENOMEM;
	i = &d->instructions[d->count];
	*i = (struct instruction){ .address = address, .text = text_expand_tabs(end + 2) };
	if (!i->text)
		return -ENOMEM;
	i->target = jump_target(i->text);
	d->count++;
	return 0;
}

int disassemble(struct disassembly *d, const char *path, uint64_t start, uint64_t limit,
		unsigned int seconds, struct error *e)
{
	char first[64], last[64];
	/* "--" because a path can begin with "-". */
	char *const arguments[] = { "objdump", "-d", "-C", "--no-show-raw-insn",
				    first,     last, "--", (char *)path,
				    NULL };
	struct objdump o;
	int err, parse_err = 0;
	char *line;

	*d = (struct disassembly){ 0 };
	snprintf(first, sizeof(first), "--start-address=0x%" PRIx64, start);
	snprintf(last, sizeof(last), "--stop-address=0x%" PRIx64, limit);
	err = objdump_start(&o, arguments, seconds, e);
	if (err)
		return err;
	while (!parse_err && (line = objdump_read_line(&o, &parse_err)))
		parse_err = take_line(d, line);
	for (size_t i = 0; i < d->count; i++) {
		size_t target = disassembly_target(d, i);

		if (target != SIZE_MAX)
			d->instructions[target].is_target = true;
	}
	err = objdump_finish(&o, path, parse_err, e);
	if (parse_err == -E2BIG)
		return error_set(e, 0,
				 "cannot disassemble %s: more than %d instructions: the "
				 "symbol's size is wrong",
				 path, DISASSEMBLY_MAX);
	if (!err && !d->count)
		return error_set(e, 0, "%s has no code there", path);
	return err;
}

void disassembly_free(struct disassembly *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->instructions[i].text);
	free(d->instructions);
	*d = (struct disassembly){ 0 };
}

size_t disassembly_find(const struct disassembly *d, uint64_t address)
{
	size_t from = 0, to = d->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (d->instructions[middle].address <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? from - 1 : SIZE_MAX;
}

size_t disassembly_target(const struct disassembly *d, size_t number)
{
	uint64_t target = d->instructions[number].target;
	size_t found = target ? disassembly_find(d, target) : SIZE_MAX;

	return found != SIZE_MAX && d->instructions[found].address == target ? found : SIZE_MAX;
}
