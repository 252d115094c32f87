// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include <dirent.h>
#include <sys/stat.h>

#include "format/gmon/gmon.h"

static const struct format *const gmon = &format_gmon;

/* A file made by hand, in one of the layouts. */
struct layout {
	unsigned int address; /* bytes */
	bool big;
};

static const struct layout layouts[] = { { 8, false }, { 8, true }, { 4, false }, { 4, true } };

#define NATIVE (&layouts[0])

static void put(struct bytes *b, const struct layout *l, unsigned int size, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned int i = 0; i < size; i++)
		bytes[l->big ? size - 1 - i : i] = value >> 8 * i;
	bytes_add(b, bytes, size);
}

static void put_header(struct bytes *b, const struct layout *l, uint32_t version)
{
	bytes_add(b, "gmon", 4);
	put(b, l, 4, version);
	bytes_add(b, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
}

struct histogram {
	uint64_t low, high;
	uint32_t bins, rate;
	const char *dimension; /* 16 bytes */
};

#define SECONDS "seconds\0\0\0\0\0\0\0\0s"
#define SAMPLES "samples\0\0\0\0\0\0\0\0001"

/* The bin with this number has `count`, all others are 0. */
static void put_histogram(struct bytes *b, const struct layout *l, const struct histogram *h,
			  uint32_t bin, uint16_t count)
{
	bytes_add(b, "\0", 1);
	put(b, l, l->address, h->low);
	put(b, l, l->address, h->high);
	put(b, l, 4, h->bins);
	put(b, l, 4, h->rate);
	bytes_add(b, h->dimension, 16);
	for (uint32_t i = 0; i < h->bins; i++)
		put(b, l, 2, i == bin ? count : 0);
}

static void put_arc(struct bytes *b, const struct layout *l, uint64_t from, uint64_t to,
		    uint32_t count)
{
	bytes_add(b, "\1", 1);
	put(b, l, l->address, from);
	put(b, l, l->address, to);
	put(b, l, 4, count);
}

/* The samples at this address, which must have one stack. */
static int64_t samples_at(const struct profile *p, uint64_t address)
{
	int64_t count = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		assert_int_equal(p->samples[i].depth, 1);
		if (p->locations[p->frames[p->samples[i].first_frame]].address != address)
			continue;
		assert_int_equal(count, 0);
		count = p->values[i * p->value_type_count];
	}
	return count;
}

static uint64_t calls(const struct profile *p, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < p->arc_count; i++)
		if (p->locations[p->arcs[i].from].address == from &&
		    p->locations[p->arcs[i].to].address == to) {
			assert_int_equal(p->arcs[i].kind, PROFILE_CALL);
			return p->arcs[i].count;
		}
	return 0;
}

static void put_all(struct bytes *b, const struct layout *l, uint64_t low)
{
	struct histogram h = { low, low + 0x100, 64, 100, SECONDS };

	put_header(b, l, 1);
	put_histogram(b, l, &h, 3, 500);
	put_arc(b, l, low + 0x10, low + 0x80, 7);
	put_histogram(b, l, &h, 3, 65535);
	put_arc(b, l, low + 0x10, low + 0x80, 5);
	put_arc(b, l, low + 0x20, low + 0x200, 1);
}

static void read_layouts(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++) {
		const struct layout *l = &layouts[i / 2];
		uint64_t low = i % 2 ? 0x401000 : 0; /* of position-independent programs */
		struct bytes b = { 0 };
		struct profile *p;

		put_all(&b, l, low);
		p = read_good(gmon, &b);
		assert_int_equal(p->bits, l->address * 8);
		assert_int_equal(p->big_endian, l->big);
		assert_int_equal(profile_tick_ns(p), 10000000);
		assert_int_equal(p->bucket, 4);
		assert_int_equal(p->value_type_count, 2);
		assert_string_equal(p->value_types[1].type, "cpu");
		assert_int_equal(p->sample_count, 1);
		assert_int_equal(samples_at(p, low + 12), 66035);
		assert_int_equal(p->values[1], 660350000000);
		assert_int_equal(p->arc_count, 2);
		assert_int_equal(calls(p, low + 0x10, low + 0x80), 12);
		assert_int_equal(calls(p, low + 0x20, low + 0x200), 1);
		assert_int_equal(p->mapping_count, 1);
		assert_true(p->mappings[0].linked);
		assert_int_equal(p->mappings[0].start, low);
		assert_int_equal(p->mappings[0].limit, low + 0x201);
		assert_string_equal(p->images[0].path, "");
		assert_int_equal(p->locations[0].image_address, p->locations[0].address);
		assert_int_equal(p->warning_count, 0);
		profile_free(p);
		bytes_free(&b);
	}
}

