// SPDX-License-Identifier: GPL-2.0-only
/*
 * Go's own table of functions, in programs that are made by hand (tests/progs/go_table.S) for each
 * of its layouts, and for what no linker makes.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory_fixture.h"
#include "symbol/symbol.h"

#define TEXT	  0x401000
#define CODE_SIZE 0x80

__asm__(".pushsection .rodata\n"
	"go_table_source: .incbin \"tests/progs/go_table.S\"\n"
	"go_table_source_end: .byte 0\n"
	".popsection");
extern const char go_table_source[], go_table_source_end[];

static int setup(void **state)
{
	FILE *f;
	size_t size = go_table_source_end - go_table_source;

	(void)state;
	if (directory_make())
		return -1;
	f = fopen(in_directory("go_table.S"), "wb");
	return f && fwrite(go_table_source, 1, size, f) == size && fclose(f) == 0 ? 0 : -1;
}

/* Builds "program"; flags: for the compiler. */
static void build(const char *flags)
{
#ifndef __x86_64__
	skip();
#endif
	if (shell("gcc -nostdlib -static -Wl,-Ttext=%#x,--build-id=none -o program %s go_table.S",
		  TEXT, flags))
		fail_msg("cannot build with %s", flags);
}

/* A profile with each address of the program's code; `fd`: the program, or -1. */
static struct profile *make_profile(int fd)
{
	struct profile *p = profile_new();
	struct profile_labels none = { .comm = "" };
	uint32_t image, mapping, location, labels;
	int64_t one = 1;

	assert_non_null(p);
	assert_int_equal(profile_add_image(p, in_directory("program"), NULL, 0, &image), 0);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_mapping(p, TEXT, TEXT + 0x1000, TEXT, image, &mapping), 0);
	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	p->mappings[mapping].linked = true;
	p->images[image].fd = fd;
	for (uint64_t i = 0; i < CODE_SIZE; i++) {
		assert_int_equal(profile_add_location(p, TEXT + i, mapping, &location), 0);
		assert_int_equal(profile_add_sample(p, &location, 1, labels, &one), 0);
	}
	return p;
}

static struct profile *resolve_with(struct symbol_options o)
{
	int fd = open(in_directory("program"), O_RDONLY | O_CLOEXEC);
	struct profile *p = make_profile(fd);
	struct error e;

	assert_true(fd >= 0);
	assert_int_equal(symbol_resolve(p, &o, &e), 0);
	return p;
}

static struct profile *resolve(void)
{
	return resolve_with((struct symbol_options){ .lines = true });
}

/* "inner file:line < outer file:line", without the path of files. Valid until the next call. */
static const char *chain(const struct profile *p, uint32_t at)
{
	static char text[4096];
	const struct profile_location *l = &p->locations[at];
	size_t n = 0;

	*text = '\0';
	for (uint32_t i = 0; i < l->line_count && n < sizeof(text); i++) {
		const struct profile_line *line = &p->lines[l->first_line + i];
		const struct profile_function *f = &p->functions[line->function];
		const char *file = line->file ?: f->file, *base = strrchr(file, '/');

		n += snprintf(text + n, sizeof(text) - n, "%s%.100s", i ? " < " : "", f->name);
		if (line->line && n < sizeof(text))
			n += snprintf(text + n, sizeof(text) - n, " %s:%u", base ? base + 1 : file,
				      line->line);
	}
	return text;
}

#define WITHOUT_LINES "main.inner < main.outer < main.second"

static const struct {
	uint32_t from;
	const char *chain, *without_calls;
} expected[] = {
	{ 0x00, "main.first first.go:10", NULL },
	{ 0x10, "main.first first.go:12", NULL },
	{ 0x20, "main.second second.go:20", NULL },
	{ 0x24, "main.second second.go:21", NULL },
	{ 0x28, "main.outer second.go:30 < main.second second.go:21", "main.second second.go:30" },
	{ 0x2a, "main.outer second.go:31 < main.second second.go:21", "main.second second.go:31" },
	{ 0x2c, "main.inner first.go:40 < main.outer second.go:31 < main.second second.go:21",
	  "main.second first.go:40" },
	{ 0x30, "main.second second.go:22", NULL },
	{ 0x50, "main.last first.go:50", NULL },
	{ 0x54, "main.last", NULL },
	{ 0x70, NULL, NULL },
};

