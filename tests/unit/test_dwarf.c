// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader of DWARF: its numbers, its windows into sections that are compressed, and debug
 * information that no compiler would write. What compilers write is in tests/cli/lines.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory_fixture.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/section.h"
#include "symbol/symbol.h"
#include "util/clock.h"

/* --- Numbers --- */

static struct dwarf_cursor over(const void *bytes, size_t size)
{
	return (struct dwarf_cursor){ .at = bytes, .end = (const uint8_t *)bytes + size };
}

static void test_numbers(void **state)
{
	struct dwarf_cursor c = over("\x01\x02\x03\x04\x05", 5);

	(void)state;
	assert_int_equal(dwarf_number(&c, 3), 0x030201);
	c.big_endian = true;
	assert_int_equal(dwarf_number(&c, 2), 0x0405);
	assert_false(c.bad);
	assert_int_equal(dwarf_number(&c, 1), 0);
	assert_true(c.bad);
	c = over("\x01\x02\x03", 3);
	assert_int_equal(dwarf_number(&c, 4), 0);
	assert_true(c.bad);
	assert_true(c.at == c.end);
}

static void test_leb(void **state)
{
	struct dwarf_cursor c = over("\xe5\x8e\x26", 3);

	(void)state;
	assert_int_equal(dwarf_uleb(&c), 624485);
	c = over("\x7f", 1);
	assert_int_equal(dwarf_sleb(&c), -1);
	c = over("\x80\x7f", 2);
	assert_int_equal(dwarf_sleb(&c), -128);
	c = over("\x80\x01", 2);
	assert_int_equal(dwarf_sleb(&c), 128);
	/* Longer than any number: the excess bits are dropped, and reading continues after it. */
	c = over("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x05", 13);
	assert_true(dwarf_uleb(&c) == UINT64_MAX);
	assert_int_equal(dwarf_uleb(&c), 5);
	assert_false(c.bad);
	c = over("\x80\x80", 2);
	assert_int_equal(dwarf_uleb(&c), 0);
	assert_true(c.bad);
	c = over("\x01\x02", 2);
	dwarf_skip(&c, UINT64_MAX);
	assert_true(c.bad);
}

/* --- Sections --- */

#define LARGE ((size_t)24 * 1024 * 1024)

/* The byte at an offset; such data can be compressed, but not to almost nothing. */
static uint8_t byte_at(uint64_t offset)
{
	return offset % 7 ? offset >> 13 : (offset * 2654435761u) >> 24;
}