/* gprof accepts version 0, which has no byte order; a file may also have no bins at all. */
static void read_version_0(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct bytes b = { 0 };
		struct profile *p;

		put_header(&b, &layouts[i], 0);
		put_histogram(&b, &layouts[i],
			      &(struct histogram){ 0x1000, 0x1000, 0, 100, SECONDS }, 0, 0);
		put_histogram(&b, &layouts[i],
			      &(struct histogram){ 0x1000, 0x1040, 32, 250, SECONDS }, 31, 9);
		p = read_good(gmon, &b);
		assert_int_equal(p->bits, layouts[i].address * 8);
		assert_int_equal(p->big_endian, layouts[i].big);
		assert_int_equal(profile_tick_ns(p), 4000000);
		assert_int_equal(samples_at(p, 0x103e), 9);
		profile_free(p);
		bytes_free(&b);
	}
}

/* 7 bins over 23 bytes begin at 0, 3.28, 6.57, 9.86, 13.14, 16.43 and 19.71. */
static void bins_of_fractions(void **state)
{
	static const uint64_t first[] = { 0, 4, 7, 10, 14, 17, 20 };
	const uint64_t top = UINT64_MAX - 1000;

	(void)state;
	for (uint32_t bin = 0; bin < 7; bin++) {
		struct histogram h = { 0x1000, 0x1017, 7, 100, SECONDS };
		struct histogram high = { top, top + 23, 7, 100, SECONDS };
		struct bytes b = { 0 };
		struct profile *p;

		put_header(&b, NATIVE, 1);
		put_histogram(&b, NATIVE, &h, bin, 1);
		put_histogram(&b, NATIVE, &high, bin, 2);
		p = read_good(gmon, &b);
		assert_int_equal(p->bucket, 3);
		assert_int_equal(samples_at(p, 0x1000 + first[bin]), 1);
		assert_int_equal(samples_at(p, top + first[bin]), 2);
		profile_free(p);
		bytes_free(&b);
	}
}

static void exact_bins_have_no_bucket(void **state)
{
	struct histogram h = { 0x1000, 0x1010, 16, 1, SAMPLES };
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	put_header(&b, NATIVE, 1);
	put_histogram(&b, NATIVE, &h, 15, 3);
	p = read_good(gmon, &b);
	assert_int_equal(p->bucket, 1);
	assert_int_equal(samples_at(p, 0x100f), 3);
	assert_int_equal(profile_tick_ns(p), 0);
	assert_int_equal(p->value_type_count, 1);
	assert_int_equal(p->warning_count, 0);
	profile_free(p);
	bytes_free(&b);
}

/* glibc writes how many blocks there are as a long, gprof as an int. */
static void basic_blocks_are_skipped(void **state)
{
	struct histogram h = { 0x1000, 0x1010, 4, 100, SECONDS };

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		const struct layout *l = &layouts[i / 2];
		struct bytes b = { 0 };
		struct profile *p;

		put_header(&b, l, 1);
		bytes_add(&b, "\2", 1);
		put(&b, l, i % 2 ? l->address : 4, 3);
		for (int j = 0; j < 6; j++)
			put(&b, l, l->address, j + 1);
		put_histogram(&b, l, &h, 1, 5);
		p = read_good(gmon, &b);
		assert_int_equal(profile_total(p, NULL), 5);
		assert_warned(p, "3 counts of basic blocks");
		profile_free(p);
		bytes_free(&b);
	}
}

