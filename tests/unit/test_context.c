// SPDX-License-Identifier: GPL-2.0-only
/* Texts that the BPF program makes equal (bpf/context_text.h), and what --label asks for. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONTEXT_FUNCTION	     static
#define CONTEXT_COPY(to, size, from) memcpy(to, from, size)
#include "bpf/context_text.h"
#include "capture/context.h"
#include "capture/otel_process.h"
#include "directory_fixture.h"
#include "record/service.h"
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
	memset(c.text.bytes, 0x55, sizeof(c.text));
	memcpy(c.text.bytes, from, size < length ? size : length);
	c.text.bytes[size < length ? size : length] = '\0';
	context_put(&c, 1);
	context_put_text(&c, rule, size > length ? length : size + 1, size > length);
	context_put(&c, 0);
	value.words = context_end(&c);
	memcpy(value.bytes, c.words, sizeof(value.bytes));
	if (context_read_value(&value, literal ? &as_is : &normal, NULL, texts) != 1)
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

static const char *path(const char *from)
{
	return text_by(from, CONTEXT_PATH, CONTEXT_LENGTH, false);
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

static void paths_end_before_their_query(void **state)
{
	(void)state;
	assert_string_equal(path("/users/42/orders?token=abc"), "/users/?/orders");
	assert_string_equal(path("/a#b"), "/a");
	assert_string_equal(path("?x"), "");
	assert_string_equal(path("/no-12/2026-11-30/550e8400-e29b-41d4/x"), "/no-?/?/?/x");
	assert_string_equal(text_by("/a/b?secret", CONTEXT_PATH, 5, false), "/a/b");
	assert_string_equal(
		text_by("/a/1?secret", CONTEXT_PATH | CONTEXT_LITERAL, CONTEXT_LENGTH, true),
		"/a/1");
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
			guarded.c.text.bytes[i] = random >> 30 ? (uint8_t)often[(random >> 16) % 14]
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

/* What was made of other texts before is no part of what one becomes. */
static void memos_change_nothing(void **state)
{
	static const char *const begins[] = {
		"SELECT * FROM t WHERE a IN (1, -2, ",
		"INSERT INTO t VALUES ('a, b', E'c\\', $",
		"/* 0123456789 */ SELECT e, e, -- ----",
	};
	static const char *const parts[] = { "1",  ", ",  " -",	    "-",  "'x'", "e",
					     "$$", "$1",  "/*",	    "*/", "E'",	 "\n",
					     "--", "\\'", "SELECT", "  ", "\"",	 "," };
	static struct context_scratch kept;
	unsigned int resumed = 0;
	uint32_t random = 1;

	(void)state;
	for (int turn = 0; turn < 100000; turn++) {
		char text[CONTEXT_TEXT_BYTES] = "";
		struct context_scratch fresh;
		unsigned int rule, size;

		random = random * 1664525 + 1013904223;
		size = strlen(strcpy(text, begins[(random >> 16) % 3]));
		rule = (random >> 24) % 5;
		if (random >> 24 < 200)
			rule = CONTEXT_SQL;
		for (int i = (random >> 20) % 64; i >= 0; i--) {
			const char *part;

			/* Mostly the same ones, so that texts begin alike. */
			if (i % 16 == 0)
				random = random * 1664525 + 1013904223;
			part = parts[(i % 16 ? (uint32_t)i * 7 : random >> 16) % 18];
			if (size + strlen(part) < sizeof(text))
				size += strlen(strcpy(text + size, part));
		}
		memcpy(kept.text.bytes, text, sizeof(text));
		kept.used = turn % 300;
		memset(&fresh, 0, offsetof(struct context_scratch, memos));
		memset(fresh.memos, 0, sizeof(fresh.memos));
		memcpy(fresh.text.bytes, text, sizeof(text));
		memcpy(fresh.bytes, kept.bytes, sizeof(fresh.bytes));
		fresh.used = kept.used;
		context_put_text(&kept, rule, size + 1, turn & 1);
		context_put_text(&fresh, rule, size + 1, turn & 1);
		assert_int_equal(kept.used, fresh.used);
		assert_memory_equal(kept.bytes, fresh.bytes, kept.used);
		memcpy(kept.text.bytes, text, sizeof(text));
		kept.used = 0;
		resumed += context_resume(&kept, rule, size + 1);
	}
	assert_true(resumed > 50000);
}