static void make_large(void)
{
	FILE *f = fopen(in_directory("large"), "wb");

	assert_non_null(f);
	for (size_t i = 0; i < LARGE; i++)
		putc(byte_at(i), f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(shell("echo 'int main(void) { return 0; }' >m.c && gcc -g0 -o plain m.c"),
			 0);
	assert_int_equal(shell("objcopy --add-section .debug_str=large plain flat"), 0);
	assert_int_equal(shell("objcopy --compress-debug-sections=zlib flat packed"), 0);
}

static int open_section(const char *name, struct elf_file *file, struct dwarf_section *s,
			uint64_t *room)
{
	struct error e;
	int fd = open(in_directory(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(file, fd, NULL, &e), 0);
	return dwarf_section_open(s, file, ".debug_str", room);
}

static void open_file(const char *name, struct elf_file *file, struct dwarf_section *s)
{
	assert_int_equal(open_section(name, file, s, NULL), 0);
}

static void check_bytes(struct dwarf_section *s, uint64_t offset, size_t want)
{
	size_t got, expected = LARGE - offset < want ? LARGE - offset : want;
	const uint8_t *bytes = dwarf_section_read(s, offset, want, &got);

	assert_non_null(bytes);
	assert_int_equal(got, expected);
	for (size_t i = 0; i < got; i++)
		assert_int_equal(bytes[i], byte_at(offset + i));
}

static void check_section(const char *name, uint64_t room)
{
	struct elf_file file;
	struct dwarf_section s;
	size_t got;

	assert_int_equal(open_section(name, &file, &s, &room), 0);
	assert_int_equal(s.size, LARGE);
	check_bytes(&s, LARGE - 10, 100);
	check_bytes(&s, 0, 100);
	for (uint64_t i = 1; i < 60; i++)
		check_bytes(&s, i * 2654435761u % LARGE, 1 + i * i);
	check_bytes(&s, 1000, 3 * 1024 * 1024);
	check_bytes(&s, 900, 200);
	assert_null(dwarf_section_read(&s, LARGE, 1, &got));
	assert_null(dwarf_section_read(&s, UINT64_MAX, 1, &got));
	dwarf_section_close(&s);
	elf_file_close(&file);
}

static void test_sections(void **state)
{
	(void)state;
	make_large();
	check_section("flat", 0);
	check_section("flat", LARGE);
	check_section("packed", LARGE - 1);
	check_section("packed", LARGE);
}

/* If there is memory for a whole section, it is inflated once, up to what was requested. */
static void test_whole(void **state)
{
	uint64_t room = LARGE + 100;
	struct elf_file file, other_file;
	struct dwarf_section s, other;

	(void)state;
	assert_int_equal(open_section("packed", &file, &s, &room), 0);
	assert_true(room == 100);
	check_bytes(&s, 0, 100);
	assert_true(s.filled < LARGE / 8);
	for (uint64_t i = 1; i < 60; i++)
		check_bytes(&s, i * 2654435761u % LARGE, 100);
	assert_true(s.filled <= LARGE);
	/* There is no memory left for another section, which is read nevertheless. */
	assert_int_equal(open_section("packed", &other_file, &other, &room), 0);
	assert_true(room == 100);
	check_bytes(&other, LARGE - 10, 100);
	check_bytes(&other, 0, 100);
	dwarf_section_close(&other);
	assert_true(room == 100);
	dwarf_section_close(&s);
	assert_true(room == LARGE + 100);
	elf_file_close(&other_file);
	elf_file_close(&file);
}

/* The header states zstd, which is read only if the whole section fits; the data is invalid. */
static void test_zstd(void **state)
{
	uint64_t room = LARGE - 1;
	struct elf_file file;
	struct dwarf_section s;
	size_t got;

	(void)state;
	assert_int_equal(
		shell("cp packed zstd && offset=$(readelf -SW zstd | "
		      "sed -n 's/.* .debug_str *[A-Z]* *[0-9a-f]* \\([0-9a-f]*\\).*/\\1/p')"
		      " && printf '\\2' | dd of=zstd bs=1 seek=$((0x$offset)) conv=notrunc"),
		0);
	assert_int_equal(open_section("zstd", &file, &s, &room), -EFBIG);
	assert_true(room == LARGE - 1);
	dwarf_section_close(&s);
	elf_file_close(&file);
	room = LARGE;
	assert_int_equal(open_section("zstd", &file, &s, &room), 0);
	assert_null(dwarf_section_read(&s, 0, 1, &got));
	assert_null(dwarf_section_read(&s, LARGE - 1, 1, &got));
	dwarf_section_close(&s);
	elf_file_close(&file);
}

/* Reading the same data again and again ends with an error. */
static void test_work_is_bounded(void **state)
{
	struct elf_file file;
	struct dwarf_section s;
	int i = 0;

	(void)state;
	open_file("flat", &file, &s);
	while (i < 1000 && dwarf_section_use(&s, LARGE))
		i++;
	assert_in_range(i, 8, 20);
	dwarf_section_close(&s);
	elf_file_close(&file);
}

/* A file that is truncated while it is read. */
static void test_truncated(void **state)
{
	struct elf_file file;
	struct dwarf_section s;
	size_t got;

	(void)state;
	open_file("packed", &file, &s);
	assert_int_equal(truncate(in_directory("packed"), 100000), 0);
	assert_null(dwarf_section_read(&s, LARGE - 10, 10, &got));
	assert_null(dwarf_section_string(&s, LARGE - 10));
	dwarf_section_close(&s);
	elf_file_close(&file);
}

/* --- Debug information made by hand --- */

/* A function, and sections of its debug information; %s: the entries in its unit. */
static const char program[] =
	".text\n.globl _start, victim\n.type victim, @function\n_start:\nvictim:\n"
	".fill 64, 1, 0x90\n.size victim, 64\n"
	".section .debug_abbrev, \"\", @progbits\n"
	".byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0\n"	   /* unit: low_pc, high_pc */
	".byte 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0\n" /* function: name, low_pc, high_pc */
	".byte 3, 0x1d, 1, 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0\n" /* inlined: origin, low_pc, ... */
	".byte 4, 0x2e, 0, 0x31, 0x13, 0, 0\n"			 /* abstract: origin */
	".byte 5, 0x0b, 1, 0, 0\n"				 /* block */
	".byte 6, 0x2e, 0, 3, 8, 0, 0\n"			 /* abstract: name */
	".byte 7, 0x1d, 1, 0x31, 0x13, 0x55, 0x17, 0, 0\n"	 /* inlined: origin, ranges */
	".byte 8, 0x2e, 0, 3, 0x16, 0, 0\n" /* abstract: name, with its form in the data */
	".byte 0\n"
	".section .debug_info, \"\", @progbits\n"
	"unit: .long end - version\nversion: .short 4\n.long 0\n.byte 8\n"
	".byte 1\n.quad victim, 64\n%send:\n";

static struct profile *resolve_made(const char *entries, bool (*stop)(void *context))
{
	struct symbol_options o = { .lines = true, .stop = stop };
	struct profile *p = profile_new();
	struct profile_labels none = { .comm = "" };
	uint32_t image, mapping, location, labels;
	FILE *f = fopen(in_directory("made.s"), "w");
	unsigned long address;
	int64_t one = 1;
	struct error e;

	assert_non_null(f);
	fprintf(f, program, entries);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(shell("gcc -nostdlib -static -o made made.s && "
			       "nm made | sed -n 's/ T victim//p' >made.nm"),
			 0);
	f = fopen(in_directory("made.nm"), "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx", &address), 1);
	fclose(f);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_image(p, in_directory("made"), NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, 0, UINT64_MAX >> 1, 0, image, &mapping), 0);
	p->mappings[mapping].linked = true;
	assert_int_equal(profile_add_location(p, address + 8, mapping, &location), 0);
	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	assert_int_equal(profile_add_sample(p, &location, 1, labels, &one), 0);
	assert_int_equal(symbol_resolve(p, &o, &e), 0);
	return p;
}