static void accept_with_warning(void **state)
{
	struct histogram h = { 0x1000, 0x1010, 4, 0, SECONDS };
	struct bytes b = { 0 };
	struct profile *p;

	(void)state;
	put_header(&b, NATIVE, 1);
	p = read_good(gmon, &b);
	assert_warned(p, "no histogram");
	assert_int_equal(p->sample_count, 0);
	profile_free(p);

	put_histogram(&b, NATIVE, &h, 1, 5);
	p = read_good(gmon, &b);
	assert_warned(p, "rate is 0");
	assert_int_equal(profile_tick_ns(p), 0);
	profile_free(p);

	h.rate = 100;
	put_histogram(&b, NATIVE, &h, 1, 5);
	p = read_good(gmon, &b);
	assert_warned(p, "1 histogram(s) have another rate");
	assert_int_equal(profile_total(p, NULL), 10);
	profile_free(p);
	bytes_free(&b);
}

#define BSD_VERSION 0x51879

static void put_bsd(struct bytes *b, const struct layout *l, int32_t type, unsigned int bin_size)
{
	put(b, l, l->address, 0x2000);
	put(b, l, l->address, 0x2100);
	put(b, l, 4, 2 * l->address + 24 + 64 * bin_size);
	put(b, l, 4, BSD_VERSION);
	put(b, l, 4, 128);
	put(b, l, 4, (uint32_t)type);
	put(b, l, 8, 0);
	for (int i = 0; i < 64; i++)
		put(b, l, bin_size, i == 5 ? 77 : 0);
	for (uint64_t i = 1; i <= 2; i++) {
		put(b, l, l->address, 0x2010 * i);
		put(b, l, l->address, 0x2020);
		put(b, l, l->address, 1000 * i);
	}
}

static void read_bsd(void **state)
{
	static const struct {
		int32_t type;
		unsigned int bin_size;
	} types[] = { { 0, 2 }, { 16, 2 }, { -64, 8 }, { 64, 8 }, { 32, 4 }, { 8, 1 } };

	(void)state;
	for (size_t i = 0; i < 4 * 6; i++) {
		const struct layout *l = &layouts[i / 6];
		struct bytes b = { 0 };
		struct profile *p;

		put_bsd(&b, l, types[i % 6].type, types[i % 6].bin_size);
		p = read_good(gmon, &b);
		assert_int_equal(p->bits, l->address * 8);
		assert_int_equal(p->big_endian, l->big);
		assert_int_equal(profile_tick_ns(p), 7812500);
		assert_int_equal(p->sample_count, 1);
		assert_int_equal(samples_at(p, 0x2014), 77);
		assert_int_equal(calls(p, 0x2010, 0x2020), 1000);
		assert_int_equal(calls(p, 0x4020, 0x2020), 2000);
		assert_int_equal(p->mappings[0].start, 0x2000);
		assert_int_equal(p->mappings[0].limit, 0x4021);
		assert_int_equal(p->warning_count, 0);
		b.size--;
		read_bad(gmon, &b, "ends within an arc");
		profile_free(p);
		bytes_free(&b);
	}
}

/* A file of 64 bits with so many seconds of ticks and three arcs, whose counts are expected so. */
static void check_counts(const struct layout *l, uint32_t seconds, const uint64_t counts[3],
			 const uint64_t expected[3])
{
	bool padded = memcmp(counts, expected, 3 * sizeof(*counts)) != 0;
	struct bytes b = { 0 };
	struct profile *p;

	put(&b, l, 8, 0x2000);
	put(&b, l, 8, 0x2100);
	put(&b, l, 4, 40 + 4);
	put(&b, l, 4, BSD_VERSION);
	put(&b, l, 4, 128);
	put(&b, l, 4, 32);
	put(&b, l, 8, 0);
	put(&b, l, 4, 128 * seconds);
	for (uint64_t i = 0; i < 3 && counts[i]; i++) {
		put(&b, l, 8, 0x2010);
		put(&b, l, 8, 0x2020 + i);
		put(&b, l, 8, counts[i]);
	}
	p = read_good(gmon, &b);
	for (uint64_t i = 0; i < 3 && counts[i]; i++)
		assert_int_equal(calls(p, 0x2010, 0x2020 + i), expected[i]);
	if (padded)
		assert_warned(p, "as in files of MinGW-w64");
	else
		assert_int_equal(p->warning_count, 0);
	profile_free(p);
	bytes_free(&b);
}

