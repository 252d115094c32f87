// SPDX-License-Identifier: GPL-2.0-only
/* Texts that the BPF program makes equal (bpf/context_text.h), and what --label asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONTEXT_FUNCTION static
#include "bpf/context_text.h"
#include "capture/context.h"
#include "script/context.h"

/* A text as the program has it, of a value with one label. */
static const char *text_by(const char *from, unsigned int rule, size_t length, bool literal)
{
	static const struct context_wishes normal = { .wishes[0].label = "x", .count = 1 };
	static const struct context_wishes as_is = { .wishes[0].label = "x",
						     .count = 1,
						     .literal = true };
	static struct context_text texts[CONTEXT_TEXTS_MAX];
	struct context_scratch c = { 0 };
	struct context_value value = { 0 };
	size_t size = strlen(from);

	/* As bpf_probe_read_user_str(): `length` bytes at most, and a 0. */
	memset(c.text, 0x55, sizeof(c.text));
	memcpy(c.text, from, size < length ? size : length);
	c.text[size < length ? size : length] = '\0';
	context_put(&c, 1);
	context_put_text(&c, rule, (size < length ? size : length) + 1, size > length);
	context_put(&c, 0);
	value.words = context_end(&c);
	memcpy(value.bytes, c.words, sizeof(value.bytes));
	if (context_read_value(&value, literal ? &as_is : &normal, texts) != 1)
		return "";
	return texts[0].text;
}

static const char *sql(const char *from)
{
	return text_by(from, CONTEXT_SQL, CONTEXT_LENGTH, false);
}

static const char *plain(const char *from)
{
	return text_by(from, CONTEXT_PLAIN, CONTEXT_LENGTH, false);
}

static void constants_are_replaced(void **state)
{
	(void)state;
	assert_string_equal(sql("SELECT a FROM t WHERE id = 4711;"),
			    "SELECT a FROM t WHERE id = ?;");
	assert_string_equal(sql("select 1.5e10, 0x1f"), "select ?");
	assert_string_equal(sql("select t1.c2 from t1 where x>=10"),
			    "select t1.c2 from t1 where x>=?");
	assert_string_equal(sql("a = 'it''s' and b='x'"), "a = ? and b=?");
	assert_string_equal(sql("a = E'it\\'s' or e1 = 2"), "a = ? or e1 = ?");
	assert_string_equal(sql("a = 'c:\\' and b = 'x'"), "a = ? and b = ?");
	assert_string_equal(sql("where \"my 1st\" = 1"), "where \"my 1st\" = ?");
	assert_string_equal(sql("where a = $1 and b = $22"), "where a = $1 and b = $22");
	assert_string_equal(sql("do $$ secret 'x' $$ + 1"), "do ? + ?");
	assert_string_equal(sql("do $body$ secret $x $body$;"), "do $body$;");
}

static void signs_are_constants_where_they_are_signs(void **state)
{
	(void)state;
	assert_string_equal(sql("a + -7"), "a + ?");
	assert_string_equal(sql("a = -7"), "a = ?");
	assert_string_equal(sql("f(-7)"), "f(?)");
	assert_string_equal(sql("a - 7"), "a - ?");
	assert_string_equal(sql("f(x)-7"), "f(x)-?");
	assert_string_equal(sql("3 -7"), "? -?");
}

static void lists_are_one_constant(void **state)
{
	(void)state;
	assert_string_equal(sql("x IN (1,2, 'a',  -4,-5)"), "x IN (?)");
	assert_string_equal(sql("VALUES (1, 'b', now())"), "VALUES (?, now())");
	assert_string_equal(sql("f(1,-g)"), "f(?,-g)");
}

