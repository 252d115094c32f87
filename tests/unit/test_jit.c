// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of code made at run time, from test files perf-PID.map and jit-PID.dump; kernel modules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbol/batch.h"
#include "symbol/file_limits.h"
#include "symbol/jit.h"
#include "symbol/symbol.h"

#define MEMORY 0x10000ULL /* the address of the code */
#define COUNT  16	  /* of addresses, 0x100 apart */

/* A memfd that is written piece by piece. */
struct file {
	int fd;
};

static void add(struct file *f, const void *bytes, size_t size)
{
	assert_int_equal(write(f->fd, bytes, size), size);
}

static struct file new_file(const char *text)
{
	struct file f = { memfd_create("jit", MFD_CLOEXEC) };

	assert_true(f.fd >= 0);
	add(&f, text, strlen(text));
	return f;
}

/* A profile with COUNT addresses in one process's memory. */
static struct profile *new_profile(struct batch_address addresses[COUNT])
{
	struct profile *p = profile_new();
	uint32_t image, mapping, location;

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_image(p, "[jit 612]", NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, MEMORY, MEMORY + 0x10000, MEMORY, image, &mapping),
			 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint64_t address = MEMORY + 0x100 * i;

		assert_int_equal(profile_add_location(p, address, mapping, &location), 0);
		addresses[i] = (struct batch_address){ .address = address, .location = location };
	}
	return p;
}

static const char *name_at(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];

	return l->line_count ? p->functions[p->lines[l->first_line].function].name : NULL;
}

/* Resolves them by a file, which is closed. */
static struct profile *resolve(struct file *f)
{
	struct batch_address addresses[COUNT];
	struct profile *p = new_profile(addresses);
	struct batch b = { .p = p, .addresses = addresses, .count = COUNT };

	assert_int_equal(jit_resolve_from(&b, f->fd), 0);
	close(f->fd);
	return p;
}

static void assert_name(const struct profile *p, uint32_t location, const char *name)
{
	if (name)
		assert_non_null(name_at(p, location));
	if (name)
		assert_string_equal(name_at(p, location), name);
	else
		assert_null(name_at(p, location));
}

static void test_map(void **state)
{
	struct file f = new_file("10000 100 first\n"
				 "0x10100 0x80 with blanks and \x1b[31m\n"
				 "10200 200 over two\n"
				 "10300 10 the later wins\n"
				 "10400 0 nothing\n"
				 "not a line\n"
				 "\n"
				 "10500\n10500 10\n10500 10 \n10500  10 x\n"
				 "12345678901234567 10 too many digits\n"
				 "10600 ffffffffffffffff to the end\n"
				 "10700 10 _ZN3foo3barEv\n"
				 "10800 100 half writ");
	struct profile *p = resolve(&f);

	(void)state;
	assert_name(p, 0, "first");
	assert_name(p, 1, "with blanks and \x1b[31m");
	assert_name(p, 2, "over two");
	assert_name(p, 3, "the later wins");
	assert_name(p, 4, NULL);
	assert_name(p, 5, NULL);
	assert_name(p, 6, "to the end");
	assert_name(p, 7, "foo::bar()");
	assert_name(p, 8, "to the end");
	profile_free(p);
}

static void test_map_empty(void **state)
{
	static const char *const texts[] = { "", "\n", "x", "10000", "10000 100 half" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct file f = new_file(texts[i]);
		struct profile *p = resolve(&f);

		assert_name(p, 0, NULL);
		profile_free(p);
	}
}

/* Lines longer than the read buffer; and a NUL. */
static void test_map_long(void **state)
{
	struct file f = new_file("10000 100 before\n10100 100 ");
	char *line = malloc(3 * JIT_WINDOW);
	struct profile *p;

	(void)state;
	memset(line, 'x', 3 * JIT_WINDOW);
	add(&f, line, 3 * JIT_WINDOW);
	free(line);
	add(&f, "\n10200 100 after\n10300 100 nul\0rest\n10400 100 \0\n", 48);
	/* The part of a line behind the first window is not a line. */
	line = malloc(JIT_WINDOW);
	memset(line, 'x', JIT_WINDOW);
	add(&f, line, JIT_WINDOW);
	free(line);
	add(&f, "10200 100 wrong\n", 16);
	p = resolve(&f);
	assert_name(p, 0, "before");
	assert_name(p, 2, "after");
	assert_name(p, 3, "nul");
	assert_name(p, 4, NULL);
	profile_free(p);
}