/* calls: whether inlined calls are known; in_c: what names C's function. */
static void check_chains(const struct profile *p, bool calls, const char *in_c)
{
	size_t row = 0;

	for (uint32_t i = 0; i < CODE_SIZE; i++) {
		const char *right;

		while (row + 1 < sizeof(expected) / sizeof(*expected) &&
		       expected[row + 1].from <= i)
			row++;
		right = expected[row].chain ?: in_c;
		if (!calls && expected[row].without_calls)
			right = expected[row].without_calls;
		assert_string_equal(chain(p, i), right);
	}
}

static void test_layouts(void **state)
{
	static const int layouts[] = { 2, 16, 18, 20, 26, 27 };
	struct symbol_extent extents[CODE_SIZE];
	char flags[64];

	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		struct profile *p;
		struct error e;

		snprintf(flags, sizeof(flags), "-s -DLAYOUT=%d", layouts[i]);
		build(flags);
		p = resolve();
		check_chains(p, layouts[i] > 2, "");
		assert_string_equal(p->images[0].unnamed,
				    "stripped: only functions in Go have names");
		for (uint32_t j = 0; j < p->function_count && layouts[i] >= 20; j++) {
			const struct profile_function *f = &p->functions[j];

			if (strcmp(f->name, "main.inner") == 0) {
				assert_string_equal(f->file, "/src/first.go");
				assert_int_equal(f->start_line, 40);
			}
		}
		profile_free(p);

		/* Names only */
		p = resolve_with((struct symbol_options){ 0 });
		assert_string_equal(chain(p, 0x2c), "main.second");
		profile_free(p);

		p = make_profile(open(in_directory("program"), O_RDONLY | O_CLOEXEC));
		memset(extents, 0, sizeof(extents));
		assert_int_equal(symbol_extents(p, NULL, extents, &e), 0);
		assert_int_equal(extents[0x2c].start, TEXT + 0x20);
		assert_int_equal(extents[0x2c].limit, TEXT + 0x50);
		assert_int_equal(extents[0x53].start, TEXT + 0x50);
		assert_int_equal(extents[0x53].limit, TEXT + 0x54);
		assert_int_equal(extents[0x70].limit, 0);
		profile_free(p);
	}
}

/* C's functions have the names of the symbol table; Go's, those of Go, without ".abi0". */
static void test_symbol_table(void **state)
{
	struct profile *p;

	(void)state;
	build("-Wl,--defsym=main.first.abi0=_start");
	p = resolve();
	check_chains(p, true, "in_c");
	profile_free(p);
}

/* The words around the module */
#define MODULE_START 0x0a0b0c0d
#define MODULE_END   0x0d0c0b0a

/*
 * Clears the addresses in the program from the first word on that is `from` up to the end of the
 * module, as linkers do that leave all to relocations.
 */
static void clear_addresses(uint64_t from)
{
	int fd = open(in_directory("program"), O_RDWR | O_CLOEXEC);
	uint64_t word;
	bool is_found = false;
	off_t at = 0;

	assert_true(fd >= 0);
	for (; pread(fd, &word, sizeof(word), at) == sizeof(word) && word != MODULE_END;
	     at += sizeof(word)) {
		is_found = is_found || word == from;
		if (!is_found || word < TEXT || word >= TEXT + 0x10000)
			continue;
		word = 0;
		assert_int_equal(pwrite(fd, &word, sizeof(word), at), sizeof(word));
	}
	assert_true(is_found);
	close(fd);
}

