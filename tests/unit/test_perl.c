// SPDX-License-Identifier: GPL-2.0-only
/* Perl's names as they are in its memory, and the interpreter's image. */
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

static char name[LANGUAGE_TEXT_SIZE], file[LANGUAGE_TEXT_SIZE];

static struct language_code new_code(unsigned int kind)
{
	return (struct language_code){ .language = LANGUAGE_PERL, .kind = kind };
}

/* Writes a name key. */
static void put_key(uint8_t *key, const char *text, uint32_t length, uint8_t flags)
{
	uint8_t whole[PERL_HEK_KEY + 1024] = { 0 };

	assert_true(length < 1000);
	memcpy(whole + PERL_HEK_LEN, &length, sizeof(length));
	memcpy(whole + PERL_HEK_KEY, text, strlen(text));
	whole[PERL_HEK_KEY + length + 1] = flags;
	memcpy(key, whole, PERL_NAME_BYTES);
}

/* Names a function. */
static const char *name_of(const char *package, const char *sub, uint8_t flags)
{
	struct language_code code = new_code(PERL_SUB);

	if (package)
		put_key(code.name, package, strlen(package), 0);
	put_key(code.name + PERL_NAME_BYTES, sub, strlen(sub), flags);
	code.name_bytes = sizeof(code.name);
	language_name(&code, name, file);
	return name;
}

static void test_names_of_functions(void **state)
{
	(void)state;
	assert_string_equal(name_of("main", "work", 0), "main::work");
	assert_string_equal(name_of("Some::Class", "new", 0), "Some::Class::new");
	assert_string_equal(name_of(NULL, "lexical", 0), "lexical");
	/* Text that fits into Latin-1 is in it, all other is UTF-8. */
	assert_string_equal(name_of("main",
				    "\xfc"
				    "ber",
				    0),
			    "main::\xc3\xbc"
			    "ber");
	assert_string_equal(name_of("main", "\xe8\xa8\x88", PERL_HEK_UTF8), "main::\xe8\xa8\x88");
	/* Not UTF-8, though it says so */
	assert_string_equal(name_of("main", "a\xff", PERL_HEK_UTF8), "main::a?");
	assert_string_equal(name_of("main", "\x1b[m\n\x9b", 0), "main::?[m??");
	assert_string_equal(name_of("", "", 0), "");
}

static void test_cut_off_names(void **state)
{
	struct language_code code = new_code(PERL_SUB);
	char text[1000] = "";

	(void)state;
	memset(text, 'x', 160);
	name_of("main", text, 0);
	assert_int_equal(strlen(name), strlen("main::...") + PERL_NAME_BYTES - PERL_HEK_KEY);
	assert_string_equal(name + strlen(name) - 4, "x...");
	/* As long as there is room for */
	text[PERL_NAME_BYTES - PERL_HEK_KEY - 2] = '\0';
	name_of("main", text, 0);
	assert_string_equal(name + strlen("main::"), text);
	text[150] = 'x';
	/* Each of both becomes longer as UTF-8, and they have no room together. */
	memset(text, 0xe9, 150);
	name_of(text, text, 0);
	assert_true(strlen(name) < LANGUAGE_TEXT_SIZE);
	/* Lengths that are none */
	memset(code.name, 0xff, sizeof(code.name));
	code.name_bytes = sizeof(code.name);
	language_name(&code, name, file);
	assert_true(strlen(name) < LANGUAGE_TEXT_SIZE);
	/* Nothing was read. */
	code.name_bytes = 0;
	language_name(&code, name, file);
	assert_string_equal(name, "");
}

static void test_names_of_files(void **state)
{
	struct language_code code = new_code(PERL_PROGRAM);

	(void)state;
	strcpy((char *)code.file, "/srv/a.pl");
	code.file_bytes = strlen("/srv/a.pl") + 1;
	language_name(&code, name, file);
	assert_string_equal(name, "{main}");
	assert_string_equal(file, "/srv/a.pl");
	code.kind = PERL_REQUIRE;
	strcpy((char *)code.name, "Some/Class.pm");
	code.name_bytes = strlen("Some/Class.pm") + 1;
	language_name(&code, name, file);
	assert_string_equal(name, "require Some/Class.pm");
	code.kind = PERL_EVAL;
	strcpy((char *)code.file, "(eval 417)");
	code.file_bytes = strlen("(eval 417)") + 1;
	language_name(&code, name, file);
	assert_string_equal(name, "(eval)");
	assert_string_equal(file, "(eval)");
	code.kind = PERL_PROGRAM + 1;
	language_name(&code, name, file);
	assert_string_equal(name, "");
	/* A text without an end */
	memset(code.file, 'x', sizeof(code.file));
	code.file_bytes = sizeof(code.file);
	language_name(&code, name, file);
	assert_true(strlen(file) < LANGUAGE_TEXT_SIZE);
	assert_string_equal(file + strlen(file) - 3, "...");
}