/* Every entry covers all addresses: the time must not be proportional to the product. */
static void test_map_overlapping(void **state)
{
	struct file f = new_file("");
	struct profile *p;
	char line[64];

	(void)state;
	for (int i = 0; i < 20000; i++)
		add(&f, line, snprintf(line, sizeof(line), "0 ffffffff name_%d\n", i));
	p = resolve(&f);
	assert_name(p, 0, "name_19999");
	assert_name(p, COUNT - 1, "name_19999");
	profile_free(p);
}

/* --- jitdump --- */

static void add_u32(struct file *f, uint32_t value)
{
	add(f, &value, sizeof(value));
}

static void append_u64(struct file *f, uint64_t value)
{
	add(f, &value, sizeof(value));
}

static void add_record(struct file *f, uint32_t id, uint32_t size)
{
	add_u32(f, id);
	add_u32(f, 16 + size);
	append_u64(f, 1);
}

static struct file new_dump(uint32_t version)
{
	struct file f = new_file("");

	add_u32(&f, 0x4a695444);
	add_u32(&f, version);
	add_u32(&f, 40);
	add_u32(&f, 62);
	add_u32(&f, 0);
	add_u32(&f, 612);
	append_u64(&f, 1);
	append_u64(&f, 0);
	return f;
}

static void add_load(struct file *f, uint64_t address, uint64_t size, uint64_t index,
		     const char *name)
{
	add_record(f, 0, 40 + strlen(name) + 1 + 4);
	add_u32(f, 612);
	add_u32(f, 612);
	append_u64(f, address);
	append_u64(f, address);
	append_u64(f, size);
	append_u64(f, index);
	add(f, name, strlen(name) + 1);
	add(f, "code", 4);
}

static void add_move(struct file *f, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	add_record(f, 1, 48);
	add_u32(f, 612);
	add_u32(f, 612);
	append_u64(f, to);
	append_u64(f, from);
	append_u64(f, to);
	append_u64(f, size);
	append_u64(f, index);
}

static void test_dump(void **state)
{
	struct file f = new_dump(1);
	struct profile *p;

	(void)state;
	add_load(&f, 0x10000, 0x100, 0, "first");
	add_load(&f, 0x10100, 0x100, 1, "replaced");
	add_load(&f, 0x10200, 0x100, 2, "moved");
	add_load(&f, 0x10100, 0x100, 3, "in its place");
	add_record(&f, 77, 8); /* of a later version */
	append_u64(&f, 0);
	add_move(&f, 0x10200, 0x10300, 0x200, 2);
	add_move(&f, 0x10500, 0x10600, 0x100, 99); /* of what was never loaded */
	add_record(&f, 3, 0);
	add_load(&f, 0x10700, 0x100, 4, "after its end");
	p = resolve(&f);
	assert_name(p, 0, "first");
	assert_name(p, 1, "in its place");
	assert_name(p, 2, "moved");
	assert_name(p, 3, "moved");
	assert_name(p, 4, "moved");
	assert_name(p, 5, NULL);
	assert_name(p, 6, NULL);
	assert_name(p, 7, NULL);
	profile_free(p);
}

static void add_line(struct file *f, uint64_t address, uint32_t line, const char *file)
{
	append_u64(f, address);
	add_u32(f, line);
	add_u32(f, 0);
	add(f, file, strlen(file) + 1);
}

