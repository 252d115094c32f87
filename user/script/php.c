// SPDX-License-Identifier: GPL-2.0-only
#include "script/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/php_layouts.h"
#include "symbol/cfi/cfi.h"

/*
 * Far more than any PHP has.
 * Bound: files: bytes of PHP's constants, and of one function, that tell its layout; then: its
 * scripts have no names; seen: in a warning.
 */
#define READ_ONLY_BYTES_MAX ((size_t)64 << 20)
#define FUNCTION_BYTES_MAX  ((size_t)1 << 20)

/*
 * Reads the version; false: unknown. No symbol has it before 8.3, but all programs, and modules of
 * web servers, have the field of a page's header by which PHP names itself.
 */
static bool read_version(const struct elf_file *file, unsigned int version[static 3])
{
	static const char field[] = "X-Powered-By: PHP/";
	const char *found = NULL;
	bool is_read = false;
	size_t size;
	char *bytes = elf_section_bytes(file, ".rodata", READ_ONLY_BYTES_MAX, &size);

	if (bytes && size) {
		bytes[size - 1] = '\0';
		found = memmem(bytes, size, field, strlen(field));
	}
	if (found)
		is_read = sscanf(found + strlen(field), "%3u.%3u.%3u", &version[0], &version[1],
				 &version[2]) == 3;
	free(bytes);
	return is_read;
}

/*
 * Compilers put code of a function that seldom runs at another address, with call frame information
 * of its own, but with no symbol in a stripped file. It is the function into which execute_ex()
 * jumps, and most: other functions would be called. Bytes that are no jumps lead anywhere.
 */
static void find_cold_part(const struct elf_file *file, struct php_layout *layout)
{
	struct cfi_functions functions;
	const struct cfi_function *function;
	uint32_t *jumps = NULL, most = 0;
	uint8_t *code = NULL;
	struct error ignored;

	if (layout->function_size > FUNCTION_BYTES_MAX)
		return;
	if (cfi_functions_read(&functions, file, &ignored) == 0 && functions.count) {
		code = malloc(layout->function_size);
		jumps = calloc(functions.count, sizeof(*jumps));
	}
	if (code && jumps &&
	    language_read_variable(file, layout->function, code, layout->function_size))
		for (uint32_t i = 0; i + 6 <= layout->function_size; i++) {
			bool conditional = code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80;
			uint32_t next = i + (conditional ? 6 : 5);
			uint64_t target;
			int32_t distance;

			if (!conditional && code[i] != 0xe9)
				continue;
			memcpy(&distance, code + next - 4, sizeof(distance));
			target = layout->function + next + distance;
			function = cfi_functions_find(&functions, target);
			if (!function || function->start == target ||
			    function->start == layout->function ||
			    ++jumps[function - functions.all] <= most)
				continue;
			most = jumps[function - functions.all];
			layout->cold = function->start;
			layout->cold_size = function->limit - function->start;
		}
	if (most <
	    8) /* none of those that were compared had less than 50, and others more than 1 */
		layout->cold = layout->cold_size = 0;
	free(code);
	free(jumps);
	cfi_functions_free(&functions);
}

static void php_find(struct elf_file *file, const struct language_symbol *symbols,
		     struct language_image *image)
{
	const struct language_symbol *globals = &symbols[0], *function = &symbols[1];
	const struct language_image *layout = NULL;
	unsigned int version[3];

	/* With threads (ZTS), each has globals of its own, and there is no such variable. */
	if (!globals->address || !function->address || !function->size ||
	    function->size > UINT32_MAX || !symbols[2].address || !read_version(file, version))
		return;
	for (size_t i = 0; i < sizeof(php_layouts) / sizeof(*php_layouts); i++)
		if (php_layouts[i].version == (version[0] << 8 | version[1]))
			layout = &php_layouts[i];
	if (!layout || globals->size < layout->php.current + 8U)
		return;
	*image = *layout;
	image->php.globals = globals->address;
	image->php.function = function->address;
	image->php.function_size = function->size;
	image->php.generator = symbols[2].address;
	image->php.frameless = symbols[3].address;
	find_cold_part(file, &image->php);
}