static void blanks_and_comments_are_folded(void **state)
{
	(void)state;
	assert_string_equal(sql("  SELECT\n\t a\r\n  FROM   b  "), "SELECT a FROM b");
	assert_string_equal(sql("/* 17:00 */ SELECT /*a*//**b**/ a--c 'x\n, b -- end"),
			    "SELECT a , b");
	assert_string_equal(sql("SELECT 1 /*traceparent='00-aa-01'*/"), "SELECT ?");
	assert_string_equal(sql("a / b * c"), "a / b * c");
	assert_string_equal(sql("/* nothing */"), "");
	assert_string_equal(sql(""), "");
}

static void plain_texts_have_other_strings(void **state)
{
	(void)state;
	assert_string_equal(plain("GET /users/42/orders"), "GET /users/?/orders");
	assert_string_equal(plain("/static/*/x--y"), "/static/*/x--y");
	assert_string_equal(plain("{\"name\":\"O'Neil \\\"x\\\"\",\"n\":12}"), "{?:?:?}");
	assert_string_equal(plain("worker12 of v8"), "worker12 of v8");
}

static void literal_texts_stay(void **state)
{
	(void)state;
	assert_string_equal(text_by("a  = 'x' /* 1 */ ", CONTEXT_LITERAL, CONTEXT_LENGTH, true),
			    "a  = 'x' /* 1 */ ");
}

static void long_texts_end_with_dots(void **state)
{
	char text[1000];

	(void)state;
	assert_string_equal(text_by("abcdefgh", CONTEXT_PLAIN, 4, false), "abcd...");
	assert_string_equal(text_by("abcd", CONTEXT_PLAIN, 4, false), "abcd");
	assert_string_equal(text_by("a = 'secret'", CONTEXT_SQL, 8, false), "a = ?...");
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(strlen(text_by(text, CONTEXT_SQL, CONTEXT_LENGTH, false)),
			 CONTEXT_LENGTH + 3);
}

static void what_is_no_text_is_escaped(void **state)
{
	(void)state;
	assert_string_equal(plain("a\033[mb\a"), "a?[mb?");
	assert_string_equal(plain("\xff\xfe ok \xc3\xa4"), "?? ok \xc3\xa4");
	/* What turns the direction of text. */
	assert_string_equal(plain("a\xe2\x80\xae"
				  "b"),
			    "a?b");
}

/* Whatever a process has: no more than its room is used. */
static void any_bytes_are_bounded(void **state)
{
	struct {
		unsigned long long before;
		struct context_scratch c;
		unsigned long long behind;
	} guarded;
	uint32_t random = 1;

	(void)state;
	for (int turn = 0; turn < 20000; turn++) {
		static const char often[] = "'\"$/*-,. 1eE\\\n";

		memset(&guarded, 0, sizeof(guarded));
		for (int i = 0; i < CONTEXT_TEXT_BYTES; i++) {
			random = random * 1664525 + 1013904223;
			guarded.c.text[i] = random >> 30 ? (uint8_t)often[(random >> 16) % 14]
							 : (uint8_t)(random >> 8);
		}
		for (int i = 0; i < CONTEXT_VARIABLES; i++) {
			if (guarded.c.used >= CONTEXT_VALUE_BYTES - 2 * CONTEXT_SPARE)
				break;
			context_put(&guarded.c, i + 1);
			context_put_text(&guarded.c, turn % CONTEXT_RULES, CONTEXT_TEXT_BYTES,
					 i & 1);
			context_put(&guarded.c, 0);
		}
		assert_true(guarded.c.used < CONTEXT_VALUE_BYTES);
		assert_true(context_end(&guarded.c) <= CONTEXT_VALUE_WORDS);
		assert_true(!guarded.before && !guarded.behind);
		assert_int_equal(guarded.c.bytes[0], 1);
	}
}

