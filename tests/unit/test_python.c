// SPDX-License-Identifier: GPL-2.0-only
/*
 * Python's objects as they are in its memory: strings, line tables, the interpreter's image; and
 * which code object was at an address at a time.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/sample.h"
#include "capture/scripts.h"
#include "language_fixture.h"

/*
 * What some functions have, written by these versions: the line of each two bytes of code as
 * co_lines() has it, as "COUNT*LINE ..."; 0: none.
 */
struct table {
	uint32_t first;
	const char *bytes; /* co_linetable, in hexadecimal digits */
	const char *lines;
};

struct string {
	unsigned int version;
	const char *bytes; /* the object */
	const char *text;
};

/* As the name of a code object, of which `size` bytes were copied. */
static void read_text(unsigned int version, const uint8_t *object, size_t size,
		      char text[static LANGUAGE_TEXT_SIZE])
{
	struct language_code code = { .language = LANGUAGE_PYTHON, .version = version };
	char file[LANGUAGE_TEXT_SIZE];

	assert_true(size <= sizeof(code.name));
	memcpy(code.name, object, size);
	code.name_bytes = size;
	language_name(&code, text, file);
}

static const struct table tables[] = {
	{
		/* Python 3.11 */
		16,
		"8000f002080511d80d0ef00003091b9021d80f10f000020d1bf00201181bf00001181bd81819"
		"f00301181bf10001181bf40001181bf00503091bf00003091bf00003091bf00003091bf10003"
		"091bf40003091bf00003091bf00e000d1188018801f00d020d1bf00303091bf00003091bf000"
		"03091bf10003091bf40003091bf00003091bf00003091bf00003091bf00003091bf00003091b"
		"f00003091bf8f8f8f00003091bf00003091bf00003091bf00003091bf8f8f508000c16f00001"
		"051ff00001051ff00001051fdd0e179851d0081ef8f8f8f8f00301051ff8f8f8f006000d1188"
		"018801f8884488018808880888088808e008098f038a03d80c0dd80c0df10503090af4000309"
		"0af00800090af00b060c06f000060506",
		"1*16 1*17 3*18 2*19 2*20 1*21 8*20 12*18 3*25 1*19 16*18 3*0 4*18 2*0 9*22 "
		"8*23 4*0 1*22 3*0 3*25 1*0 6*25 12*27 1*28 1*29 7*27 1*31 2*26",
	},
	{
		/* Python 3.12 */
		33,
		"e800f88000d80f10f700010510f0000105109041d80e0f8f078807f703010510f700010510e0"
		"1314f700010516f0000105168861d814158f678c0df007010510f8d8080ff8f003010510f8f7"
		"00010510f700010510f100010510faf004010516f8d80e15f8f103001415f9",
		"1*33 1*0 1*33 11*34 10*35 16*34 11*36 14*37 1*34 1*0 1*35 1*0 1*34 1*0 "
		"18*34 3*0 1*36 1*0 1*37 1*0 2*36 2*0",
	},
	{
		/* Python 3.13 */
		1,
		"e9008000f0725d01000a0bf05206000a0bf1530649030a0b8041f25406000a0bdb11128841d9"
		"0a0bf303011b0dd90a0b8051f303001c1dd90a0bf103011b0df40001150d9111f703000a0b88"
		"11f9f202011b0df703000a0b8d11fc",
		"3*1 1*3002 1*3203 3*3002 3*3204 5*3205 2*3206 4*3205 3*3206 4*3205 2*3206 "
		"9*3205 9*3204 2*0 3*3205 14*3204 5*0",
	},
	{
		/* Python 3.14 */
		1,
		"e9008000f0725d01000a0bf05206000a0bf5530649030a0b8041f75406000a0b8a11db111288"
		"41d90a0bf303011b0dd90a0b8051f303001c1dd90a0bf103011b0df40001150d9111f703000a"
		"0b8911f9f202011b0df703000a0b8f118811fc",
		"3*1 1*3002 1*3203 7*3002 11*3204 5*3205 2*3206 4*3205 3*3206 4*3205 2*3206 "
		"9*3205 10*3204 2*0 3*3205 17*3204 5*0",
	},
	{
		/* Python 3.14 */
		33,
		"e9008000df0f108f7189719041d80e0f8f078807f7030010118f71e11314f700010516f00001"
		"05168861d814158f678d0df107001011d9080ff7030010118f718f718a71faf104010516d90e"
		"15f203001415f9",
		"3*33 19*34 10*35 16*34 12*36 15*37 2*34 2*35 27*34 3*0 2*36 2*37 3*36 2*0",
	},
};