static void php_version(const struct elf_file *file, const struct language_symbol *symbols,
			char text[static LANGUAGE_VERSION_SIZE])
{
	unsigned int version[3];

	if (symbols[1].address && read_version(file, version))
		snprintf(text, LANGUAGE_VERSION_SIZE, "PHP %u.%u.%u%s", version[0], version[1],
			 version[2], symbols[0].address ? "" : " with threads (ZTS)");
}

/*
 * Appends the text of a string object to text[used], as `size` bytes of it were copied, and returns
 * what is used then. What follows a null byte is not shown: of a class without a name PHP itself
 * does not.
 */
static size_t put_string(const uint8_t *object, size_t size, char *text, size_t used)
{
	char bytes[LANGUAGE_FILE_BYTES + sizeof("...")];
	uint64_t length;

	if (size < PHP_STRING_TEXT || size > LANGUAGE_FILE_BYTES)
		return used;
	memcpy(&length, object + PHP_STRING_HASH + 8, sizeof(length));
	size -= PHP_STRING_TEXT;
	memcpy(bytes, object + PHP_STRING_TEXT, MIN(length, size));
	strcpy(bytes + MIN(length, size), length > size ? "..." : "");
	return language_append(text, used, bytes, true);
}

/* Leaves the length of a string, and its text. Returns how many bytes these have. */
static size_t trim_string(uint8_t *object, size_t size)
{
	uint64_t length;

	if (size < PHP_STRING_TEXT)
		return size;
	memset(object, 0, PHP_STRING_HASH + 8);
	memcpy(&length, object + PHP_STRING_HASH + 8, sizeof(length));
	return length < size - PHP_STRING_TEXT ? PHP_STRING_TEXT + length : size;
}

static void php_trim(struct language_code *code)
{
	code->name_bytes = trim_string(code->name, code->name_bytes);
	code->file_bytes = trim_string(code->file, code->file_bytes);
	code->lines_bytes = trim_string(code->lines, code->lines_bytes);
}

static void php_name(const struct language_code *code, char *name, char *file)
{
	static const char closure[] = "{closure:";
	const uint8_t *text = code->name + PHP_STRING_TEXT;
	size_t used = 0;

	put_string(code->file, code->file_bytes, file, 0);
	switch (code->kind) {
	case PHP_MAIN:
		strcpy(name, "{main}");
		return;
	case PHP_INCLUDED:
		/* PHP says `include`; which file it is makes call trees of large programs readable.
		 */
		snprintf(name, LANGUAGE_TEXT_SIZE, "include %.400s",
			 strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
		return;
	case PHP_EVAL:
		strcpy(name, "eval");
		return;
	}
	if (code->name_bytes < PHP_STRING_TEXT)
		return;
	/* From 8.4 on, a closure's name has where it is. */
	if (code->name_bytes < PHP_STRING_TEXT + strlen(closure) ||
	    memcmp(text, closure, strlen(closure)) != 0)
		used = put_string(code->lines, code->lines_bytes, name, 0);
	if (used) {
		memcpy(name + used, "::", 3);
		used += 2;
	}
	put_string(code->name, code->name_bytes, name, used);
}

/* PHP 8.1 to 8.5, without threads (NTS). */
const struct language_description language_php = {
	.label = "php",
	.symbols = { "executor_globals", "execute_ex", "zend_ce_generator", "zend_flf_functions" },
	.find = php_find,
	.name = php_name,
	.trim = php_trim,
	.version = php_version,
	.interpreter = {
		.images = { "php", "php[0-9]*", "php-*", "libphp*.so" },
		.hint = "only PHP 8.1 to 8.5, without threads (NTS), has its functions in the call "
			"stacks",
		.language = "PHP",
		.builds = " without threads (NTS)",
		.major = 8,
		.minor_least = 1,
		.minor_most = 5,
	},
};
