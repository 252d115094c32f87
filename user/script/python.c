// SPDX-License-Identifier: GPL-2.0-only
#include "script/description.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "script/python_layouts.h"

static const struct language_image *layout_of(unsigned int version)
{
	for (size_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++)
		if (python_layouts[i].version == version)
			return &python_layouts[i];
	return NULL;
}

static void python_find(struct elf_file *file, const struct language_symbol *symbols,
			struct language_image *image)
{
	const struct language_symbol *runtime = &symbols[0], *type = &symbols[1];
	const struct language_image *layout;
	uint64_t version, free_threaded;

	if (!runtime->address || !type->address || !symbols[2].address ||
	    !language_read_variable(file, symbols[2].address, &version, sizeof(version)))
		return;
	layout = layout_of(version >> 16);
	if (!layout)
		return;
	/* From 3.13 on it begins with a table of offsets, and says whether threads share it freely.
	 */
	if (layout->version >= 0x30d &&
	    (!language_read_variable(file, runtime->address + 16, &free_threaded,
				     sizeof(free_threaded)) ||
	     free_threaded))
		return;
	*image = *layout;
	image->python.runtime = runtime->address;
	image->python.code_type = type->address;
}

static void python_version(const struct elf_file *file, const struct language_symbol *symbols,
			   char text[static LANGUAGE_VERSION_SIZE])
{
	uint64_t version, free_threaded = 0;

	if (!symbols[0].address || !symbols[1].address)
		return;
	/* Py_Version is there from 3.11 on. */
	if (!symbols[2].address ||
	    !language_read_variable(file, symbols[2].address, &version, sizeof(version))) {
		snprintf(text, LANGUAGE_VERSION_SIZE, "Python before version 3.11");
		return;
	}
	if (version >> 16 >= 0x30d)
		language_read_variable(file, symbols[0].address + 16, &free_threaded,
				       sizeof(free_threaded));
	snprintf(text, LANGUAGE_VERSION_SIZE, "%sPython %u.%u.%u",
		 free_threaded ? "free-threaded " : "", (unsigned int)(version >> 24 & 0xff),
		 (unsigned int)(version >> 16 & 0xff), (unsigned int)(version >> 8 & 0xff));
}

struct string {
	size_t at; /* where its text begins */
	uint64_t length;
	uint32_t kind; /* the size of a character */
};

/* Finds the text of a string object, of which `size` bytes were copied. False: there is none. */
static bool find_text(unsigned int version, const uint8_t *object, size_t size, struct string *s)
{
	const struct language_image *layout = layout_of(version);
	uint32_t state;
	bool ascii, compact;

	if (!layout || size < layout->python.string_text)
		return false;
	memcpy(&s->length, object + 16, sizeof(s->length));
	memcpy(&state, object + 32, sizeof(state));
	/*
	 * Two bits say whether it is interned, 16 in some releases of 3.14: then those are 0 that
	 * are of the kind, and whether it is compact, in all others.
	 */
	if (version >= 0x30e && !(state & 0xfffc))
		state >>= 14;
	s->kind = state >> 2 & 7;
	compact = state >> 5 & 1;
	ascii = state >> 6 & 1;
	/* A string that is not ASCII has the size and the address of its UTF-8 before. */
	s->at = layout->python.string_text + (ascii ? 0 : version == 0x30b ? 24 : 16);
	return compact && (s->kind == 1 || s->kind == 2 || s->kind == 4);
}

/* Writes the text of a string object, as `size` bytes of it were copied. */
static void read_text(unsigned int version, const uint8_t *object, size_t size, char *text)
{
	struct string s;
	size_t used = 0;
	uint32_t c;

	text[0] = '\0';
	if (!find_text(version, object, size, &s))
		return;
	for (uint64_t i = 0; i < s.length; i++, s.at += s.kind) {
		if (s.at + s.kind > size) {
			language_append(text, used, "...", false);
			return;
		}
		c = 0;
		memcpy(&c, object + s.at, s.kind);
		if (!language_put_utf8(text, &used, c))
			break;
	}
	text[used] = '\0';
}

/* Leaves the length of a string, its state and its text. */
static void trim_string(unsigned int version, uint8_t *object, unsigned short *size)
{
	struct string s;

	if (!find_text(version, object, *size, &s))
		return;
	memset(object, 0, 16);
	memset(object + 24, 0, 8);
	s.at = MIN(s.at, *size);
	memset(object + 36, 0, s.at - 36);
	if (s.length < (*size - s.at) / s.kind)
		*size = s.at + s.length * s.kind;
}

static void python_trim(struct language_code *code)
{
	trim_string(code->version, code->name, &code->name_bytes);
	trim_string(code->version, code->file, &code->file_bytes);
}

static void python_name(const struct language_code *code, char *name, char *file)
{
	read_text(code->version, code->name, code->name_bytes, name);
	read_text(code->version, code->file, code->file_bytes, file);
}

/* Reads a number of the line table: six bits a byte, the least first. */
static bool read_number(const struct language_code *code, size_t *at, uint32_t *number)
{
	*number = 0;
	for (unsigned int shift = 0; shift < 32 && *at < code->lines_bytes; shift += 6) {
		const uint8_t *lines = code->lines; /* there may be more than in a record */
		uint8_t byte = lines[(*at)++];

		*number |= (uint32_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			return true;
	}
	return false;
}

/* PEP 626, and Objects/locations.md of CPython's sources: entries that follow each other. */
static uint32_t python_line(const struct language_code *code, uint32_t instruction)
{
	uint32_t line = code->line, until = 0, number;
	const uint8_t *lines = code->lines; /* there may be more than in a record */
	size_t at = 0;

	while (at < code->lines_bytes) {
		uint8_t first = lines[at++], kind = first >> 3 & 15;

		if (!(first & 0x80))
			return 0;
		if (kind == 13 || kind == 14) {
			if (!read_number(code, &at, &number))
				return 0;
			line += number & 1 ? -(number >> 1) : number >> 1;
		} else if (kind >= 10 && kind <= 12) {
			line += kind - 10;
		}
		until += (first & 7) + 1;
		if (instruction < until)
			return kind == 15 || line > INT32_MAX ? 0 : line;
		while (at < code->lines_bytes && !(lines[at] & 0x80))
			at++; /* columns */
	}
	return 0;
}

/* CPython, 3.11 to 3.14. */
const struct language_description language_python = {
	.label = "python",
	.symbols = { "_PyRuntime", "PyCode_Type", "Py_Version" },
	.find = python_find,
	.name = python_name,
	.trim = python_trim,
	.line = python_line,
	.version = python_version,
	.interpreter = {
		.images = { "python", "python[23]*", "libpython[23]*.so*" },
		.names = "py::",
		.hint = "python -X perf (version 3.12 or later, built with frame pointers), recorded "
			"with -g, has Python's functions in the call stacks",
		.language = "Python",
		.builds = ", not free-threaded; or, from 3.12 on, with -X perf, if it has frame pointers",
		.major = 3,
		.minor_least = 11,
		.minor_most = 14,
	},
};