static const char *name_of(const struct profile *p, uint32_t line)
{
	assert_true(line < p->locations[0].line_count);
	return p->functions[p->lines[p->locations[0].first_line + line].function].name;
}

#define ENDS   ".byte 0, 0, 0\n"
#define VICTIM ".byte 2\n.asciz \"other\"\n.quad victim, 64\n"

static void test_inlined(void **state)
{
	struct profile *p = resolve_made("called: .byte 6\n.asciz \"called\"\n" VICTIM
					 ".byte 3\n.long called - unit\n.quad victim, 16\n" ENDS,
					 NULL);

	(void)state;
	assert_int_equal(p->locations[0].line_count, 2);
	assert_string_equal(name_of(p, 0), "called");
	assert_string_equal(name_of(p, 1), "victim"); /* the symbol's name, not DWARF's */
	profile_free(p);
}

static void test_cycle(void **state)
{
	struct profile *p =
		resolve_made("a: .byte 4\n.long b - unit\nb: .byte 4\n.long a - unit\n" VICTIM
			     ".byte 3\n.long a - unit\n.quad victim, 16\n" ENDS,
			     NULL);

	(void)state;
	assert_int_equal(p->locations[0].line_count, 1);
	assert_string_equal(name_of(p, 0), "victim");
	profile_free(p);
}

/* Nested deeper than in any program. */
static void test_deep(void **state)
{
	struct profile *p = resolve_made(".fill 3000000, 1, 5\n" VICTIM ENDS, NULL);

	(void)state;
	assert_string_equal(name_of(p, 0), "victim");
	assert_int_equal(p->warning_count, 1);
	assert_non_null(strstr(p->warnings[0], "debug information is corrupt"));
	profile_free(p);
}

/* The address is in all of them. */
static void test_nested(void **state)
{
	struct profile *p = resolve_made("called: .byte 6\n.asciz \"called\"\n" VICTIM
					 ".rept 900\n.byte 3\n.long called - unit\n"
					 ".quad victim, 64\n.endr\n.fill 902, 1, 0\n",
					 NULL);

	(void)state;
	assert_int_equal(p->locations[0].line_count, 901);
	profile_free(p);
}

static void test_unknown_abbreviation(void **state)
{
	struct profile *p = resolve_made(".byte 99\n" VICTIM ENDS, NULL);

	(void)state;
	assert_string_equal(name_of(p, 0), "victim");
	assert_int_equal(p->warning_count, 1);
	profile_free(p);
}

