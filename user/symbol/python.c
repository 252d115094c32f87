// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/python.h"

#include <elf.h>
#include <string.h>

#include "symbol/python_layouts.h"
#include "symbol/symbol_table.h"

static const struct python_layout *layout_of(unsigned int version)
{
	for (size_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++)
		if (python_layouts[i].version == version)
			return &python_layouts[i];
	return NULL;
}

/* Reads what a variable has in the file. Returns false if it has nothing there. */
static bool read_variable(const struct elf_file *file, uint64_t address, void *to, size_t size)
{
	GElf_Phdr segment;
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(file->elf, i, &segment) && segment.p_type == PT_LOAD &&
		    address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz &&
		    segment.p_filesz - (address - segment.p_vaddr) >= size)
			return elf_source_read(&file->source, to, size,
					       segment.p_offset + address - segment.p_vaddr) ==
			       size;
	return false;
}

void python_find(struct elf_file *file, struct language_image *image)
{
	enum {
		RUNTIME,
		CODE_TYPE,
		VERSION,
		SPECIFIC,
		WANTED
	};
	static const char *const names[WANTED] = {
		[RUNTIME] = "_PyRuntime",
		[CODE_TYPE] = "PyCode_Type",
		[VERSION] = "Py_Version",
		[SPECIFIC] = "_thread_db_pthread_specific",
	};
	uint64_t addresses[WANTED] = { 0 }, version, free_threaded;
	const struct python_layout *layout;
	struct symbol_reader reader;
	struct error ignored;
	GElf_Ehdr header;
	const char *name;
	GElf_Sym symbol;
	/* What libthread_db(3) asks for: bits of an element, elements, offset in struct pthread. */
	uint32_t specific[3];

	*image = (struct language_image){ 0 };
	if (!gelf_getehdr(file->elf, &header) || header.e_machine != EM_X86_64)
		return;
	if (symbol_reader_open(&reader, file, SHT_DYNSYM, &ignored) == 0)
		while (symbol_reader_next(&reader, &symbol, &name))
			for (size_t i = 0; i < WANTED; i++)
				if (GELF_ST_TYPE(symbol.st_info) == STT_OBJECT &&
				    symbol.st_shndx != SHN_UNDEF && strcmp(name, names[i]) == 0)
					addresses[i] = symbol.st_value;
	symbol_reader_close(&reader);
	if (addresses[SPECIFIC] &&
	    read_variable(file, addresses[SPECIFIC], specific, sizeof(specific)))
		image->thread_specific = specific[2];
	if (!addresses[RUNTIME] || !addresses[CODE_TYPE] || !addresses[VERSION] ||
	    !read_variable(file, addresses[VERSION], &version, sizeof(version)))
		return;
	layout = layout_of(version >> 16);
	if (!layout)
		return;
	/* From 3.13 on it begins with a table of offsets, and says whether threads share it freely.
	 */
	if (layout->version >= 0x30d &&
	    (!read_variable(file, addresses[RUNTIME] + 16, &free_threaded, sizeof(free_threaded)) ||
	     free_threaded))
		return;
	image->language = LANGUAGE_PYTHON;
	image->python = *layout;
	image->python.runtime = addresses[RUNTIME];
	image->python.code_type = addresses[CODE_TYPE];
}

/* Appends a code point in UTF-8, control characters as "?". */
static size_t put_utf8(char *text, size_t used, uint32_t c)
{
	if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
	    c > 0x10ffff)
		c = '?';
	if (c < 0x80) {
		text[used++] = c;
	} else if (c < 0x800) {
		text[used++] = 0xc0 | c >> 6;
		text[used++] = 0x80 | (c & 0x3f);
	} else if (c < 0x10000) {
		text[used++] = 0xe0 | c >> 12;
		text[used++] = 0x80 | (c >> 6 & 0x3f);
		text[used++] = 0x80 | (c & 0x3f);
	} else {
		text[used++] = 0xf0 | c >> 18;
		text[used++] = 0x80 | (c >> 12 & 0x3f);
		text[used++] = 0x80 | (c >> 6 & 0x3f);
		text[used++] = 0x80 | (c & 0x3f);
	}
	return used;
}

void python_text(unsigned int version, const uint8_t *object, size_t size,
		 char text[static PYTHON_TEXT_SIZE])
{
	const struct python_layout *layout = layout_of(version);
	uint64_t length;
	uint32_t state, kind, c;
	size_t at, used = 0;
	bool ascii, compact;

	text[0] = '\0';
	if (!layout || size < layout->string_text)
		return;
	memcpy(&length, object + 16, sizeof(length));
	memcpy(&state, object + 32, sizeof(state));
	/*
	 * Two bits say whether it is interned, 16 in some releases of 3.14: then those are 0 that
	 * are of the kind, and whether it is compact, in all others.
	 */
	if (version >= 0x30e && !(state & 0xfffc))
		state >>= 14;
	kind = state >> 2 & 7;
	compact = state >> 5 & 1;
	ascii = state >> 6 & 1;
	if (!compact || (kind != 1 && kind != 2 && kind != 4))
		return;
	/* A string that is not ASCII has the size and the address of its UTF-8 before. */
	at = layout->string_text + (ascii ? 0 : version == 0x30b ? 24 : 16);
	for (uint64_t i = 0; i < length; i++, at += kind) {
		if (at + kind > size || used + 8 > PYTHON_TEXT_SIZE) {
			memcpy(text + used, "...", 3);
			used += 3;
			break;
		}
		c = 0;
		memcpy(&c, object + at, kind);
		used = put_utf8(text, used, c);
	}
	text[used] = '\0';
}

/* Reads a number of the line table: six bits a byte, the least first. */
static bool read_number(const struct language_code *code, size_t *at, uint32_t *number)
{
	*number = 0;
	for (unsigned int shift = 0; shift < 32 && *at < code->lines_bytes; shift += 6) {
		uint8_t byte = code->lines[(*at)++];

		*number |= (uint32_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			return true;
	}
	return false;
}

/* PEP 626, and Objects/locations.md of CPython's sources: entries that follow each other. */
uint32_t python_line(const struct language_code *code, uint32_t instruction)
{
	uint32_t line = code->line, until = 0, number;
	size_t at = 0;

	if (instruction == LANGUAGE_INSTRUCTION_UNKNOWN)
		return code->line;
	while (at < code->lines_bytes) {
		uint8_t first = code->lines[at++], kind = first >> 3 & 15;

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
		while (at < code->lines_bytes && !(code->lines[at] & 0x80))
			at++; /* columns */
	}
	return 0;
}