static const struct string strings[] = {
	{ 0x30b,
	  "010000000000000080399500000000000400000000000000ffffffffffffffffe40000000000"
	  "000000000000000000006d61696e00",
	  "main" },
	{ 0x30b,
	  "010000000000000080399500000000000300000000000000ffffffffffffffffa49ba3000000"
	  "0000000000000000000000000000000000000000000000000000000000000000000066fc7200",
	  "f\xc3\xbcr" },
	{ 0x30b,
	  "010000000000000080399500000000000200000000000000ffffffffffffffffa877a3000000"
	  "00000000000000000000000000000000000000000000000000000000000000000000088a977b"
	  "0000",
	  "\xe8\xa8\x88\xe7\xae\x97" },
	{ 0x30b,
	  "010000000000000080399500000000000200000000000000ffffffffffffffffb00000000000"
	  "0000f8257304b87f00000000000000000000000000000000000002000000000000001fd50100"
	  "7800000000000000",
	  "\xf0\x9d\x94\x9fx" },
	{ 0x30c,
	  "0100000000000000203c5656267f00000400000000000000ffffffffffffffff640000000000"
	  "00006d61696e00",
	  "main" },
	{ 0x30c,
	  "0100000000000000203c5656267f00000300000000000000ffffffffffffffff240000000000"
	  "00000000000000000000000000000000000066fc7200",
	  "f\xc3\xbcr" },
	{ 0x30c,
	  "0100000000000000203c5656267f00000200000000000000ffffffffffffffff28d6c955267f"
	  "000000000000000000000000000000000000088a977b0000",
	  "\xe8\xa8\x88\xe7\xae\x97" },
	{ 0x30c,
	  "0100000000000000203c5656267f00000200000000000000ffffffffffffffff30585756267f"
	  "0000000000000000000000000000000000001fd501007800000000000000",
	  "\xf0\x9d\x94\x9fx" },
	{ 0x30d,
	  "0100000000000000e0c53024447f00000400000000000000ffffffffffffffff640000000000"
	  "00006d61696e00",
	  "main" },
	{ 0x30d,
	  "0100000000000000e0c53024447f00000300000000000000ffffffffffffffff240000000000"
	  "00000000000000000000000000000000000066fc7200",
	  "f\xc3\xbcr" },
	{ 0x30d,
	  "0100000000000000e0c53024447f00000200000000000000ffffffffffffffff2822b823447f"
	  "000000000000000000000000000000000000088a977b0000",
	  "\xe8\xa8\x88\xe7\xae\x97" },
	{ 0x30d,
	  "0100000000000000e0c53024447f00000200000000000000ffffffffffffffff301e3224447f"
	  "0000000000000000000000000000000000001fd501007800000000000000",
	  "\xf0\x9d\x94\x9fx" },
	{ 0x30e,
	  "0100000000000000c047b600000000000400000000000000ffffffffffffffff640000000000"
	  "00006d61696e00",
	  "main" },
	{ 0x30e,
	  "0100000000000000c047b600000000000300000000000000ffffffffffffffff240000000000"
	  "00000000000000000000000000000000000066fc7200",
	  "f\xc3\xbcr" },
	{ 0x30e,
	  "0100000000000000c047b600000000000200000000000000ffffffffffffffff2843ba000000"
	  "000000000000000000000000000000000000088a977b0000",
	  "\xe8\xa8\x88\xe7\xae\x97" },
	{ 0x30e,
	  "0100000000000000c047b600000000000200000000000000ffffffffffffffff300000000000"
	  "0000000000000000000000000000000000001fd501007800000000000000",
	  "\xf0\x9d\x94\x9fx" },
};

static size_t from_hex(const char *digits, uint8_t *bytes, size_t size)
{
	size_t count = strlen(digits) / 2;

	assert_true(count <= size);
	for (size_t i = 0; i < count; i++) {
		unsigned int byte;

		assert_int_equal(sscanf(digits + 2 * i, "%2x", &byte), 1);
		bytes[i] = byte;
	}
	return count;
}