static void test_dump_lines(void **state)
{
	struct file f = new_dump(1);
	const struct profile_line *line;
	struct profile *p;

	(void)state;
	add_record(&f, 2, 16 + (16 + 5) + (16 + 2) + (16 + 5));
	append_u64(&f, 0x10000);
	append_u64(&f, 3);
	add_line(&f, 0x10000, 7, "a.js");
	add_line(&f, 0x10100, 8, "\xff");
	add_line(&f, 0x10180, 9, "b.js");
	add_record(&f, 4, 8); /* how to unwind it */
	append_u64(&f, 0);
	add_load(&f, 0x10000, 0x300, 0, "with lines");
	add_load(&f, 0x10300, 0x100, 1, "without");
	p = resolve(&f);
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const files[] = { "a.js", "a.js", "b.js" };

		assert_name(p, i, "with lines");
		line = &p->lines[p->locations[i].first_line];
		assert_int_equal(line->line, 7 + i);
		assert_string_equal(line->file, files[i]);
	}
	assert_name(p, 3, "without");
	assert_int_equal(p->lines[p->locations[3].first_line].line, 0);
	profile_free(p);
}

/* Many addresses in one function that has many lines. */
static void test_dump_many_lines(void **state)
{
	enum {
		LINES = 50000,
		ADDRESSES = 2500,
	};
	static struct batch_address addresses[ADDRESSES];
	struct file f = new_dump(1);
	struct profile *p = profile_new();
	struct batch b = { .p = p, .addresses = addresses, .count = ADDRESSES };
	char *lines = calloc(LINES, 18);

	(void)state;
	assert_non_null(lines);
	assert_non_null(p);
	add_record(&f, 2, 16 + LINES * 18 + 3);
	append_u64(&f, MEMORY);
	append_u64(&f, LINES);
	for (uint64_t i = 0; i < LINES; i++) {
		uint64_t address = MEMORY + i;
		uint32_t line = i + 1;

		memcpy(lines + i * 18, &address, sizeof(address));
		memcpy(lines + i * 18 + 8, &line, sizeof(line));
		lines[i * 18 + 16] = (char)(i ? 0xff : 'a');
	}
	add(&f, lines, LINES * 18);
	add(&f, "end", 3);
	add_load(&f, MEMORY, LINES, 0, "long");
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		uint64_t address = MEMORY + LINES - ADDRESSES + i;

		addresses[i].address = address;
		assert_int_equal(
			profile_add_location(p, address, PROFILE_NONE, &addresses[i].location), 0);
	}
	assert_int_equal(jit_resolve_from(&b, f.fd), 0);
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		const struct profile_line *line = &p->lines[p->locations[i].first_line];

		assert_name(p, i, "long");
		assert_int_equal(line->line, LINES - ADDRESSES + i + 1);
		assert_string_equal(line->file, "a");
	}
	close(f.fd);
	free(lines);
	profile_free(p);
}

/*
 * Of a map that takes more than its part of a window's limits the end is read. What takes too long
 * names nothing: what was not read may be newer.
 */
static void test_limits(void **state)
{
	struct file f = new_file("10000 100 first\n");
	struct file_limits limits = { 0 };
	struct batch_address addresses[COUNT];
	struct profile *p = new_profile(addresses);
	struct batch b = { .p = p, .addresses = addresses, .count = COUNT, .limits = &limits };

	(void)state;
	file_limits_init(&limits, 1000000000);
	limits.total.bytes = 64 << 20;
	assert_int_equal(jit_resolve_from(&b, f.fd), 0);
	assert_name(p, 0, "first");
	assert_false(b.is_unread);
	profile_free(p);
	assert_int_equal(ftruncate(f.fd, 100 << 20), 0);
	assert_int_equal(lseek(f.fd, 0, SEEK_END), 100 << 20);
	add(&f, "\n10100 100 last\n", strlen("\n10100 100 last\n"));
	p = new_profile(addresses);
	b = (struct batch){ .p = p, .addresses = addresses, .count = COUNT, .limits = &limits };
	assert_int_equal(jit_resolve_from(&b, f.fd), 0);
	assert_name(p, 0, NULL);
	assert_name(p, 1, "last");
	assert_false(b.is_unread);
	assert_int_equal(p->warning_count, 1);
	assert_string_equal(p->warnings[0],
			    "[jit 612]: its file of names has 100 MiB, of which the last 15 were "
			    "read: functions that were compiled before have no name");
	profile_free(p);
	limits.total.ns = 0;
	p = new_profile(addresses);
	b = (struct batch){ .p = p, .addresses = addresses, .count = COUNT, .limits = &limits };
	assert_int_equal(jit_resolve_from(&b, f.fd), 0);
	assert_name(p, 0, NULL);
	assert_true(b.is_unread);
	assert_non_null(strstr(b.why.what, "not read: its symbols take more than"));
	profile_free(p);
	file_limits_free(&limits);
	close(f.fd);
}

