// SPDX-License-Identifier: GPL-2.0-only
#include "script/language.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "script/description.h"
#include "symbol/symbol_table.h"
#include "util/clock.h"
#include "util/utf8.h"

static const struct language_description *const languages[LANGUAGES] = {
#define LANGUAGE_DESCRIPTION(number, name) [LANGUAGE_##number] = &language_##name,
	LANGUAGE_LIST(LANGUAGE_DESCRIPTION)
#undef LANGUAGE_DESCRIPTION
};

bool language_read_variable(const struct elf_file *file, uint64_t address, void *to, size_t size)
{
	uint64_t offset;

	return elf_address_bytes(file->elf, address, &offset) >= size &&
	       elf_source_read(&file->source, to, size, offset) == size;
}

/*
 * Where the C library says to debuggers that a thread has its thread-specific data: bits of an
 * element, number of elements, offset in struct pthread (libthread_db's td_thr_tsd).
 */
static const char thread_specific[] = "_thread_db_pthread_specific";

/* All 0: the file is not for this kind of machine, or has no such symbols. */
static void find_symbols(struct elf_file *file,
			 struct language_symbol symbols[static LANGUAGES][LANGUAGE_SYMBOLS_MAX],
			 struct language_symbol *specific)
{
	struct symbol_reader reader;
	struct error ignored;
	GElf_Ehdr header;
	const char *name;
	GElf_Sym symbol;

	memset(symbols, 0, sizeof(*symbols) * LANGUAGES);
	*specific = (struct language_symbol){ 0 };
	if (!gelf_getehdr(file->elf, &header) || header.e_machine != EM_X86_64)
		return;
	if (symbol_reader_open(&reader, file, SHT_DYNSYM, &ignored) == 0)
		while (symbol_reader_next(&reader, &symbol, &name)) {
			const struct language_symbol found = { symbol.st_value, symbol.st_size };

			if (symbol.st_shndx == SHN_UNDEF ||
			    (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT &&
			     GELF_ST_TYPE(symbol.st_info) != STT_FUNC))
				continue;
			if (strcmp(name, thread_specific) == 0)
				*specific = found;
			for (int l = LANGUAGE_NONE + 1; l < LANGUAGES; l++)
				for (int i = 0;
				     i < LANGUAGE_SYMBOLS_MAX && languages[l]->symbols[i]; i++)
					if (strcmp(name, languages[l]->symbols[i]) == 0)
						symbols[l][i] = found;
		}
	symbol_reader_close(&reader);
}

void language_find(struct elf_file *file, struct language_image *image)
{
	struct language_symbol symbols[LANGUAGES][LANGUAGE_SYMBOLS_MAX], specific;
	uint32_t descriptor[3];

	*image = (struct language_image){ 0 };
	find_symbols(file, symbols, &specific);
	for (int l = LANGUAGE_NONE + 1; l < LANGUAGES && !image->language; l++)
		languages[l]->find(file, symbols[l], image);
	if (specific.address &&
	    language_read_variable(file, specific.address, descriptor, sizeof(descriptor)))
		image->thread_specific = descriptor[2];
}

/*
 * Most that is read of a file, for a recording that waits for it: some 50 times Python's symbols.
 * Bound: files: bytes and CPU time for finding whether an image is an interpreter; then: it is
 * taken for none: its scripts have no names; seen: not seen.
 */
#define FILE_BYTES ((uint64_t)16 * 1024 * 1024)
#define FILE_NS	   (100 * NS_PER_MS)

bool language_open_file(int fd, struct read_budget *budget, struct elf_file *file)
{
	struct error ignored;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	*budget = (struct read_budget){
		.bytes = FILE_BYTES,
		.memory = FILE_BYTES,
		.until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + FILE_NS,
	};
	return own >= 0 && elf_file_open(file, own, budget, &ignored) == 0;
}

bool language_is_interpreter(int fd)
{
	struct read_budget budget;
	struct language_image image;
	struct elf_file file;

	if (!language_open_file(fd, &budget, &file))
		return false;
	language_find(&file, &image);
	elf_file_close(&file);
	return image.language != LANGUAGE_NONE;
}

void language_version(int fd, char text[static LANGUAGE_VERSION_SIZE])
{
	struct language_symbol symbols[LANGUAGES][LANGUAGE_SYMBOLS_MAX], specific;
	struct read_budget budget;
	struct elf_file file;

	text[0] = '\0';
	if (!language_open_file(fd, &budget, &file))
		return;
	find_symbols(&file, symbols, &specific);
	for (int l = LANGUAGE_NONE + 1; l < LANGUAGES && !text[0]; l++)
		if (languages[l]->version)
			languages[l]->version(&file, symbols[l], text);
	elf_file_close(&file);
}

void language_name(const struct language_code *code, char name[static LANGUAGE_TEXT_SIZE],
		   char file[static LANGUAGE_TEXT_SIZE])
{
	name[0] = file[0] = '\0';
	if (code->language > LANGUAGE_NONE && code->language < LANGUAGES)
		languages[code->language]->name(code, name, file);
}

void language_trim(struct language_code *code)
{
	if (code->language > LANGUAGE_NONE && code->language < LANGUAGES)
		languages[code->language]->trim(code);
}

uint32_t language_line(const struct language_code *code, uint32_t instruction)
{
	if (instruction == LANGUAGE_INSTRUCTION_UNKNOWN)
		return code->line;
	if (code->language == LANGUAGE_NONE || code->language >= LANGUAGES)
		return 0;
	return languages[code->language]->line ? languages[code->language]->line(code, instruction)
					       : instruction;
}

const char *language_label(unsigned int language)
{
	return language > LANGUAGE_NONE && language < LANGUAGES ? languages[language]->label : "?";
}

const struct interpreter *language_interpreter(enum language language)
{
	return &languages[language]->interpreter;
}

bool language_put_utf8(char text[static LANGUAGE_TEXT_SIZE], size_t *used, uint32_t c)
{
	unsigned int size;

	if (*used + 8 > LANGUAGE_TEXT_SIZE) {
		memcpy(text + *used, "...", 3);
		*used += 3;
		return false;
	}
	if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
	    c > 0x10ffff)
		c = '?';
	size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	/* As many ones as bytes, a zero, and the code's upper bits. */
	text[(*used)++] = size == 1 ? c : 0xf00 >> size | c >> 6 * (size - 1);
	while (--size)
		text[(*used)++] = 0x80 | (c >> 6 * (size - 1) & 0x3f);
	return true;
}

size_t language_append(char text[static LANGUAGE_TEXT_SIZE], size_t used, const char *from,
		       bool utf8)
{
	while (*from) {
		uint32_t code = (uint8_t)*from;
		size_t size = utf8 ? utf8_decode(from, &code) : 1;

		if (!language_put_utf8(text, &used, size ? code : '?'))
			break;
		from += size ?: 1;
	}
	text[used] = '\0';
	return used;
}