/* --- Strings --- */

static void test_strings_of_each_version(void **state)
{
	char text[LANGUAGE_TEXT_SIZE];
	uint8_t bytes[256];

	(void)state;
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++) {
		size_t size = from_hex(strings[i].bytes, bytes, sizeof(bytes));

		read_text(strings[i].version, bytes, size, text);
		assert_string_equal(text, strings[i].text);
	}
}

/* Where the state has 16 bits for whether a string is interned, as in some releases of 3.14. */
static void test_wide_state(void **state)
{
	uint8_t bytes[64] = { 0 };
	const uint64_t length = 2;
	const uint32_t ascii = 1 | 1 << 16 | 1 << 19 | 1 << 20;
	char text[LANGUAGE_TEXT_SIZE];

	(void)state;
	memcpy(bytes + 16, &length, sizeof(length));
	memcpy(bytes + 32, &ascii, sizeof(ascii));
	memcpy(bytes + 40, "ok", 2);
	read_text(0x30e, bytes, sizeof(bytes), text);
	assert_string_equal(text, "ok");
	read_text(0x30d, bytes, sizeof(bytes), text);
	assert_string_equal(text, "");
}

/* Sets up a compact ASCII string of 3.13. */
static void make_string(uint8_t *bytes, size_t size, uint64_t length, uint32_t kind, bool ascii)
{
	uint32_t state = kind << 2 | 1 << 5 | ascii << 6;

	memset(bytes, 'x', size);
	memcpy(bytes + 16, &length, sizeof(length));
	memcpy(bytes + 32, &state, sizeof(state));
}

static void test_cut_off_strings(void **state)
{
	char text[LANGUAGE_TEXT_SIZE];
	uint8_t bytes[LANGUAGE_NAME_BYTES];

	(void)state;
	/* The object is longer than what was copied of it. */
	make_string(bytes, sizeof(bytes), 100, 1, true);
	read_text(0x30d, bytes, 44, text);
	assert_string_equal(text, "xxxx...");
	read_text(0x30d, bytes, 40, text);
	assert_string_equal(text, "...");
	for (size_t size = 0; size < 40; size++) {
		read_text(0x30d, bytes, size, text);
		assert_string_equal(text, "");
	}
	/* It is longer than the text may be: e with an acute accent is two bytes there. */
	make_string(bytes, sizeof(bytes), UINT64_MAX, 1, false);
	memset(bytes + 56, 0xe9, sizeof(bytes) - 56);
	read_text(0x30d, bytes, sizeof(bytes), text);
	assert_true(strlen(text) < LANGUAGE_TEXT_SIZE);
	assert_string_equal(text + strlen(text) - 5, "\303\251...");
}

static void test_hostile_strings(void **state)
{
	static const uint32_t surrogates[] = { 0xd800, 0xdfff, 0x110000, UINT32_MAX, 0x10ffff };
	char text[LANGUAGE_TEXT_SIZE];
	uint8_t bytes[128];

	(void)state;
	for (uint32_t kind = 0; kind < 8; kind++) {
		make_string(bytes, sizeof(bytes), 1, kind, true);
		read_text(0x30d, bytes, sizeof(bytes), text);
		assert_int_equal(*text != '\0', kind == 1 || kind == 2 || kind == 4);
	}
	make_string(bytes, sizeof(bytes), 1, 1, true);
	bytes[32] &= ~(1 << 5); /* not compact: its text is elsewhere */
	read_text(0x30d, bytes, sizeof(bytes), text);
	assert_string_equal(text, "");
	/* No terminal gets control characters. */
	make_string(bytes, sizeof(bytes), 5, 1, true);
	memcpy(bytes + 40, "\x1b[\x7f\n\x9b", 5);
	read_text(0x30d, bytes, sizeof(bytes), text);
	assert_string_equal(text, "?[???");
	/* What no UTF-8 has. */
	make_string(bytes, sizeof(bytes), 5, 4, false);
	memcpy(bytes + 56, surrogates, sizeof(surrogates));
	read_text(0x30d, bytes, sizeof(bytes), text);
	assert_string_equal(text, "????\xf4\x8f\xbf\xbf");
	/* Versions that are unknown. */
	make_string(bytes, sizeof(bytes), 1, 1, true);
	read_text(0x30a, bytes, sizeof(bytes), text);
	assert_string_equal(text, "");
	read_text(0x30f, bytes, sizeof(bytes), text);
	assert_string_equal(text, "");
}