/* Ranges with a base other than the unit's. */
static void test_base(void **state)
{
	struct profile *p = resolve_made(".pushsection .debug_ranges, \"\", @progbits\n"
					 ".quad -1, victim - 256, 256, 272, 0, 0\n.popsection\n"
					 "called: .byte 6\n.asciz \"called\"\n" VICTIM
					 ".byte 7\n.long called - unit, 0\n" ENDS,
					 NULL);

	(void)state;
	assert_int_equal(p->warning_count, 0);
	assert_int_equal(p->locations[0].line_count, 2);
	assert_string_equal(name_of(p, 0), "called");
	profile_free(p);
}

/*
 * Overlapping ranges of one entry, and of several functions: each address is in one of them, once.
 */
static void test_overlap(void **state)
{
	struct profile *p = resolve_made(".pushsection .debug_ranges, \"\", @progbits\n"
					 ".quad 0, 16, 4, 32, 0, 0\n.popsection\n"
					 "called: .byte 6\n.asciz \"called\"\n" VICTIM
					 ".byte 7\n.long called - unit, 0\n.byte 0\n" VICTIM
					 ".byte 3\n.long called - unit\n.quad victim, 16\n" ENDS,
					 NULL);

	(void)state;
	assert_int_equal(p->warning_count, 0);
	assert_int_equal(p->locations[0].line_count, 2);
	assert_string_equal(name_of(p, 0), "called");
	assert_string_equal(name_of(p, 1), "victim");
	profile_free(p);

	/* The second function begins in the first one, which has an inlined call. */
	p = resolve_made("called: .byte 6\n.asciz \"called\"\n" VICTIM
			 ".byte 3\n.long called - unit\n.quad victim, 16\n.byte 0\n"
			 ".byte 2\n.asciz \"second\"\n.quad victim + 4, 64\n.byte 0\n" ENDS,
			 NULL);
	assert_int_equal(p->locations[0].line_count, 2);
	assert_string_equal(name_of(p, 0), "called");
	assert_string_equal(name_of(p, 1), "victim");
	profile_free(p);
}

/* Data after the end of a set, here an invalid unit, is ignored. */
static void test_aranges(void **state)
{
	struct profile *p = resolve_made(".pushsection .debug_aranges, \"\", @progbits\n"
					 ".long 60\n.short 2\n.long 9999\n.byte 8, 0, 0, 0, 0, 0\n"
					 ".quad 0, 0, victim, 64, 0, 0\n.popsection\n"
					 "called: .byte 6\n.asciz \"called\"\n" VICTIM
					 ".byte 3\n.long called - unit\n.quad victim, 16\n" ENDS,
					 NULL);

	(void)state;
	assert_int_equal(p->warning_count, 0);
	assert_int_equal(p->locations[0].line_count, 2);
	profile_free(p);
}

/* The form "a form follows", which must not be followed by itself. */
static void test_indirect(void **state)
{
	struct profile *p = resolve_made(".byte 8, 8\n.asciz \"direct\"\n" VICTIM ENDS, NULL);

	(void)state;
	assert_int_equal(p->warning_count, 0);
	profile_free(p);
	p = resolve_made(".byte 8, 0x16, 8\n.asciz \"again\"\n" VICTIM ENDS, NULL);
	assert_int_equal(p->warning_count, 1);
	assert_string_equal(name_of(p, 0), "victim");
	profile_free(p);
}

static bool always(void *context)
{
	(void)context;
	return true;
}

static void test_stop(void **state)
{
	uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct profile *p = resolve_made(VICTIM ENDS, always);

	(void)state;
	assert_int_equal(p->locations[0].line_count, 0);
	assert_true(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin < 20 * NS_PER_S);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	  cmocka_unit_test(test_leb),
		cmocka_unit_test(test_sections),  cmocka_unit_test(test_work_is_bounded),
		cmocka_unit_test(test_whole),	  cmocka_unit_test(test_zstd),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_cycle),	  cmocka_unit_test(test_deep),
		cmocka_unit_test(test_nested),	  cmocka_unit_test(test_unknown_abbreviation),
		cmocka_unit_test(test_base),	  cmocka_unit_test(test_aranges),
		cmocka_unit_test(test_indirect),  cmocka_unit_test(test_stop),
		cmocka_unit_test(test_overlap),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
