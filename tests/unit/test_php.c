// SPDX-License-Identifier: GPL-2.0-only
/* PHP's strings as they are in its memory, the names made of them, and the interpreter's image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "language_fixture.h"

/* --- Names --- */

/* Writes a string object with a text of `length` bytes. Returns its size. */
static size_t put_string(uint8_t *object, const char *text, uint64_t length)
{
	memset(object, 0, PHP_STRING_TEXT);
	memcpy(object + PHP_STRING_HASH + 8, &length, sizeof(length));
	memcpy(object + PHP_STRING_TEXT, text, length);
	return PHP_STRING_TEXT + length;
}

static struct language_code code_of(enum php_kind kind, const char *class, const char *name,
				    const char *file)
{
	struct language_code code = { .language = LANGUAGE_PHP, .version = 0x802, .kind = kind };

	if (class)
		code.lines_bytes = put_string(code.lines, class, strlen(class));
	if (name)
		code.name_bytes = put_string(code.name, name, strlen(name));
	if (file)
		code.file_bytes = put_string(code.file, file, strlen(file));
	return code;
}

static void assert_named(const struct language_code *code, const char *name, const char *file)
{
	char ours[LANGUAGE_TEXT_SIZE], their_file[LANGUAGE_TEXT_SIZE];

	language_name(code, ours, their_file);
	assert_string_equal(ours, name);
	assert_string_equal(their_file, file);
}

static void test_names(void **state)
{
	static const struct {
		enum php_kind kind;
		const char *class, *name, *file, *expected;
	} rows[] = {
		{ PHP_FUNCTION, NULL, "work", "/a.php", "work" },
		{ PHP_FUNCTION, "A", "work", "/a.php", "A::work" },
		{ PHP_FUNCTION, "N\\A", "über", "/a.php", "N\\A::über" },
		{ PHP_FUNCTION, NULL, "array_map", NULL, "array_map" },
		{ PHP_FUNCTION, "A", "{closure}", "/a.php", "A::{closure}" },
		/* From 8.4 on */
		{ PHP_FUNCTION, "A", "{closure:A::work():12}", "/a.php", "{closure:A::work():12}" },
		{ PHP_FUNCTION, "A", NULL, "/a.php", "" },
		{ PHP_MAIN, NULL, NULL, "/a.php", "{main}" },
		{ PHP_INCLUDED, NULL, NULL, "/b/a.php", "include a.php" },
		{ PHP_INCLUDED, NULL, NULL, "a.php", "include a.php" },
		{ PHP_EVAL, NULL, NULL, "/a.php(3) : eval()'d code", "eval" },
		/* What no PHP would have there */
		{ PHP_FUNCTION, NULL, "a\x1b[31mb\n", "/a\x7f", "a?[31mb?" },
		{ PHP_FUNCTION, NULL, "latin-1 \xfc!", "/a", "latin-1 ?!" },
	};
	struct language_code code;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		code = code_of(rows[i].kind, rows[i].class, rows[i].name, rows[i].file);
		assert_named(&code, rows[i].expected,
			     !rows[i].file			   ? ""
			     : strcmp(rows[i].file, "/a\x7f") == 0 ? "/a?"
								   : rows[i].file);
	}
}

static void test_class_without_name(void **state)
{
	static const char class[] = "class@anonymous\0/a.php:3$0";
	struct language_code code = code_of(PHP_FUNCTION, NULL, "work", "/a.php");

	(void)state;
	code.lines_bytes = put_string(code.lines, class, sizeof(class) - 1);
	assert_named(&code, "class@anonymous::work", "/a.php");
}