/* --- Lines --- */

static void test_lines(void **state)
{
	static struct language_code code = { .language = LANGUAGE_PYTHON };

	(void)state;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		const char *at = tables[i].lines;
		uint32_t instruction = 0, count, line;
		int used;

		code.line = tables[i].first;
		code.lines_bytes = from_hex(tables[i].bytes, code.lines, sizeof(code.lines));
		for (; sscanf(at, "%u*%u%n", &count, &line, &used) == 2; at += used)
			for (uint32_t j = 0; j < count; j++)
				assert_int_equal(language_line(&code, instruction++), line);
		assert_int_equal(*at, '\0');
		/* After its end */
		assert_int_equal(language_line(&code, instruction), 0);
		assert_int_equal(language_line(&code, LANGUAGE_INSTRUCTION_UNKNOWN), code.line);
	}
}

/* Each beginning of a table has the same lines, as far as it goes, and then none. */
static void test_cut_off_tables(void **state)
{
	static struct language_code whole, cut;

	(void)state;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		whole.line = cut.line = tables[i].first;
		whole.lines_bytes = from_hex(tables[i].bytes, whole.lines, sizeof(whole.lines));
		for (uint32_t size = 0; size < whole.lines_bytes; size++) {
			memset(cut.lines, 0xff, sizeof(cut.lines));
			memcpy(cut.lines, whole.lines, size);
			cut.lines_bytes = size;
			for (uint32_t at = 0; at < 256; at++) {
				uint32_t line = language_line(&cut, at);

				assert_true(line == 0 || line == language_line(&whole, at));
			}
		}
	}
}

static void test_hostile_tables(void **state)
{
	static struct language_code code = { .language = LANGUAGE_PYTHON };
	/* Back by 2^30 lines, with one instruction */
	static const uint8_t back[] = { 0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01 };

	(void)state;
	code.line = 7;
	assert_int_equal(language_line(&code, 0), 0);
	memcpy(code.lines, back, sizeof(back));
	code.lines_bytes = sizeof(back);
	assert_int_equal(language_line(&code, 0), 0);
	/* A number without an end, and one that is longer than any */
	code.lines_bytes = 3;
	assert_int_equal(language_line(&code, 0), 0);
	memset(code.lines + 1, 0x7f, 100);
	code.lines_bytes = 100;
	assert_int_equal(language_line(&code, 0), 0);
	/* No entry begins like this. */
	code.lines[0] = 0x00;
	assert_int_equal(language_line(&code, 0), 0);
}

/* --- The interpreter's image --- */

static void test_built_images(void **state)
{
	static const char source[] =
		"struct { char cookie[8]; unsigned long version, free_threaded; } _PyRuntime =\n"
		"	{ \"xdebugpy\", VERSION, THREADED };\n"
		"long PyCode_Type[4] = { 1 };\n"
		"#ifndef NO_VERSION\n"
		"const unsigned long Py_Version = VERSION;\n"
		"#endif\n";
	struct language_image image;

	(void)state;
	write_file("image.c", source, sizeof(source) - 1);
	image = find_built("-DVERSION=0x030d00f0 -DTHREADED=0");
#ifdef __x86_64__
	assert_int_equal(image.language, LANGUAGE_PYTHON);
	assert_int_equal(image.version, 0x30d);
	assert_true(image.python.runtime && image.python.code_type &&
		    image.python.runtime != image.python.code_type);
#endif
	assert_int_equal(image.thread_specific, 0);
	image = find_built("-DVERSION=0x030d00f0 -DTHREADED=1");
	assert_int_equal(image.language, LANGUAGE_NONE);
	image = find_built("-DVERSION=0x030a00f0 -DTHREADED=0");
	assert_int_equal(image.language, LANGUAGE_NONE);
	image = find_built("-DVERSION=0x030f00f0 -DTHREADED=0");
	assert_int_equal(image.language, LANGUAGE_NONE);
	image = find_built("-DVERSION=0x030d00f0 -DTHREADED=0 -DNO_VERSION");
	assert_int_equal(image.language, LANGUAGE_NONE);
}