static void values_of_other_processes_are_read_with_care(void **state)
{
	static const struct context_wishes wishes = { .wishes[0].label = "n", .count = 1 };
	struct context_text texts[CONTEXT_TEXTS_MAX];
	struct context_value value = { .words = CONTEXT_VALUE_WORDS };

	(void)state;
	memset(value.bytes, 0x7f, sizeof(value.bytes));
	assert_int_equal(context_read_value(&value, &wishes, NULL, texts), 0);
	memset(value.bytes, 1, sizeof(value.bytes));
	assert_int_equal(context_read_value(&value, &wishes, NULL, texts), 1);
	value.words = 1 << 20;
	assert_int_equal(context_read_value(&value, &wishes, NULL, texts), 0);
	value.words = 2;
	memset(value.bytes, 0, sizeof(value.bytes));
	memcpy(value.bytes, "\x41\xb9\x80\x80\x80\x80\x80\x80\x80\x80\x80", 12);
	assert_int_equal(context_read_value(&value, &wishes, NULL, texts), 1);
	assert_string_equal(texts[0].text, "57");
	/* Labels that a process has named. */
	memcpy(value.bytes,
	       "\x3fto\033\0"
	       "17\0\x3fx\0",
	       12);
	assert_int_equal(context_read_value(&value, &wishes, NULL, texts), 1);
	assert_string_equal(texts[0].label, "to?");
	assert_string_equal(texts[0].text, "17");
	value.words = CONTEXT_VALUE_WORDS;
	memset(value.bytes, CONTEXT_NAMED, sizeof(value.bytes));
	assert_int_equal(context_read_value(&value, &wishes, NULL, texts), 0);
}

/* --- OpenTelemetry's --- */

/* Attributes of a name, and of a list of names: what a process says of itself. */
static const uint8_t said[] =
	"\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04shop"
	"\x0a\x17\x0a\x0fservice.version\x12\x04\x0a\x02v2"
	"\x10\x05"
	"\x0a\x43\x0a\x1dthreadlocal.attribute_key_map\x12\x22\x2a\x20"
	"\x0a\x0c\x0a\x0ahttp.route\x0a\x08\x0a\x06Tenant\x0a\x06\x0a\x04\x1b[m;";

static void forget(struct otel_process *otel)
{
	struct process process = { .otel = malloc(sizeof(*otel)) };

	*process.otel = *otel;
	otel_free(&process);
	*otel = (struct otel_process){ 0 };
}

static void what_a_process_says_is_read(void **state)
{
	struct otel_process otel = { 0 };

	(void)state;
	assert_int_equal(otel_parse(&otel, said, sizeof(said) - 1), 0);
	assert_string_equal(otel.service, "shop");
	assert_string_equal(otel.version, "v2");
	assert_int_equal(otel.name_count, 3);
	assert_string_equal(otel.names[0], "http.route");
	assert_string_equal(otel.names[1], "tenant");
	assert_string_equal(otel.names[2], "__m_");
	forget(&otel);
}

/* Cut anywhere, or with any other byte anywhere: the sanitizers say what is read behind its end. */
static void damaged_words_of_a_process_are_survived(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(said); size++)
		for (unsigned int byte = 0; byte < 256; byte++) {
			struct otel_process otel = { 0 };
			uint8_t *copy = malloc(size + 1);

			memcpy(copy, said, size);
			if (size)
				copy[(size * 7 + byte) % size] = byte;
			otel_parse(&otel, copy, size);
			assert_true(otel.name_count <= OTEL_NAMES_MAX);
			free(copy);
			forget(&otel);
		}
}

/* --- Thread-local variables in images --- */

/* How image.c is found, built with these options: its first variable. */
static struct context_variable find_variable(const char *compiler, const char *options)
{
	static const struct context_wishes wishes = {
		.wishes = { { .label = "x", .symbol = "wanted", .kind = CONTEXT_U64 } },
		.count = 1,
	};
	struct context_image image;
	struct elf_file file;
	struct error e;
	int fd;