static void test_cut_off_strings(void **state)
{
	struct language_code code = code_of(PHP_FUNCTION, NULL, "abcdef", NULL);
	char name[LANGUAGE_TEXT_SIZE], file[LANGUAGE_TEXT_SIZE], text[LANGUAGE_FILE_BYTES];

	(void)state;
	code.name_bytes = PHP_STRING_TEXT + 4;
	assert_named(&code, "abcd...", "");
	for (code.name_bytes = 0; code.name_bytes < PHP_STRING_TEXT; code.name_bytes++)
		assert_named(&code, "", "");
	/* A class and a function with the longest names are longer than a text may be. */
	memset(text, 'x', sizeof(text));
	code.name_bytes = put_string(code.name, text, LANGUAGE_NAME_BYTES - PHP_STRING_TEXT);
	code.lines_bytes = put_string(code.lines, text, LANGUAGE_NAME_BYTES - PHP_STRING_TEXT);
	code.file_bytes = put_string(code.file, text, LANGUAGE_FILE_BYTES - PHP_STRING_TEXT);
	memset(code.file + PHP_STRING_HASH + 8, 0xff, 8);
	language_name(&code, name, file);
	assert_true(strlen(name) < LANGUAGE_TEXT_SIZE && strlen(file) < LANGUAGE_TEXT_SIZE);
	assert_string_equal(name + strlen(name) - 4, "x...");
	assert_string_equal(file + strlen(file) - 4, "x...");
	code.kind = PHP_INCLUDED;
	language_name(&code, name, file);
	assert_true(strlen(name) < LANGUAGE_TEXT_SIZE);
}

static void test_lines(void **state)
{
	struct language_code code = { .language = LANGUAGE_PHP, .line = 7 };

	(void)state;
	assert_int_equal(language_line(&code, 12), 12);
	assert_int_equal(language_line(&code, LANGUAGE_INSTRUCTION_UNKNOWN), 7);
}

/* --- The interpreter's image --- */

static void test_built_images(void **state)
{
	static const char source[] = "#ifdef VERSION\n"
				     "const char header[] = \"X-Powered-By: PHP/\" VERSION;\n"
				     "#endif\n"
				     "#ifndef ZTS\n"
				     "char executor_globals[SIZE];\n"
				     "#endif\n"
				     "void *zend_ce_generator;\n"
				     "int execute_ex(int i) { return i * 3; }\n";
	static const char *const others[] = {
		"-O2 -DSIZE=1984 -DVERSION='\"8.0.30\"'",
		"-O2 -DSIZE=1984 -DVERSION='\"8.6.0\"'",
		"-O2 -DSIZE=1984 -DVERSION='\"7.4.33\"'",
		"-O2 -DSIZE=1984 -DVERSION='\"ten\"'",
		"-O2 -DSIZE=1984",
		"-O2 -DSIZE=8 -DVERSION='\"8.2.1\"'",
		"-O2 -DZTS -DVERSION='\"8.2.1\"'",
	};
	struct language_image image;

	(void)state;
	write_file("image.c", source, sizeof(source) - 1);
	image = find_built("-O2 -DSIZE=1984 -DVERSION='\"8.5.0RC1\"'");
#ifdef __x86_64__
	assert_int_equal(image.language, LANGUAGE_PHP);
	assert_int_equal(image.version, 0x805);
	assert_true(image.php.globals && image.php.generator && image.php.function &&
		    image.php.function_size);
	assert_int_equal(image.php.cold_size, 0);
	assert_int_equal(image.php.frameless, 0);
#endif
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		image = find_built(others[i]);
		assert_int_equal(image.language, LANGUAGE_NONE);
	}
}

static void test_installed_php(void **state)
{
	static const char php[] = "/usr/bin/php";
	unsigned int major = 0, minor = 0, threads = 0;
	struct language_image image;
	FILE *out;

	(void)state;
	if (access(php, X_OK))
		skip();
	out = popen("/usr/bin/php -n -r 'echo PHP_MAJOR_VERSION, \" \", PHP_MINOR_VERSION, \" \", "
		    "PHP_ZTS;'",
		    "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out, "%u %u %u", &major, &minor, &threads), 3);
	pclose(out);
	image = find(php);
	if (major != 8 || minor < 1 || minor > 5 || threads) {
		assert_int_equal(image.language, LANGUAGE_NONE);
		return;
	}
#ifdef __x86_64__
	assert_int_equal(image.version, major << 8 | minor);
	/* GCC puts the code of errors elsewhere. */
	assert_in_range(image.php.cold_size, 256, 65536);
	assert_true(image.php.cold + image.php.cold_size <= image.php.function ||
		    image.php.cold >= image.php.function + image.php.function_size);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),		cmocka_unit_test(test_class_without_name),
		cmocka_unit_test(test_cut_off_strings), cmocka_unit_test(test_lines),
		cmocka_unit_test(test_built_images),	cmocka_unit_test(test_installed_php),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