static void test_installed_python(void **state)
{
	static const char python[] = "/usr/bin/python3";
	unsigned int major = 0, minor = 0;
	struct language_image image;
	FILE *out;

	(void)state;
	if (access(python, X_OK))
		skip();
	out = popen("/usr/bin/python3 -c 'import sys; print(*sys.version_info[:2])'", "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out, "%u %u", &major, &minor), 2);
	pclose(out);
	image = find(python);
	if (major != 3 || minor < 11 || minor > 14)
		assert_int_equal(image.language, LANGUAGE_NONE);
#ifdef __x86_64__
	else if (image.language) /* else it is in libpython */
		assert_int_equal(image.version, major << 8 | minor);
#endif
}

#ifdef __x86_64__
/* Finds a value where the C library is said to have it. */
static void test_thread_specific(void **state)
{
	char path[512] = "", line[1024];
	FILE *maps = fopen("/proc/self/maps", "r");
	struct language_image image;
	const void *const *blocks;
	pthread_key_t key;
	uintptr_t self;

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/libc.so.6"))
			sscanf(line, "%*s %*s %*s %*s %*s %511s", path);
	fclose(maps);
	if (!*path)
		skip(); /* another C library */
	image = find(path);
	assert_int_equal(image.language, LANGUAGE_NONE);
	assert_int_not_equal(image.thread_specific, 0);
	assert_int_equal(pthread_key_create(&key, NULL), 0);
	assert_int_equal(pthread_setspecific(key, &image), 0);
	asm("mov %%fs:0, %0" : "=r"(self));
	blocks = (const void *const *)(self + image.thread_specific);
	/* Blocks of 32 pairs: a number, and the value. */
	assert_ptr_equal(((const void *const *)blocks[key / 32])[key % 32 * 2 + 1], &image);
	pthread_key_delete(key);
}
#endif

/* --- Code objects at addresses --- */

#define CODE 0x7f0000001230

static uint64_t process_of(pid_t pid)
{
	return sample_id_make(1, pid, 0);
}

/* A code object of a process that began at since_ns, with a name of its own. */
static struct language_code made(uint32_t uid, pid_t pid, uint64_t number, uint64_t since,
				 uint64_t time)
{
	struct language_code code = { .process = process_of(pid),
				      .code = CODE + 16 * number,
				      .time_ns = time,
				      .since_ns = since,
				      .uid = uid,
				      .mark = number + 1,
				      .line = number };

	return code;
}

static int add_made(struct scripts *s, struct language_code code)
{
	return scripts_add(s, &code, offsetof(struct language_code, lines));
}

static int add(struct scripts *s, pid_t pid, uint64_t time, uint64_t mark)
{
	struct language_code code = made(0, pid, 0, 0, time);

	code.mark = code.line = mark;
	return add_made(s, code);
}

static bool has(struct scripts *s, pid_t pid, uint64_t number, uint64_t since)
{
	uint64_t until_ns = 1000;

	return scripts_find(s, process_of(pid), CODE + 16 * number, since, 999, &until_ns);
}

/* The line of what was found, and until when. */
static void assert_found(struct scripts *s, pid_t pid, uint64_t time, uint32_t line, uint64_t until)
{
	uint64_t until_ns = 1000;
	const struct language_code *code =
		scripts_find(s, process_of(pid), CODE, 0, time, &until_ns);

	assert_non_null(code);
	assert_int_equal(code->line, line);
	assert_int_equal(until_ns, until);
}

static void test_an_address_that_is_used_again(void **state)
{
	struct scripts s = { 0 };

	(void)state;
	assert_false(has(&s, 5, 0, 0));
	assert_int_equal(add(&s, 5, 100, 1), 0);
	assert_int_equal(add(&s, 5, 300, 3), 0);
	assert_int_equal(add(&s, 5, 200, 2), 0); /* of another CPU */
	assert_int_equal(add(&s, 5, 350, 3), 0); /* the same again */
	assert_int_equal(add(&s, 6, 100, 9), 0);
	assert_found(&s, 5, 50, 1, 200);
	assert_found(&s, 5, 100, 1, 200);
	assert_found(&s, 5, 199, 1, 200);
	assert_found(&s, 5, 200, 2, 300);
	assert_found(&s, 5, 300, 3, 1000);
	assert_found(&s, 5, 999, 3, 1000);
	assert_found(&s, 6, 999, 9, 1000);
	assert_false(has(&s, 7, 0, 0));
	assert_false(has(&s, 5, 1, 0));
	scripts_free(&s);
}

static void test_records_that_are_too_short(void **state)
{
	static struct language_code code = { .lines_bytes = 100 };
	struct scripts s = { 0 };
	uint64_t until = 1000;

	(void)state;
	for (size_t size = 0; size < offsetof(struct language_code, lines) + 100; size++)
		assert_int_equal(scripts_add(&s, &code, size), 0);
	assert_null(scripts_find(&s, 0, 0, 0, 0, &until));
	assert_int_equal(scripts_add(&s, &code, sizeof(code)), 0);
	assert_non_null(scripts_find(&s, 0, 0, 0, 0, &until));
	scripts_free(&s);
}

/* A line table that is longer than a record comes in parts, which follow each other. */
static void test_tables_in_parts(void **state)
{
	static struct language_code code = { .language = LANGUAGE_PYTHON, .line = 1, .mark = 1 };
	const struct language_code *found;
	const uint32_t parts = 4, bytes = LANGUAGE_LINES_BYTES - 1;
	struct scripts s = { 0 };
	uint64_t until = 1000;

	(void)state;
	/* Each byte: one instruction, in the same line. */
	memset(code.lines, 0x80 | 15 << 3, bytes);
	code.lines_bytes = bytes;
	code.lines_at = bytes;
	assert_int_equal(scripts_add(&s, &code, sizeof(code)), 0);
	assert_null(scripts_find(&s, 0, 0, 0, 0, &until)); /* the first one is lost */
	for (uint32_t i = 0; i < parts; i++) {
		code.lines_at = i * bytes;
		assert_int_equal(scripts_add(&s, &code, sizeof(code)), 0);
		assert_int_equal(scripts_add(&s, &code, sizeof(code)), 0); /* of another CPU, too */
	}
	code.lines_at = (parts + 1) * bytes; /* the one before is lost */
	assert_int_equal(scripts_add(&s, &code, sizeof(code)), 0);
	code.lines_at = parts * bytes;
	code.mark = 2; /* of another object */
	assert_int_equal(scripts_add(&s, &code, sizeof(code)), 0);
	found = scripts_find(&s, 0, 0, 0, 0, &until);
	assert_non_null(found);
	assert_int_equal(found->lines_bytes, parts * bytes);
	scripts_free(&s);
	assert_int_equal(s.bytes, 0);
}

#define PID_MOST 4194303 /* no process has this number */

static void test_what_is_forgotten(void **state)
{
	struct process_table table = { 0 };
	struct scripts s = { 0 };

	(void)state;
	assert_int_equal(process_add(&table, PID_MOST, 0), 0);
	assert_int_equal(add(&s, 5, 100, 5), 0);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(add(&s, PID_MOST, 100 + i, i), 0);
	/* The window had ticks from 150 on, whose names are asked for now. */
	assert_false(scripts_forget(&s, &table, 150));
	assert_false(has(&s, 5, 0, 0));
	assert_found(&s, PID_MOST, 150, 50, 151);
	assert_found(&s, PID_MOST, 999, 99, 1000);
	assert_int_equal(add(&s, PID_MOST, 500, 7), 0);
	assert_false(scripts_forget(&s, &table, 600));
	assert_found(&s, PID_MOST, 100, 7, 1000);
	process_table_free(&table);
	scripts_free(&s);
}

/* What the BPF program believes to have sent, of CODE. */
static bool sent;

static void forget_sent(uint64_t process, uint64_t code, void *context)
{
	assert_int_equal(process, process_of(PID_MOST));
	assert_int_equal(code, CODE);
	assert_ptr_equal(context, &sent);
	sent = false;
}

/* A number that a later process has: each has its own code, though it looks the same. */
static void test_a_number_that_is_used_again(void **state)
{
	struct process_table table = { 0 };
	struct scripts s = { .dropped = forget_sent, .context = &sent };
	uint64_t until_ns = 200;

	(void)state;
	assert_int_equal(process_add(&table, PID_MOST, 100), 0);
	assert_int_equal(add_made(&s, made(0, PID_MOST, 0, 100, 110)), 0);
	assert_int_equal(process_add(&table, PID_MOST, 200), 0);
	assert_false(has(&s, PID_MOST, 0, 200)); /* not by the first one's */
	assert_int_equal(add_made(&s, made(0, PID_MOST, 0, 200, 210)), 0);
	assert_true(has(&s, PID_MOST, 0, 200));
	assert_non_null(scripts_find(&s, process_of(PID_MOST), CODE, 0, 150, &until_ns));
	assert_int_equal(until_ns, 200);
	/* Without the first, and without what the second one has sent. */
	scripts_free(&s);
	s = (struct scripts){ .dropped = forget_sent, .context = &sent };
	assert_int_equal(add_made(&s, made(0, PID_MOST, 0, 100, 110)), 0);
	sent = true;
	scripts_forget(&s, &table, 100);
	assert_true(sent && s.place_count == 1); /* the first may still have ticks */
	process_remove(&table, process_at(&table, PID_MOST, 100));
	scripts_forget(&s, &table, 100);
	assert_false(sent || s.place_count);
	process_table_free(&table);
	scripts_free(&s);
}

/* What differs between forked processes, and names nothing. */
static void clear_file(struct language_code *code)
{
	memset(code->file, 0, sizeof(code->file));
}

/* 100 workers with the same 1,000 functions: as much as one, and 64 bytes for each address. */
static void test_forked_workers(void **state)
{
	struct scripts s = { .trim = clear_file };
	size_t bytes = 0;

	(void)state;
	for (int worker = 1; worker <= 100; worker++) {
		for (uint64_t i = 0; i < 1000; i++) {
			struct language_code code = made(33, worker, i, 0, 10);

			code.file_bytes = 1;
			code.file[0] = worker;
			assert_int_equal(add_made(&s, code), 0);
		}
		bytes = bytes ?: s.bytes;
	}
	assert_int_equal(s.lost, 0);
	assert_int_equal(s.text_count, 1000);
	assert_true(s.bytes < 100 * 1000 * 120 + bytes);
	for (int worker = 1; worker <= 100; worker++)
		for (uint64_t i = 0; i < 1000; i++)
			assert_true(has(&s, worker, i, 0));
	scripts_free(&s);
}

/* A process that makes code without an end takes no more memory than all may. */
static void test_limit(void **state)
{
	struct scripts s = { 0 };
	struct process_table table = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 200000; i++)
		assert_int_equal(add_made(&s, made(1000, PID_MOST, i, 0, 10)), 0);
	assert_true(s.lost > 0 && s.bytes <= SCRIPTS_BYTES_MAX && s.place_count > 10000);
	assert_int_equal(s.users[0]->lost, s.lost);
	/* What was refused is sent again, and takes the room of what no tick has come to since. */
	assert_int_equal(process_add(&table, PID_MOST, 0), 0);
	assert_false(has(&s, PID_MOST, 199999, 0));
	assert_true(scripts_forget(&s, &table, 0));
	assert_true(has(&s, PID_MOST, 7, 0));
	for (uint64_t i = 199000; i < 200000; i++)
		assert_int_equal(add_made(&s, made(1000, PID_MOST, i, 0, 20)), 0);
	assert_true(s.bytes <= SCRIPTS_BYTES_MAX);
	assert_true(has(&s, PID_MOST, 199999, 0));
	assert_true(has(&s, PID_MOST, 7, 0));
	assert_false(scripts_forget(&s, &table, 0));
	process_table_free(&table);
	scripts_free(&s);
}