/* The linker leaves addresses to relocations, or moves the table to other data. */
static void test_position_independent(void **state)
{
	static const struct {
		const char *flags;
		uint64_t cleared; /* from here on; 0: nothing */
	} rows[] = {
		{ "-s -shared -DLAYOUT=16 -DFLAGS=\\\"aw\\\"", 0 },
		{ "-s -shared -DLAYOUT=18 -DFLAGS=\\\"aw\\\"", 0 },
		{ "-s -shared -DLAYOUT=18 -DFLAGS=\\\"aw\\\"", 0x08010000fffffff0 },
		{ "-s -shared -DLAYOUT=20 -DFLAGS=\\\"aw\\\"", 0x08010000fffffff1 },
		{ "-s -shared -DLAYOUT=26", MODULE_START },
		{ "-s -shared -DLAYOUT=27", MODULE_START },
		{ "-s -shared -DSECTION=\\\".data.rel.ro\\\" -DFLAGS=\\\"aw\\\"", 0 },
		{ "-s -shared -DSECTION=\\\".data.rel.ro\\\" -DFLAGS=\\\"aw\\\" -DJUNK",
		  0x08010000fffffff1 },
		{ "-s -shared -Wl,-z,pack-relative-relocs -DLAYOUT=20 -DFLAGS=\\\"aw\\\"", 0 },
		{ "-s -shared -Wl,-z,pack-relative-relocs -DLAYOUT=27", 0 },
	};
	struct profile *p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		build(rows[i].flags);
		if (rows[i].cleared)
			clear_addresses(rows[i].cleared);
		p = resolve();
		if (strcmp(chain(p, 0x2c), expected[6].chain) != 0)
			print_message("%s\n", rows[i].flags);
		check_chains(p, true, "in_c"); /* it is exported */
		profile_free(p);
	}
	/* Before 1.18 the functions themselves have addresses. */
	build("-s -shared -DLAYOUT=16 -DFLAGS=\\\"aw\\\"");
	clear_addresses(0x08010000fffffffa);
	p = resolve();
	for (uint32_t i = 0; i < CODE_SIZE - 0x10; i++)
		assert_string_equal(chain(p, i), "");
	assert_non_null(strstr(p->images[0].unnamed, "are not in its code"));
	profile_free(p);
}

/* What is wrong in one place costs names or lines of that place. */
static void test_hostile(void **state)
{
	static const struct {
		const char *flags;
		const char *first, *inner; /* at the start, and in main.inner */
		const char *why;
	} rows[] = {
		/* The header */
		{ "-DMAGIC=0xfffffff2", "", "", "is of an unknown layout (0xfffffff2)" },
		{ "-DPOINTER=4", "", "", "is corrupt: its header" },
		{ "-DQUANTUM=0", "", "", "is corrupt: its header" },
		{ "-DCOUNT=0x7fffffffffffffff", "", "", "is corrupt: too many functions" },
		{ "-DCOUNT=0xffffffffffffffff", "", "", "is corrupt: too many functions" },
		{ "-DCOUNT=30", "", "", "is corrupt: it is too short" },
		{ "-DCOUNT=0", "", "", "are not in its code" },
		{ "-DNAMES=-1", "", "", "is corrupt: its parts" },
		{ "-DUNITS=0x7fffffff", "", "", "is corrupt: its parts" },
		{ "-DINFOS=0x7fffffff", "", "", "is corrupt: it is too short" },
		{ "-DINFOS=-8", "", "", "is corrupt: it is too short" },
		{ "-DTEXT=0x1000 -DMODULE=0", "", "", "are not in its code" },
		{ "-DLAYOUT=27 -DMODULE=0", "", "", "firstmoduledata cannot be found" },
		/* Without the module, inlined calls are not known. */
		{ "-DMODULE=0", "main.first first.go:10", "main.second first.go:40", NULL },
		{ "-DMODULE=table+8", "main.first first.go:10", "main.second first.go:40", NULL },
		/* A function */
		{ "-DSECOND_AT=0", "", "", NULL },
		{ "-DSECOND_AT=0xffffffff", "", "", NULL },
		{ "-DSECOND_AT=0x28", "main.first first.go:10", "", NULL },
		{ "-DSECOND_NAME=0x7fffffff", "main.first first.go:10", "", NULL },
		{ "-DSECOND_LINES=0x7fffffff", "main.first first.go:10", WITHOUT_LINES, NULL },
		{ "-DSECOND_LINES=0", "main.first first.go:10", WITHOUT_LINES, NULL },
		/* An inlined call */
		{ "-DINNER_NAME=3", "main.first first.go:10", "main.second first.go:40", NULL },
		{ "-DINNER_NAME=-1", "main.first first.go:10", "main.second first.go:40", NULL },
		{ "-DINNER_CALLER=12", "main.first first.go:10", "main.second", NULL },
		{ "-DINNER_CALLER=-1", "main.first first.go:10", "main.second first.go:40", NULL },
	};
	char flags[128];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct profile *p;

		snprintf(flags, sizeof(flags), "-s %s", rows[i].flags);
		build(flags);
		p = resolve();
		if (strcmp(chain(p, 0), rows[i].first) || strcmp(chain(p, 0x2c), rows[i].inner) ||
		    (rows[i].why && !strstr(p->images[0].unnamed ?: "", rows[i].why)))
			print_message("%s: %s; %s\n", flags, chain(p, 0x2c), p->images[0].unnamed);
		assert_string_equal(chain(p, 0), rows[i].first);
		assert_string_equal(chain(p, 0x2c), rows[i].inner);
		if (rows[i].why)
			assert_non_null(strstr(p->images[0].unnamed, rows[i].why));
		profile_free(p);

		/* A table that cannot be used does not hide the symbols. */
		if (!rows[i].why)
			continue;
		build(rows[i].flags);
		p = resolve_with((struct symbol_options){ 0 });
		assert_string_equal(chain(p, 0x70), "in_c");
		assert_string_equal(chain(p, 0), "_start");
		profile_free(p);
	}
}