/*
 * Two functions, one within the other, with alternating addresses: the lines of both are read
 * again.
 */
static void test_dump_lines_again(void **state)
{
	enum {
		LINES = 50000,
		ADDRESSES = 200,
	};
	struct file f = new_dump(1);
	struct profile *p = profile_new();
	struct batch_address addresses[ADDRESSES];
	struct batch b = { .p = p, .addresses = addresses, .count = ADDRESSES };
	uint32_t image;

	(void)state;
	assert_int_equal(profile_add_image(p, "[jit 612]", NULL, 0, &image), 0);
	add_record(&f, 2, 16 + LINES * 18);
	append_u64(&f, MEMORY);
	append_u64(&f, LINES);
	for (uint64_t i = 0; i < LINES; i++)
		add_line(&f, MEMORY, i + 1, "a");
	add_load(&f, MEMORY, ADDRESSES, 0, "outer");
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		addresses[i].address = MEMORY + i;
		assert_int_equal(
			profile_add_location(p, MEMORY + i, PROFILE_NONE, &addresses[i].location),
			0);
		if (i % 2)
			add_load(&f, MEMORY + i, 1, i, "inner");
	}
	assert_int_equal(jit_resolve_from(&b, f.fd), 0);
	assert_int_equal(p->warning_count, 1);
	assert_string_equal(p->warnings[0],
			    "[jit 612]: its file of names has more than 4194304 source lines for "
			    "the samples: some were not read");
	assert_name(p, 0, "outer");
	assert_int_equal(p->lines[p->locations[0].first_line].line, LINES);
	assert_name(p, 1, "inner");
	assert_name(p, ADDRESSES - 2, "outer");
	close(f.fd);
	profile_free(p);
}

/* Truncated at every byte: nothing is read beyond the end. */
static void test_dump_truncated(void **state)
{
	struct file f = new_dump(1);
	off_t size;

	(void)state;
	add_load(&f, 0x10000, 0x100, 0, "first");
	add_record(&f, 2, 16 + 16 + 5);
	append_u64(&f, 0x10100);
	append_u64(&f, UINT64_MAX);
	add_line(&f, 0x10100, 7, "a.js");
	add_load(&f, 0x10100, 0x100, 1, "second");
	add_move(&f, 0x10000, 0x10200, 0x100, 0);
	size = lseek(f.fd, 0, SEEK_END);
	for (; size >= 0; size--) {
		struct file cut = { dup(f.fd) };
		struct profile *p;

		assert_int_equal(ftruncate(f.fd, size), 0);
		p = resolve(&cut);
		if (name_at(p, 2))
			assert_name(p, 2, "first");
		profile_free(p);
	}
	close(f.fd);
}

static void test_dump_corrupt(void **state)
{
	struct file versions = new_dump(2), endless = new_dump(1);
	struct profile *p;

	(void)state;
	add_load(&versions, 0x10000, 0x100, 0, "of another version");
	p = resolve(&versions);
	assert_name(p, 0, NULL);
	profile_free(p);
	add_u32(&endless, 0);
	add_u32(&endless, 0); /* a record of no size */
	append_u64(&endless, 0);
	add_load(&endless, 0x10000, 0x100, 0, "behind it");
	p = resolve(&endless);
	assert_name(p, 0, NULL);
	profile_free(p);
}

/* --- The vDSO --- */