static void count_dropped(uint64_t process, uint64_t code, void *context)
{
	(void)process;
	(void)code;
	++*(unsigned int *)context;
}

/* What no tick comes to any more is given back, and is sent again when one does. */
static void test_what_is_not_used(void **state)
{
	struct process_table table = { 0 };
	unsigned int dropped = 0;
	struct scripts s = { .dropped = count_dropped, .context = &dropped };

	(void)state;
	assert_int_equal(process_add(&table, PID_MOST, 0), 0);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(add_made(&s, made(1000, PID_MOST, i, 0, 10)), 0);
	for (int window = 0; window < CAPTURE_KEEP_WINDOWS; window++) {
		assert_true(has(&s, PID_MOST, 1, 0));
		assert_false(scripts_forget(&s, &table, 0));
		assert_int_equal(s.place_count, 10000);
	}
	assert_false(scripts_forget(&s, &table, 0));
	assert_int_equal(s.place_count, 1);
	assert_int_equal(dropped, 9999);
	assert_true(has(&s, PID_MOST, 1, 0));
	assert_true(s.bytes < 2000 && s.place_room < 9000 && s.text_room < 9000);
	process_table_free(&table);
	scripts_free(&s);
}

/* One user has no more than the share, root what others leave. */
static void test_share_of_one_user(void **state)
{
	struct scripts s = { .bytes_max = 1 << 20, .user_max = 1 << 18 };

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(add_made(&s, made(1000, 1, i, 0, 10)), 0);
	assert_true(s.lost > 0 && s.bytes <= 1 << 18 && s.bytes > (1 << 18) - 2000);
	assert_int_equal(scripts_users_bytes(&s), s.bytes);
	s.users[0]->lost = 0;
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(add_made(&s, made(0, 2, i, 0, 10)), 0);
	assert_true(s.bytes > (1 << 20) - 2000 && s.bytes <= 1 << 20);
	assert_int_equal(s.users[0]->lost, 0);
	assert_true(scripts_users_bytes(&s) > (1 << 18) - 2000);
	scripts_free(&s);
}