static void values_of_other_processes_are_read_with_care(void **state)
{
	static const struct context_wishes wishes = { .wishes[0].label = "n", .count = 1 };
	struct context_text texts[CONTEXT_TEXTS_MAX];
	struct context_value value = { .words = CONTEXT_VALUE_WORDS };

	(void)state;
	memset(value.bytes, 0x7f, sizeof(value.bytes));
	assert_int_equal(context_read_value(&value, &wishes, texts), 0);
	memset(value.bytes, 1, sizeof(value.bytes));
	assert_int_equal(context_read_value(&value, &wishes, texts), 1);
	value.words = 1 << 20;
	assert_int_equal(context_read_value(&value, &wishes, texts), 0);
	value.words = 2;
	memset(value.bytes, 0, sizeof(value.bytes));
	memcpy(value.bytes, "\x41\xb9\x80\x80\x80\x80\x80\x80\x80\x80\x80", 12);
	assert_int_equal(context_read_value(&value, &wishes, texts), 1);
	assert_string_equal(texts[0].text, "57");
}

static bool parses(const char *text, struct context_wish *wish)
{
	struct context_wishes wishes = { 0 };
	struct error e;

	if (context_parse(text, &wishes, &e))
		return false;
	*wish = wishes.wishes[0];
	return true;
}

static void labels_are_parsed(void **state)
{
	struct context_wish w;

	(void)state;
	assert_true(parses("query=debug_query_string", &w));
	assert_string_equal(w.label, "query");
	assert_string_equal(w.symbol, "debug_query_string");
	assert_int_equal(w.kind + w.length + w.image[0], 0);
	assert_true(parses("t=/usr/bin/x:var:string:40", &w));
	assert_string_equal(w.image, "/usr/bin/x");
	assert_string_equal(w.symbol, "var");
	assert_int_equal(w.kind, CONTEXT_STRING);
	assert_int_equal(w.length, 40);
	assert_true(parses("t=libx.so:var", &w));
	assert_string_equal(w.image, "libx.so");
	assert_true(parses("t=var:u64", &w));
	assert_int_equal(w.kind, CONTEXT_U64);
	assert_true(parses("t=x:0x10:u32", &w));
	assert_int_equal(w.address, 0x10);
	assert_false(parses("t", &w));
	assert_false(parses("=x", &w));
	assert_false(parses("t=", &w));
	assert_false(parses("T=x", &w));
	assert_false(parses("t=x:y:z:u32", &w) && strchr(w.symbol, ':'));
	assert_false(parses("t=0x10:u32", &w));
	assert_false(parses("t=x:0x10", &w));
	assert_false(parses("t=x:string:400", &w) && w.length);
	assert_false(parses("a_name_that_is_too_long_for_it=x", &w));
}

static void answers_of_the_parser_are_checked(void **state)
{
	static const struct context_wishes wishes = { .count = 1 };
	struct context_image image = {
		.count = 1,
		.variables[0] = { .kind = CONTEXT_U32, .length = 10 },
	};

	(void)state;
	assert_true(context_is_valid(&image, &wishes));
	assert_false(context_is_valid(&image, NULL));
	image.variables[0].label = 1;
	assert_false(context_is_valid(&image, &wishes));
	image.variables[0].label = CONTEXT_LABEL_QUERY;
	assert_true(context_is_valid(&image, &wishes));
	image.variables[0].kind = CONTEXT_KINDS;
	assert_false(context_is_valid(&image, &wishes));
	image.count = CONTEXT_VARIABLES + 1;
	assert_false(context_is_valid(&image, &wishes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_are_replaced),
		cmocka_unit_test(signs_are_constants_where_they_are_signs),
		cmocka_unit_test(lists_are_one_constant),
		cmocka_unit_test(blanks_and_comments_are_folded),
		cmocka_unit_test(plain_texts_have_other_strings),
		cmocka_unit_test(literal_texts_stay),
		cmocka_unit_test(long_texts_end_with_dots),
		cmocka_unit_test(what_is_no_text_is_escaped),
		cmocka_unit_test(any_bytes_are_bounded),
		cmocka_unit_test(values_of_other_processes_are_read_with_care),
		cmocka_unit_test(labels_are_parsed),
		cmocka_unit_test(answers_of_the_parser_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
