// SPDX-License-Identifier: GPL-2.0-only
/* Text escaped and shortened for printing: user/report/text.h. */
#include <string.h>

#include "print_fixture.h"
#include "report/text.h"

#define COUNT "\u6570\u3048\u308b" /* three characters of two columns */
#define CAFE  "cafe\u0301"	   /* with an accent that combines */
#define SMILE "\U0001f600"

static void assert_visible(const char *raw, const char *expected)
{
	FILE *out = print_begin();
	char *visible = text_visible(raw);

	assert_non_null(visible);
	assert_string_equal(visible, expected);
	free(visible);
	text_print(raw, out);
	assert_string_equal(print_end(out, 0), expected);
}

static void test_text_visible(void **state)
{
	char raw[1000] = "", expected[4000] = "";

	(void)state;
	for (size_t i = 0; i < 999; i++) {
		raw[i] = i % 5 ? 'a' : '\n';
		strcat(expected, i % 5 ? "a" : "\\x0a");
	}
	assert_visible(raw, expected);
	assert_visible("", "");
	assert_visible("operator new[](unsigned long) \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		       "operator new[](unsigned long) \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_visible("\t\n\r\x1b\x7f", "\\x09\\x0a\\x0d\\x1b\\x7f");
	assert_visible("\xc2\x80\xc2\x9f\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0");
	assert_visible("\xe2\x81\xa6", "\\xe2\\x81\\xa6"); /* U+2066, an isolate */
	assert_visible("\xef\xbb\xbf", "\\xef\\xbb\\xbf"); /* U+FEFF */
	assert_visible("\xe2\x80", "\\xe2\\x80");	   /* truncated */
	assert_visible("\xf0\x9f\x98", "\\xf0\\x9f\\x98");
	assert_visible("\xc0\xaf", "\\xc0\\xaf"); /* overlong */
	assert_visible("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	assert_visible("\xed\xa0\x80", "\\xed\\xa0\\x80");	    /* a surrogate */
	assert_visible("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	assert_visible("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
	assert_visible("\x80z\xc3z", "\\x80z\\xc3z");
	assert_int_equal(text_columns("a\n\xc3\xa9\xe2\x80\xae"), 1 + 4 + 1 + 12);
	assert_int_equal(text_columns(COUNT CAFE SMILE), 6 + 4 + 2);
}

/* Any bytes become printable ASCII or valid UTF-8, of the computed width. */
static void test_text_any_bytes(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char raw[24] = "", *visible, *again, *utf8;

		for (size_t i = 0; i < sizeof(raw) - 1; i++) {
			seed = seed * 1664525 + 1013904223;
			raw[i] = seed >> 24;
			if (i % 3)
				raw[i] |= 0x80;
		}
		visible = text_visible(raw);
		again = text_visible(visible);
		assert_string_equal(visible, again);
		assert_int_equal(text_columns(raw), text_columns(visible));
		text_shorten(visible, 4 + seed % 20);
		assert_true(text_columns(visible) <= 4 + seed % 20);
		free(again);
		again = text_visible(visible);
		assert_string_equal(visible, again);
		utf8 = text_utf8(raw);
		assert_null(strpbrk(utf8, "\xc0\xc1\xf5\xff"));
		free(utf8);
		free(visible);
		free(again);
	}
}

static void assert_shortened(void (*shorten)(char *visible, size_t columns), const char *text,
			     size_t columns, const char *expected)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	shorten(copy, columns);
	assert_string_equal(copy, expected);
	free(copy);
}

static void test_text_shorten(void **state)
{
	(void)state;
	assert_shortened(text_shorten, "", 4, "");
	assert_shortened(text_shorten, "abcd", 4, "abcd");
	assert_shortened(text_shorten, "abcde", 4, "a...");
	assert_shortened(text_shorten, "abcdefghij", 9, "abc...hij");
	assert_shortened(text_shorten, "abcdefghij", 8, "abc...ij");
	assert_shortened(text_shorten, "abcdefghij", 10, "abcdefghij");
	assert_shortened(text_shorten, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5,
			 "\xc3\xa9...\xc3\xa9");
	assert_shortened(text_shorten, "abc(defghi", 9, "abc...ghi");
	assert_shortened(text_shorten, "abc)(defghi", 9, "abc...ghi");
	assert_shortened(text_shorten, COUNT, 6, COUNT);
	assert_shortened(text_shorten, COUNT, 5, "...");
	assert_shortened(text_shorten, COUNT COUNT, 9, "\u6570...\u308b");
	assert_shortened(text_shorten, "a" COUNT COUNT, 9, "a\u6570...\u308b");
	assert_shortened(text_shorten, CAFE CAFE CAFE, 11, CAFE "..." CAFE);
}

static void test_shorten_brackets(void **state)
{
	static const char name[] = "void std::sort<It<int*, std::vector<int> > >(It<int*>, less&&)";

	(void)state;
	assert_shortened(text_shorten, name, 62, name);
	assert_shortened(text_shorten, name, 61, "void std::sort<It<...> >(It<...>, less&&)");
	assert_shortened(text_shorten, name, 52, "void std::sort<It<...> >(It<...>, less&&)");
	assert_shortened(text_shorten, name, 40, "void std::sort<...>(...)");
	assert_shortened(text_shorten, name, 24, "void std::sort<...>(...)");
	assert_shortened(text_shorten, name, 23, "void std::sort<>()");
	assert_shortened(text_shorten, name, 17, "void st...ort<>()");
	assert_shortened(text_shorten, "bool operator<<A, long_name>(A const&)", 30,
			 "bool operator<...me>(A const&)");
	assert_shortened(text_shorten, "A::operator()(std::string const&) const", 30,
			 "A::operator()(...) const");
	assert_shortened(text_shorten, "std::operator<< <std::char_traits>(std::ostream&)", 30,
			 "std::operator<< <...>(...)");
	assert_shortened(text_shorten, "P::operator->(int, int)::{lambda(int)#1}::x", 35,
			 "P::operator->(...)::{...}::x");
	assert_shortened(text_shorten, "<alloc::Vec<T> as core::Drop>::drop", 20, "<...>::drop");
}

static void test_shorten_path(void **state)
{
	(void)state;
	assert_shortened(text_shorten_path, "/src/Objects/object.c", 21, "/src/Objects/object.c");
	assert_shortened(text_shorten_path, "/src/Objects/object.c", 20, ".../Objects/object.c");
	assert_shortened(text_shorten_path, "/src/Objects/object.c", 12, ".../object.c");
	assert_shortened(text_shorten_path, "/src/Objects/object.c", 11, "object.c");
	assert_shortened(text_shorten_path, "/src/Objects/object.c", 6, "ob...c");
	assert_shortened(text_shorten_path, "libpython3.11.so.1.0", 18, "libpytho....so.1.0");
	assert_shortened(text_shorten_path, "[kernel.kallsyms]", 12, "[kern...yms]");
	assert_shortened(text_shorten_path, "/src/" COUNT "/" COUNT ".c", 14,
			 "..."
			 "\u308b"
			 "/" COUNT ".c");
}

static void test_shorten_line(void **state)
{
	(void)state;
	assert_shortened(text_shorten_line, "    if (f(a, b))", 16, "    if (f(a, b))");
	assert_shortened(text_shorten_line, "    if (f(a, b))", 15, "    if (f(a,...");
	assert_shortened(text_shorten_line, "abcde", 4, "a...");
	assert_shortened(text_shorten_line, COUNT COUNT, 10, "\u6570\u3048\u308b...");
	assert_shortened(text_shorten_line, CAFE CAFE, 7, CAFE "...");
}

static void assert_expanded(const char *line, const char *expected)
{
	char *copy = text_expand_tabs(line);

	assert_non_null(copy);
	assert_string_equal(copy, expected);
	free(copy);
}

static void test_expand_tabs(void **state)
{
	(void)state;
	assert_expanded("", "");
	assert_expanded("\ta \t\r", "        a");
	assert_expanded("abcdefgh\ti", "abcdefgh        i");
	assert_expanded(COUNT "\t1", COUNT "  1");
	assert_expanded(CAFE "\t2", CAFE "    2");
	assert_expanded("\xff\t3", "\xff    3"); /* shown as \xff */
}

static void test_text_basename(void **state)
{
	(void)state;
	assert_string_equal(text_basename("/usr/lib/libc.so.6"), "libc.so.6");
	assert_string_equal(text_basename("prog"), "prog");
	assert_string_equal(text_basename("[kernel.kallsyms]"), "[kernel.kallsyms]");
	assert_string_equal(text_basename("[a/b]"), "[a/b]");
	assert_string_equal(text_basename("/tmp/"), "/tmp/");
	assert_string_equal(text_basename(""), "[unknown]");
	assert_string_equal(text_basename("/usr/lib/python3.11/re/__init__.py"), "re/__init__.py");
	assert_string_equal(text_basename("re/__init__.py"), "re/__init__.py");
	assert_string_equal(text_basename("app/__main__.py"), "app/__main__.py");
	assert_string_equal(text_basename("__init__.py"), "__init__.py");
	assert_string_equal(text_basename("/__init__.py"), "/__init__.py");
}

static void assert_percent(uint64_t part, uint64_t whole, const char *expected)
{
	char text[TEXT_PERCENT_SIZE];

	text_percent(text, part, whole);
	assert_string_equal(text, expected);
}

static void test_text_percent(void **state)
{
	(void)state;
	assert_percent(0, 0, "0.00");
	assert_percent(1, 3, "33.33");
	assert_percent(2, 3, "66.67");
	assert_percent(1, 20000, "0.01");
	assert_percent(1, 20001, "0.00");
	assert_percent(999999, 1000000, "100.00");
	assert_percent(UINT64_MAX, UINT64_MAX, "100.00");
	assert_percent(INT64_MAX, UINT64_MAX, "50.00");
}

static int free_printed(void **state)
{
	(void)state;
	free(printed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_visible), cmocka_unit_test(test_text_any_bytes),
		cmocka_unit_test(test_text_shorten), cmocka_unit_test(test_shorten_brackets),
		cmocka_unit_test(test_shorten_path), cmocka_unit_test(test_shorten_line),
		cmocka_unit_test(test_expand_tabs),  cmocka_unit_test(test_text_basename),
		cmocka_unit_test(test_text_percent),
	};

	return cmocka_run_group_tests(tests, NULL, free_printed);
}