/* A user who has taken all gives way to others, what was used least recently first. */
static void test_shares_of_users(void **state)
{
	struct scripts s = { .bytes_max = 1 << 20 };
	struct refusals refusals = { 0 };
	uint64_t refused, half;

	(void)state;
	for (uint64_t i = 0; !s.lost; i++)
		assert_int_equal(add_made(&s, made(1000, 1, i, 0, 10)), 0);
	half = s.place_count / 2;
	assert_true(has(&s, 1, 0, 0));
	refused = s.lost;
	assert_int_equal(scripts_take_losses(&s, &refusals), refused);
	assert_int_equal(refusals.count, 1);
	assert_int_equal(refusals.all[0].uid, 1000);
	assert_int_equal(refusals.all[0].count, refused);
	/* Another has few functions: all have room, also while the first one makes more. */
	for (uint64_t i = 0; i < half / 2; i++) {
		assert_int_equal(add_made(&s, made(1001, 2, i, 0, 10)), 0);
		assert_int_equal(add_made(&s, made(1000, 1, 1000000 + i, 0, 10)), 0);
	}
	for (uint64_t i = 0; i < half / 2; i++)
		assert_true(has(&s, 2, i, 0));
	assert_int_equal(s.users[1]->lost, 0);
	assert_true(s.users[0]->lost > 0);
	/* A third, too; then one who wants all gets no more than the others. */
	for (uint64_t i = 0; i < 4 * half; i++)
		assert_int_equal(add_made(&s, made(0, 3, i, 0, 10)), 0);
	for (uint64_t i = 0; i < half / 2; i++)
		assert_true(has(&s, 2, i, 0));
	assert_true(s.users[0]->bytes > (size_t)5 << 16 && s.users[2]->bytes > (size_t)5 << 16);
	assert_true(s.bytes <= s.bytes_max);
	scripts_free(&s);
	assert_int_equal(s.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings_of_each_version),
		cmocka_unit_test(test_wide_state),
		cmocka_unit_test(test_cut_off_strings),
		cmocka_unit_test(test_hostile_strings),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_cut_off_tables),
		cmocka_unit_test(test_hostile_tables),
		cmocka_unit_test(test_built_images),
		cmocka_unit_test(test_installed_python),
#ifdef __x86_64__
		cmocka_unit_test(test_thread_specific),
#endif
		cmocka_unit_test(test_an_address_that_is_used_again),
		cmocka_unit_test(test_records_that_are_too_short),
		cmocka_unit_test(test_tables_in_parts),
		cmocka_unit_test(test_what_is_forgotten),
		cmocka_unit_test(test_a_number_that_is_used_again),
		cmocka_unit_test(test_forked_workers),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_what_is_not_used),
		cmocka_unit_test(test_share_of_one_user),
		cmocka_unit_test(test_shares_of_users),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