	assert_int_equal(shell("%s -nostdlib -o image %s image.c", compiler, options), 0);
	fd = open(in_directory("image"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open(&file, fd, NULL, &e), 0);
	context_find(&file, "image", &wishes, &image);
	elf_file_close(&file);
	assert_int_equal(image.count, 1);
	return image.variables[0];
}

static void write_image_source(void)
{
	FILE *source = fopen(in_directory("image.c"), "w");

	assert_non_null(source);
	fputs("__thread long other = 1, wanted = 2;\n"
	      "long *get(void) { return &wanted; }\n"
	      "void _start(void) { for (;;) get(); }\n",
	      source);
	assert_int_equal(fclose(source), 0);
}

static void places_of_x86_64_are_found(void **state)
{
	(void)state;
#ifdef __x86_64__
	struct context_variable v;

	write_image_source();
	v = find_variable("gcc", "-static");
	assert_int_equal(v.place, CONTEXT_OF_THREAD);
	assert_true((int64_t)v.offset == -8 || (int64_t)v.offset == -16);
	v = find_variable("gcc", "-shared -fPIC -mtls-dialect=gnu");
	assert_int_equal(v.place, CONTEXT_BY_INDEX);
	assert_true(v.address && !v.offset);
	v = find_variable("gcc", "-shared -fPIC -mtls-dialect=gnu2");
	assert_int_equal(v.place, CONTEXT_BY_DESCRIPTOR);
	v = find_variable("gcc", "-shared -fPIC -ftls-model=initial-exec");
	assert_int_equal(v.place, CONTEXT_BY_DISTANCE);
	/* Nobody else can provide it: the relocation is of the module. */
	v = find_variable("gcc", "-shared -fPIC -mtls-dialect=gnu -Wl,-Bsymbolic");
	assert_true(v.place == CONTEXT_BY_MODULE || v.place == CONTEXT_BY_INDEX);
#else
	skip();
#endif
}

static void places_of_arm64_are_found(void **state)
{
	static const char clang[] = "clang --target=aarch64-linux-gnu -fuse-ld=lld";
	struct context_variable v;

	(void)state;
	if (shell("ld.lld --version >/dev/null 2>&1 && clang --version >/dev/null 2>&1"))
		skip();
	write_image_source();
	v = find_variable(clang, "-static");
	assert_int_equal(v.place, CONTEXT_OF_THREAD);
	assert_true(v.offset == 16 || v.offset == 24);
	v = find_variable(clang, "-shared -fPIC");
	assert_int_equal(v.place, CONTEXT_BY_DESCRIPTOR);
	v = find_variable(clang, "-shared -fPIC -ftls-model=initial-exec");
	assert_int_equal(v.place, CONTEXT_BY_DISTANCE);
}

/* Appends bytes of a record as the BPF program does. */
static void put_blob(struct context_scratch *c, unsigned int label, const char *bytes, size_t size)
{
	context_put(c, CONTEXT_BLOB | (label + 1));
	context_put(c, 0x80 | (size & 0x7f));
	context_put(c, 0x80 | size >> 7);
	for (size_t i = 0; i < size; i++)
		context_put(c, bytes[i]);
	context_put(c, 0);
}

static void records_are_labels(void **state)
{
	static const struct context_wishes wishes = { .knows_programs = true };
	/* The last of equal keys counts; 9 has no name; the last one goes on behind the end. */
	static const char attributes[] = "\0\2/a\1\3t 1\0\4/b\0c\11\1x\2\3a\033b\1\7t";
	static const char ids[CONTEXT_ID_BYTES + 1] = "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17"
						      "\377\376\375\374\373\372\371\370";
	struct context_text texts[CONTEXT_TEXTS_MAX];
	struct otel_process otel = { 0 };
	struct context_scratch c = { 0 };
	struct context_value value = { 0 };

	(void)state;
	assert_int_equal(otel_parse(&otel, said, sizeof(said) - 1), 0);
	put_blob(&c, CONTEXT_LABEL_ATTRIBUTES, attributes, sizeof(attributes) - 1);
	put_blob(&c, CONTEXT_LABEL_IDS, ids, CONTEXT_ID_BYTES);
	value.words = context_end(&c);
	memcpy(value.bytes, c.words, sizeof(value.bytes));
	assert_int_equal(context_read_value(&value, &wishes, &otel, texts), 5);
	assert_string_equal(texts[0].label, "route");
	assert_string_equal(texts[0].text, "/b");
	assert_true(texts[0].is_foreign);
	assert_string_equal(texts[1].label, "tenant");
	assert_string_equal(texts[1].text, "t 1");
	assert_string_equal(texts[2].text, "a?b");
	assert_string_equal(texts[3].label, "trace_id");
	assert_string_equal(texts[3].text, "000102030405060708090a0b0c0d0e0f");
	assert_false(texts[3].is_foreign);
	assert_string_equal(texts[4].text, "fffefdfcfbfaf9f8");
	assert_int_equal(context_read_service(&otel, texts, 5), 7);
	assert_string_equal(texts[5].text, "shop");
	/* Of a process that says nothing, the ids alone. */
	assert_int_equal(context_read_value(&value, &wishes, NULL, texts), 2);
	forget(&otel);
}

static void attributes_without_room_are_noticed(void **state)
{
	char attributes[3 * (CONTEXT_ATTRIBUTES_MAX + 1)];
	struct context_value value = { 0 };

	(void)state;
	for (size_t count = CONTEXT_ATTRIBUTES_MAX; count <= CONTEXT_ATTRIBUTES_MAX + 1; count++) {
		struct context_scratch c = { 0 };

		for (size_t i = 0; i < count; i++)
			memcpy(&attributes[3 * i], (char[]){ i, 1, 'x' }, 3);
		/* A label that a process has chosen, whose text looks like a record. */
		context_put(&c, CONTEXT_NAMED);
		context_put(&c, 'a');
		context_put(&c, 0);
		context_put(&c, CONTEXT_BLOB | (CONTEXT_LABEL_ATTRIBUTES + 1));
		context_put(&c, 0);
		put_blob(&c, CONTEXT_LABEL_ATTRIBUTES, attributes, 3 * count);
		value.words = context_end(&c);
		memcpy(value.bytes, c.words, sizeof(value.bytes));
		assert_int_equal(context_is_cut(&value), count > CONTEXT_ATTRIBUTES_MAX);
	}
	/* Equal keys are one. */
	attributes[0] = 1;
	memcpy((char *)value.bytes + 8, attributes, sizeof(attributes));
	assert_false(context_is_cut(&value));
	value.hash = CONTEXT_HASH_CUT;
	assert_true(context_is_cut(&value));
	/* Any bytes: no further than its own. */
	memset(value.bytes, 0xff, sizeof(value.bytes));
	value.hash = 0;
	for (value.words = 0; value.words <= CONTEXT_VALUE_WORDS + 1; value.words++)
		assert_false(context_is_cut(&value));
	((uint8_t *)value.bytes)[0] = CONTEXT_BLOB | (CONTEXT_LABEL_ATTRIBUTES + 1);
	for (value.words = 0; value.words <= CONTEXT_VALUE_WORDS + 1; value.words++)
		assert_false(context_is_cut(&value));
}

static bool parses(const char *text, struct context_wish *wish)
{
	struct context_wishes wishes = { 0 };
	char written[RECORD_LABEL_SIZE];
	struct error e;

	if (context_parse(text, &wishes, &e))
		return false;
	*wish = wishes.wishes[0];
	/* The same in other words. */
	context_format(wish, written, sizeof(written));
	wishes.count = 0;
	assert_int_equal(context_parse(written, &wishes, &e), 0);
	assert_memory_equal(wish, &wishes.wishes[0], sizeof(*wish));
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
		cmocka_unit_test(paths_end_before_their_query),
		cmocka_unit_test(literal_texts_stay),
		cmocka_unit_test(long_texts_end_with_dots),
		cmocka_unit_test(what_is_no_text_is_escaped),
		cmocka_unit_test(any_bytes_are_bounded),
		cmocka_unit_test(memos_change_nothing),
		cmocka_unit_test(values_of_other_processes_are_read_with_care),
		cmocka_unit_test(what_a_process_says_is_read),
		cmocka_unit_test(damaged_words_of_a_process_are_survived),
		cmocka_unit_test(records_are_labels),
		cmocka_unit_test(attributes_without_room_are_noticed),
		cmocka_unit_test(places_of_x86_64_are_found),
		cmocka_unit_test(places_of_arm64_are_found),
		cmocka_unit_test(labels_are_parsed),
		cmocka_unit_test(answers_of_the_parser_are_checked),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