/* why: of 256 bytes, gets the reason for addresses without a name. */
static bool names_vdso(const uint8_t *build_id, size_t size, const char *format, char *why)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR);
	struct profile *p = profile_new();
	uint32_t image, mapping, location;
	bool found = false;
	struct error e;

	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_image(p, "[vdso]", build_id, size, &image), 0);
	assert_int_equal(profile_add_mapping(p, start, start + 0x2000, 0, image, &mapping), 0);
	for (uint64_t pc = start; pc < start + 0x2000; pc += 16)
		assert_int_equal(profile_add_location(p, pc, mapping, &location), 0);
	p->format = format;
	assert_int_equal(symbol_resolve(p, NULL, &e), 0);
	for (uint32_t i = 0; i < p->location_count; i++)
		found |= name_at(p, i) && strstr(name_at(p, i), "clock_gettime");
	if (p->images[image].unnamed)
		snprintf(why, 256, "%s", p->images[image].unnamed);
	profile_free(p);
	return found;
}

/* Our own vDSO serves for a process whose memory could not be read, unless the kernel differs. */
static void test_vdso(void **state)
{
	static const uint8_t other[20] = { 1 };
	char why[256];

	(void)state;
	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	assert_true(names_vdso(NULL, 0, NULL, why));
	assert_false(names_vdso(NULL, 0, "pprof", why));
	assert_string_equal(why, "vdso of another process");
	assert_false(names_vdso(other, sizeof(other), "pprof", why));
	assert_string_equal(why, "vdso of another process");
}

/* --- Kernel modules --- */

static const char *image_at(const struct profile *p, uint32_t location)
{
	return profile_location_image(p, location)->path;
}

static void test_modules(void **state)
{
	static const char text[] = "ffffffff81000000 T core\n"
				   "ffffffff81000100 d data\n"
				   "ffffffffc0000000 t in_module\t[nf_tables]\n"
				   "ffffffffc0001000 t other_in_it\t[nf_tables]\n"
				   "ffffffffc0003000 t program\t[bpf]";
	static const uint64_t places[] = { 0xffffffff81000010, 0xffffffffc0000010,
					   0xffffffffc0001010, 0xffffffffc0003010 };
	struct profile *p = profile_new();
	struct batch_address addresses[4];
	struct batch b = { .p = p, .image = PROFILE_NONE, .addresses = addresses, .count = 4 };
	char path[] = "/tmp/kallsyms.XXXXXX";
	struct file f = { mkstemp(path) };
	uint32_t image, mapping, location;

	(void)state;
	add(&f, text, strlen(text));
	assert_int_equal(profile_add_image(p, "[kernel.kallsyms]", NULL, 0, &image), 0);
	assert_int_equal(
		profile_add_mapping(p, 1ULL << 63, UINT64_MAX, 1ULL << 63, image, &mapping), 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(profile_add_location(p, places[i], mapping, &location), 0);
		addresses[i] = (struct batch_address){ places[i], location, 0 };
	}
	assert_int_equal(kallsyms_resolve_from(&b, path), 0);
	unlink(path);
	close(f.fd);
	assert_name(p, 0, "core");
	assert_string_equal(image_at(p, 0), "[kernel.kallsyms]");
	assert_name(p, 1, "in_module");
	assert_string_equal(image_at(p, 1), "[nf_tables]");
	assert_name(p, 2, "other_in_it");
	assert_int_equal(p->locations[1].mapping, p->locations[2].mapping);
	assert_true(p->mappings[p->locations[1].mapping].start == 0xffffffffc0000000);
	assert_true(p->mappings[p->locations[1].mapping].limit == 0xffffffffc0002000);
	assert_true(p->locations[2].image_address == places[2]);
	assert_name(p, 3, "program");
	assert_string_equal(image_at(p, 3), "[bpf]");
	/* It is still found, by its new address. */
	assert_int_equal(profile_find_location(p, places[3], p->locations[3].mapping), 3);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_map_empty),
		cmocka_unit_test(test_map_long),
		cmocka_unit_test(test_map_overlapping),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_dump_lines),
		cmocka_unit_test(test_dump_lines_again),
		cmocka_unit_test(test_dump_truncated),
		cmocka_unit_test(test_dump_corrupt),
		cmocka_unit_test(test_dump_many_lines),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