/* Programs without an end, which each address could read to the end of the table. */
static void test_endless(void **state)
{
	struct profile *p;

	(void)state;
	build("-s '-DTAIL=endless: .fill 8388608, 2, 2' "
	      "'-DSECOND_LINES=endless - PROGRAMS_BASE'");
	p = resolve();
	assert_string_equal(chain(p, 0), "main.first first.go:10");
	assert_string_equal(chain(p, 0x2c), "main.second");
	profile_free(p);
	/* A number of a megabyte */
	build("-s '-DTAIL=endless: .fill 1048576, 1, 0x80' "
	      "'-DSECOND_LINES=endless - PROGRAMS_BASE'");
	p = resolve();
	assert_string_equal(chain(p, 0x2c), WITHOUT_LINES);
	profile_free(p);
}

/* Repeatedly, as for windows: what is kept of the symbol table and what is not are one. */
static void test_kept(void **state)
{
	struct symbol_options o = { .window_ns = 1000000000, .cache = symbol_cache_new() };

	(void)state;
	assert_non_null(o.cache);
	build("-DLAYOUT=27");
	for (int i = 0; i < 3; i++) {
		struct profile *p = resolve_with(o);

		assert_string_equal(chain(p, 0), "main.first");
		assert_string_equal(chain(p, 0x2c), "main.second");
		assert_string_equal(chain(p, 0x70), "in_c");
		profile_free(p);
	}
	symbol_cache_free(o.cache);
}

/* Any bit may be another. */
static void test_damaged(void **state)
{
	static const char *const flags[] = { "-DLAYOUT=2", "-DLAYOUT=16", "-DLAYOUT=20",
					     "-DLAYOUT=27", "-shared" };
	unsigned int seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		char command[64];
		struct stat status;
		uint8_t *bytes;
		int fd;

		snprintf(command, sizeof(command), "-s %s", flags[i]);
		build(command);
		fd = open(in_directory("program"), O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &status), 0);
		bytes = malloc(status.st_size);
		assert_non_null(bytes);
		assert_int_equal(pread(fd, bytes, status.st_size, 0), status.st_size);
		for (int round = 0; round < 200; round++) {
			uint8_t damaged[3] = { 0 };
			off_t at[3];

			/* Behind the code, up to the section headers */
			for (int k = 0; k < 3; k++) {
				at[k] = 0x1000 + rand_r(&seed) % (status.st_size - 0x1000);
				damaged[k] = bytes[at[k]] ^ 1 << rand_r(&seed) % 8;
				assert_int_equal(pwrite(fd, &damaged[k], 1, at[k]), 1);
			}
			profile_free(resolve());
			for (int k = 0; k < 3; k++)
				assert_int_equal(pwrite(fd, &bytes[at[k]], 1, at[k]), 1);
		}
		close(fd);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_symbol_table),
		cmocka_unit_test(test_position_independent),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, setup, directory_teardown);
}