static void test_lines(void **state)
{
	struct language_code code = new_code(PERL_SUB);

	(void)state;
	code.line = 5;
	assert_int_equal(language_line(&code, 17), 17);
	assert_int_equal(language_line(&code, LANGUAGE_INSTRUCTION_UNKNOWN), 5);
}

/* --- The interpreter's image --- */

static void test_built_images(void **state)
{
	static const char source[] = "#ifndef OPTIONS\n"
				     "#define OPTIONS \" MULTIPLICITY USE_ITHREADS\"\n"
				     "#endif\n"
				     "#ifndef NO_THREADS\n"
				     "unsigned PL_thr_key;\n"
				     "#endif\n"
				     "const unsigned PL_opargs[OPERATIONS] = { 1 };\n"
				     "const char PL_bincompat_options[] = OPTIONS;\n"
				     "int Perl_runops_standard(void) { return 1; }\n"
				     "int perl_run(void) { return 2; }\n"
				     "int Perl_call_sv(void) { return 3; }\n"
				     "int Perl_eval_sv(void) { return 4; }\n"
				     "int Perl_amagic_call(void) { return 5; }\n";
	struct language_image image;

	(void)state;
	write_file("image.c", source, sizeof(source) - 1);
	image = find_built("-DOPERATIONS=414");
#ifdef __x86_64__
	assert_int_equal(image.language, LANGUAGE_PERL);
	assert_int_equal(image.version, 5 << 8 | 36);
	assert_true(image.perl.key && image.perl.runops.address && image.perl.runops.size &&
		    image.perl.run.address != image.perl.runops.address);
	for (int i = 0; i < PERL_CALLERS; i++)
		assert_true(image.perl.callers[i].address && image.perl.callers[i].size);
	assert_int_equal(find_built("-DOPERATIONS=426").version, 5 << 8 | 42);
#endif
	/* Versions that are unknown, and builds that have other structures */
	assert_int_equal(find_built("-DOPERATIONS=400").language, LANGUAGE_NONE);
	assert_int_equal(find_built("-DOPERATIONS=430").language, LANGUAGE_NONE);
	assert_int_equal(find_built("-DOPERATIONS=414 -DNO_THREADS").language, LANGUAGE_NONE);
	image = find_built("-DOPERATIONS=414 -DOPTIONS='\" USE_ITHREADS USE_LONG_DOUBLE\"'");
	assert_int_equal(image.language, LANGUAGE_NONE);
	image = find_built("-DOPERATIONS=414 -DOPTIONS='\" DEBUGGING USE_ITHREADS\"'");
	assert_int_equal(image.language, LANGUAGE_NONE);
}

static void test_installed_perl(void **state)
{
	static const char perl[] = "/usr/bin/perl";
	unsigned int version = 0, threads = 0;
	struct language_image image;
	FILE *out;

	(void)state;
	if (access(perl, X_OK))
		skip();
	out = popen("/usr/bin/perl -MConfig -e 'print int(($] - 5) * 1000 + .5), \" \", "
		    "$Config{useithreads} ? 1 : 0'",
		    "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out, "%u %u", &version, &threads), 2);
	pclose(out);
	image = find(perl);
	if (version < 36 || version > 42 || !threads)
		assert_int_equal(image.language, LANGUAGE_NONE);
#ifdef __x86_64__
	else if (image.language) /* else it is in libperl */
		assert_int_equal(image.version, 5 << 8 | version);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_functions), cmocka_unit_test(test_cut_off_names),
		cmocka_unit_test(test_names_of_files),	   cmocka_unit_test(test_lines),
		cmocka_unit_test(test_built_images),	   cmocka_unit_test(test_installed_perl),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