/* MinGW-w64 has counts of 4 bytes, and padding; BSD's counts have 8, and may need them. */
static void read_padded_counts(void **state)
{
	static const uint64_t two_to_33 = 1ULL << 33;
	static const struct {
		uint32_t seconds;
		uint64_t counts[3], expected[3];
	} cases[] = {
		/* MinGW-w64 */
		{ 0, { 0x282c00000003, 0x282c00000007, 0x100000001 }, { 3, 7, 1 } },
		{ 1, { 0x100000003, 0x100000007, 0x100000001 }, { 3, 7, 1 } },
		{ 3600, { 0x100000003, 0x1ffff0007, 0x100000001 }, { 3, 0xffff0007, 1 } },
		{ 10, { 3, 0x7ff600000007, 1 }, { 3, 7, 1 } },
		{ 10, { 0x7ff600000007, 0 }, { 7, 0 } },
		{ 0, { 0x100000001, 0 }, { 1, 0 } },
		/* BSD */
		{ 0, { 3, 7, 1 }, { 3, 7, 1 } },
		{ 0, { UINT32_MAX, UINT32_MAX, 1 }, { UINT32_MAX, UINT32_MAX, 1 } },
		{ 60, { 1, 10000000000, 1 }, { 1, 10000000000, 1 } },
		{ 60, { 1, two_to_33 + 1, 1 }, { 1, two_to_33 + 1, 1 } },
		{ 60, { two_to_33 + 1, 0 }, { two_to_33 + 1, 0 } },
		{ 60, { two_to_33, two_to_33, two_to_33 }, { two_to_33, two_to_33, two_to_33 } },
		/* its bins have overflowed */
		{ 1, { 1, 99999999999, 5 }, { 1, 99999999999, 5 } },
		{ 1, { 1, two_to_33, 5 }, { 1, two_to_33, 5 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_counts(NATIVE, cases[i].seconds, cases[i].counts, cases[i].expected);
	/* Windows is little-endian */
	check_counts(&layouts[1], 0, cases[0].counts, cases[0].counts);
}

/* A file with one histogram: the fields of its header, and the bins that follow. */
static void check_histogram(const struct histogram *h, size_t there, const char *error)
{
	struct bytes b = { 0 };

	put_header(&b, NATIVE, 1);
	put_histogram(&b, NATIVE, &(struct histogram){ 0x1000, 0x1010, 4, 100, SECONDS }, 1, 5);
	bytes_add(&b, "\0", 1);
	put(&b, NATIVE, 8, h->low);
	put(&b, NATIVE, 8, h->high);
	put(&b, NATIVE, 4, h->bins);
	put(&b, NATIVE, 4, 100);
	bytes_add(&b, SECONDS, 16);
	for (size_t i = 0; i < there; i++)
		put(&b, NATIVE, 2, 1);
	read_bad(gmon, &b, error);
	bytes_free(&b);
}

static void reject_histograms(void **state)
{
	(void)state;
	check_histogram(&(struct histogram){ .low = 0x2000, .high = 0x1fff, .bins = 1 }, 1,
			"at byte 69: the histogram ends before");
	check_histogram(&(struct histogram){ .low = 0x2000, .high = 0x2004, .bins = 5 }, 5,
			"at byte 69: the histogram has more bins");
	check_histogram(&(struct histogram){ .low = 0x2000, .high = 0x2010, .bins = 8 }, 7,
			"at byte 69: the histogram is longer");
	check_histogram(&(struct histogram){ .low = 0, .high = UINT64_MAX, .bins = UINT32_MAX }, 7,
			"at byte 69: the histogram is longer");
	check_histogram(&(struct histogram){ .low = 0, .high = UINT64_MAX, .bins = 1U << 31 }, 7,
			"at byte 69: the histogram is longer");
}

static void reject(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	put_header(&b, NATIVE, 2);
	read_bad(gmon, &b, "at byte 4: version 2 of");
	b.size = 0;
	put_header(&b, &layouts[1], 0x1ffff);
	read_bad(gmon, &b, "at byte 4: version 131071 of");
	b.size = 19;
	read_bad(gmon, &b, "at byte 19: the file ends in its header");
	b.size = 7;
	read_bad(gmon, &b, "not of this format");
	b.size = 0;
	put_header(&b, NATIVE, 1);
	bytes_add(&b, "\3", 1);
	read_bad(gmon, &b, "at byte 20: unknown kind of record");
	b.size--;
	bytes_add(&b, "\2\xff\xff\xff\x7f", 5);
	read_bad(gmon, &b, "at byte 20: the basic-block counts");
	b.size = 0;
	bytes_add_text(&b, "gmon_start;main 5\n");
	read_bad(gmon, &b, "not of this format");
	bytes_free(&b);
}

/* With --salvage the existing bins are read. */
static void salvage_a_truncated_histogram(void **state)
{
	struct histogram h = { 0x1000, 0x1010, 8, 100, SECONDS };
	struct bytes b = { 0 };
	struct profile *p = profile_new();
	struct input in = { .path = "input" };
	struct error e = { 0 };

	(void)state;
	put_header(&b, NATIVE, 1);
	put_histogram(&b, NATIVE, &h, 2, 5);
	in.bytes = b.start;
	in.size = b.size - 9;
	assert_true(gmon->read(&in, p, &e) < 0);
	assert_int_equal(samples_at(p, 0x1004), 5);
	profile_free(p);
	bytes_free(&b);
}

static void survive_corruption(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct bytes b = { 0 };

		put_all(&b, &layouts[i], 0x1000);
		b.size -= 50; /* smaller, for the loops */
		survive_truncation(gmon, &b);
		survive_bit_flips(gmon, &b);
		bytes_free(&b);
		put_bsd(&b, &layouts[i], 0, 2);
		survive_truncation(gmon, &b);
		survive_bit_flips(gmon, &b);
		bytes_free(&b);
	}
}

/* --- Writing --- */

static char *make_directory(void)
{
	const char *parent = getenv("TMPDIR");
	char *path = NULL;

	assert_true(asprintf(&path, "%s/gmon-XXXXXX", parent ? parent : "/tmp") > 0);
	assert_non_null(mkdtemp(path));
	return path;
}

/* Removes the directory with all files in it, and frees the path. */
static void remove_directory(char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		if (entry->d_type == DT_REG)
			assert_int_equal(unlinkat(dirfd(directory), entry->d_name, 0), 0);
	closedir(directory);
	assert_int_equal(rmdir(path), 0);
	free(path);
}

static int count_files(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += entry->d_type == DT_REG;
	closedir(directory);
	return count;
}

static char *write_directory(const struct profile *p)
{
	char *path = make_directory();
	struct error e = { 0 };

	if (gmon->write_directory(p, &(struct format_options){ 0 }, path, &e))
		fail_msg("%s", e.what);
	return path;
}

static void fail_to_write(const struct profile *p, const char *words)
{
	char *path = make_directory();
	struct error e = { 0 };

	assert_true(gmon->write_directory(p, &(struct format_options){ 0 }, path, &e) < 0);
	if (!strstr(e.what, words))
		fail_msg("\"%s\" does not say \"%s\"", e.what, words);
	assert_int_equal(count_files(path), 0);
	remove_directory(path);
}

static struct bytes file_bytes(const char *directory, const char *name)
{
	struct bytes b = { 0 };
	char *path = NULL, buffer[4096];
	size_t size;
	FILE *in;

	assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
	in = fopen(path, "r");
	if (!in)
		fail_msg("there is no %s", path);
	while ((size = fread(buffer, 1, sizeof(buffer), in)))
		bytes_add(&b, buffer, size);
	fclose(in);
	free(path);
	return b;
}

static struct profile *read_back(const char *directory, const char *name)
{
	struct bytes b = file_bytes(directory, name);
	struct profile *p = read_good(gmon, &b);

	bytes_free(&b);
	return p;
}

/* As after the symbol layer: the file's own addresses are known. */
static uint32_t add_text(struct profile *p, uint64_t start, const char *path)
{
	uint32_t mapping = add_mapping(p, start, start + 0x100000, 0x1000, path);
	struct profile_image *image = &p->images[p->mappings[mapping].image];

	image->text_start = 0x1000;
	image->text_size = 0x100000;
	return mapping;
}

static void add_leaf(struct profile *p, uint64_t address, uint32_t mapping, int64_t count)
{
	uint32_t frames[2] = { add_location(p, address, mapping),
			       add_location(p, 1, PROFILE_NONE) };

	add_sample(p, frames, 2, add_labels(p, 0, 0, "", false), count);
}

static void add_call(struct profile *p, uint32_t mapping, uint64_t from, uint64_t to,
		     uint64_t count)
{
	struct profile_arc arc = {
		.from = add_location(p, from, mapping),
		.to = add_location(p, to, mapping),
		.labels = add_labels(p, 0, 0, "", false),
		.kind = PROFILE_CALL,
		.count = count,
	};

	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
}

static void write_widths_and_orders(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct profile *p = empty_profile(1001001), *back;
		uint32_t mapping = add_text(p, 0x5000, "/bin/prog");
		char *directory;

		p->bits = layouts[i].address * 8;
		p->big_endian = layouts[i].big;
		add_leaf(p, 0x5010, mapping, 65535);
		add_leaf(p, 0x5011, mapping, 1);
		add_leaf(p, 0x5012, mapping, 10 * 65535 + 3);
		add_leaf(p, 0x9fff, mapping, 4);
		add_call(p, mapping, 0x5020, 0x5030, 3 * (uint64_t)UINT32_MAX + 5);
		directory = write_directory(p);
		back = read_back(directory, "prog.gmon");
		assert_int_equal(count_files(directory), 1);
		assert_int_equal(back->bits, p->bits);
		assert_int_equal(back->big_endian, p->big_endian);
		assert_int_equal(profile_tick_ns(back), 1001001);
		assert_int_equal(back->bucket, 2);
		assert_int_equal(back->sample_count, 3);
		assert_int_equal(samples_at(back, 0x1010), 65536);
		assert_int_equal(samples_at(back, 0x1012), 655353);
		assert_int_equal(samples_at(back, 0x5ffe), 4);
		assert_int_equal(back->arc_count, 1);
		assert_int_equal(calls(back, 0x1020, 0x1030), 3 * (uint64_t)UINT32_MAX + 5);
		assert_int_equal(back->warning_count, 0);
		profile_free(back);
		profile_free(p);
		remove_directory(directory);
	}
}

/* gprof rejects records that overlap without being of the same range, in one file or in several. */
static void ranges_are_the_same_in_all_files(void **state)
{
	uint64_t address = 0x5010, start;

	(void)state;
	for (int i = 0; i < 2; i++, address += 0x20) {
		struct profile *p = empty_profile(10000000);
		char *directory;
		struct bytes b;

		add_leaf(p, address, add_text(p, 0x5000, "/bin/prog"), 70000);
		directory = write_directory(p);
		b = file_bytes(directory, "prog.gmon");
		assert_int_equal(b.size, 20 + 2 * (41 + 512));
		memcpy(&start, b.start + 21, sizeof(start));
		assert_int_equal(start, 0x1000);
		assert_memory_equal(b.start + 20, b.start + 20 + 41 + 512, 41);
		assert_memory_equal(b.start + 37, "\0\1\0\0\x64\0\0\0seconds\0\0\0\0\0\0\0\0s", 24);
		bytes_free(&b);
		profile_free(p);
		remove_directory(directory);
	}
}

static void rates(void **state)
{
	static const struct {
		uint64_t tick_ns, back;
	} rates[] = {
		{ 10000000, 10000000 },	    { 10101010, 10101010 }, /* 99 Hz */
		{ 166666, 166667 },				    /* 6000 Hz, rounded */
		{ 1000000000, 1000000000 }, { 750000000, 0 },	    { 2000000000, 0 }, { 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct profile *p = empty_profile(rates[i].tick_ns), *back;
		char *directory;

		add_leaf(p, 0x5010, add_text(p, 0x5000, "/bin/prog"), 70000);
		directory = write_directory(p);
		back = read_back(directory, "prog.gmon");
		assert_int_equal(profile_tick_ns(back), rates[i].back);
		assert_int_equal(samples_at(back, 0x1010), 70000);
		profile_free(back);
		profile_free(p);
		remove_directory(directory);
	}
}

static void assert_total(const char *directory, const char *name, uint64_t total)
{
	struct profile *p = read_back(directory, name);

	assert_int_equal(profile_total(p, NULL), total);
	profile_free(p);
}

static void names_of_files(void **state)
{
	struct profile *p = empty_profile(10000000);
	char name[300], *directory;
	uint32_t unknown;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	add_leaf(p, 0x100010, add_text(p, 0x100000, "/a/prog"), 1);
	add_leaf(p, 0x200010, add_text(p, 0x200000, "/b/prog"), 2);
	add_leaf(p, 0x300010, add_text(p, 0x300000, "/c/prog.2"), 3);
	add_leaf(p, 0x400010, add_text(p, 0x400000, "/d/..\n\x1b[1m"), 4);
	add_leaf(p, 0x500010, add_text(p, 0x500000, name), 5);
	unknown = add_mapping(p, 0x600000, 0x700000, 0, "");
	p->mappings[unknown].linked = true;
	add_leaf(p, 0x600010, unknown, 6);
	add_text(p, 0x800000, "/bin/idle");
	directory = write_directory(p);
	assert_int_equal(count_files(directory), 6);
	assert_total(directory, "prog.gmon", 1);
	assert_total(directory, "prog.2.gmon", 2);
	assert_total(directory, "prog.2.3.gmon", 3);
	assert_total(directory, "_.__[1m.gmon", 4);
	name[200] = '\0';
	strcat(name, ".gmon");
	assert_total(directory, name, 5);
	assert_total(directory, "unknown.gmon", 6);
	profile_free(p);
	remove_directory(directory);
}

/* Two mappings of one image, as of two processes, are one file; labels do not matter. */
static void mappings_of_one_image(void **state)
{
	struct profile *p = empty_profile(10000000);
	uint32_t one = add_text(p, 0x100000, "/bin/prog"), two = add_text(p, 0x700000, "/bin/prog");
	uint32_t frame = add_location(p, 0x700010, two);
	char *directory;

	(void)state;
	add_leaf(p, 0x100010, one, 1);
	add_sample(p, &frame, 1, add_labels(p, 5, 6, "x", true), 10);
	add_sample(p, &frame, 1, add_labels(p, 7, 8, "y", true), 100);
	directory = write_directory(p);
	assert_int_equal(count_files(directory), 1);
	assert_total(directory, "prog.gmon", 111);
	profile_free(p);
	remove_directory(directory);
}

/* Adds samples of the kernel, of memory without a file, and without an address. */
static void add_unwritable(struct profile *p)
{
	uint32_t labels = add_labels(p, 0, 0, "", false), location;
	struct profile_line line = { .function = add_function(p, "f", "", 0) };

	add_leaf(p, 0x200010, add_text(p, 0x200000, "[vdso]"), 1);
	add_leaf(p, UINT64_MAX - 5, add_mapping(p, 1ULL << 63, UINT64_MAX, 1ULL << 63, "[kernel"),
		 1);
	add_leaf(p, 0x300010, add_mapping(p, 0x300000, 0x400000, 0, ""), 1);
	add_leaf(p, 0x500010, add_mapping(p, 0x500000, 0x600000, 0, "/not/on/this/machine"), 1);
	add_leaf(p, 0x700010, PROFILE_NONE, 1);
	add_sample(p, NULL, 0, labels, 1);
	assert_int_equal(profile_add_line_location(p, 0, add_text(p, 0x800000, "/bin/lines"), &line,
						   1, &location),
			 0);
	add_sample(p, &location, 1, labels, 1);
}

static void samples_without_a_file_are_dropped(void **state)
{
	struct profile *p = empty_profile(10000000);
	uint32_t mapping;
	char *directory;

	(void)state;
	fail_to_write(p, "the profile has no samples");
	add_unwritable(p);
	fail_to_write(p, "no sample is in a program or library");
	mapping = add_text(p, 0x100000, "/bin/prog");
	add_leaf(p, 0x100010, mapping, -3);
	fail_to_write(p, "no sample is in a program or library");
	add_leaf(p, 0x100020, mapping, 5);
	directory = write_directory(p);
	assert_int_equal(count_files(directory), 1);
	assert_total(directory, "prog.gmon", 5);
	profile_free(p);
	remove_directory(directory);
}

static void calls_alone_and_between_images(void **state)
{
	struct profile *p = empty_profile(10000000), *back;
	uint32_t one = add_text(p, 0x100000, "/bin/one"), two = add_text(p, 0x700000, "/bin/two");
	struct profile_arc arc = {
		.from = add_location(p, 0x100010, one),
		.to = add_location(p, 0x700010, two),
		.kind = PROFILE_CALL,
		.count = 5,
	};
	char *directory;

	(void)state;
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	arc.to = add_location(p, 0x100020, one);
	arc.kind = PROFILE_JUMP;
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	fail_to_write(p, "no sample");
	add_call(p, one, 0x100010, 0x100020, 9);
	directory = write_directory(p);
	assert_int_equal(count_files(directory), 1);
	back = read_back(directory, "one.gmon");
	assert_int_equal(back->sample_count, 0);
	assert_int_equal(back->arc_count, 1);
	assert_int_equal(calls(back, 0x1010, 0x1020), 9);
	assert_int_equal(back->warning_count, 0);
	profile_free(back);
	profile_free(p);
	remove_directory(directory);
}

static void too_large(void **state)
{
	struct profile *p = empty_profile(10000000);
	uint32_t mapping = add_text(p, 0x100000, "/bin/prog");
	char *directory;

	(void)state;
	add_leaf(p, 0x100010, mapping, INT32_MAX);
	directory = write_directory(p);
	assert_total(directory, "prog.gmon", INT32_MAX);
	remove_directory(directory);
	add_leaf(p, 0x100011, mapping, 1);
	fail_to_write(p, "more than 2147483647 samples at one address");
	profile_free(p);

	p = empty_profile(10000000);
	add_call(p, add_text(p, 0x100000, "/bin/prog"), 0x100010, 0x100020, UINT64_MAX);
	fail_to_write(p, "more than 2^48 calls at one address");
	profile_free(p);
}

/* gprof reads addresses of the width of the ELF file, also of a 32-bit library. */
static void images_of_both_widths(void **state)
{
	struct profile *p = empty_profile(10000000), *back;
	char *directory;

	(void)state;
	p->bits = 64;
	add_leaf(p, 0x100010, add_text(p, 0x100000, "/bin/wide"), 1);
	add_leaf(p, 0x200010, add_text(p, 0x200000, "/bin/narrow"), 1);
	p->images[1].bits = 32;
	directory = write_directory(p);
	back = read_back(directory, "wide.gmon");
	assert_int_equal(back->bits, 64);
	profile_free(back);
	back = read_back(directory, "narrow.gmon");
	assert_int_equal(back->bits, 32);
	profile_free(back);
	profile_free(p);
	remove_directory(directory);
}

/* In a 32-bit program, higher addresses are not of its file. */
static void addresses_beyond_32_bits(void **state)
{
	struct profile *p = empty_profile(10000000);
	uint32_t mapping = add_mapping(p, 0x1000, 1ULL << 40, 0, "/bin/prog");
	char *directory;

	(void)state;
	p->mappings[mapping].linked = true;
	p->bits = 32;
	add_leaf(p, 0x100002000, mapping, 1);
	add_leaf(p, UINT32_MAX, mapping, 1);
	fail_to_write(p, "no sample is in a program or library");
	add_leaf(p, 0xfff00000, mapping, 1);
	directory = write_directory(p);
	assert_total(directory, "prog.gmon", 1);
	remove_directory(directory);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_layouts),
		cmocka_unit_test(read_version_0),
		cmocka_unit_test(bins_of_fractions),
		cmocka_unit_test(exact_bins_have_no_bucket),
		cmocka_unit_test(basic_blocks_are_skipped),
		cmocka_unit_test(accept_with_warning),
		cmocka_unit_test(read_bsd),
		cmocka_unit_test(read_padded_counts),
		cmocka_unit_test(reject_histograms),
		cmocka_unit_test(reject),
		cmocka_unit_test(salvage_a_truncated_histogram),
		cmocka_unit_test(survive_corruption),
		cmocka_unit_test(write_widths_and_orders),
		cmocka_unit_test(ranges_are_the_same_in_all_files),
		cmocka_unit_test(rates),
		cmocka_unit_test(names_of_files),
		cmocka_unit_test(mappings_of_one_image),
		cmocka_unit_test(samples_without_a_file_are_dropped),
		cmocka_unit_test(calls_alone_and_between_images),
		cmocka_unit_test(images_of_both_widths),
		cmocka_unit_test(too_large),
		cmocka_unit_test(addresses_beyond_32_bits),
	};

	return cmocka_run_group_tests_name("gmon_file", tests, NULL, NULL);
}
