// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "dcpi_fixture.h"

static void rewrite_bytes(void **state)
{
	static const char *const headers[] = {
		REQUIRED,
		REQUIRED PATH,
		"version \tpdb-0.06\n" IMAGE
		"epoch 20250118101507\n" PLATFORM EVENT PERIOD TSTART TSIZE
		"cpuspeed   333\ncpuamask   3\ncpuimplv   8\ncpucount   4\n" PATH
		"label  a\nz  unknown \t \nsamples xyz\na-first 1\npath       /other\n",
		VERSION "image      19970328081403c0c18b\n" EPOCH PLATFORM
			"event      cycles\nperiod     65536\ntstart     0401000\n"
			"tsize      8388608\n" CPUSPEED "path       /vmunix\ncpucount x\n",
		VERSION "image      19970328081403c0c18b\n" REST,
		VERSION
		"image      19970328081403C0C18B\nepoch      6912312359\nplatform  \twalnut\n"
		"event cpu-clock\nperiod 010101010\n" TSTART TSIZE CPUSPEED,
		REQUIRED PATH
		"label      L\nx-unit     bytes\nx-bucket   16\n"
		"x-command  demo -x\nx-start    1737195301.25\nx-duration 2.5\n"
		"x-ticks    7\nx-out-of-range 4\nx-excluded 5\nx-lost     1 ring full\n"
		"x-lost     3\nx-kernel   2\nx-cpu      1\n",
		VERSION IMAGE EPOCH PLATFORM EVENT PERIOD TSTART TSIZE CPUSPEED PATH
		"x-addresses file\n",
		VERSION "image      0\n" EPOCH PLATFORM EVENT PERIOD
			"tstart     0\ntsize      1\n" CPUSPEED
			"path       unknown@walnut\nodd line\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		struct bytes b = headed(headers[i]), again;
		struct profile *p;

		WORDS(&b, 0, 1, 7, 1, 7);
		p = read_good(dcpi, &b);
		/* The only file's own line of ticks has all of them. */
		if (p->totals.known)
			p->totals.ticks = 7;
		again = write_one(p);
		if (again.size != b.size || memcmp(again.start, b.start, b.size) != 0)
			fail_msg("%.*s", (int)again.size, (char *)again.start);
		profile_free(p);
		bytes_free(&again);
		bytes_free(&b);
	}
}

/* As the symbol layer does. */
static void add_text(struct profile *p, uint32_t mapping, uint64_t start, uint64_t size)
{
	struct profile_image *image = &p->images[p->mappings[mapping].image];

	image->text_start = start;
	image->text_size = size;
}

static struct profile *recorded(void)
{
	struct profile *p = empty_profile(1000000);

	assert_int_equal(profile_string(p, "task-clock", &p->event), 0);
	assert_int_equal(profile_string(p, "walnut", &p->host), 0);
	p->time_ns = ORIGIN_S * UINT64_C(1000000000) + 1500000000;
	return p;
}

static void add_leaf(struct profile *p, uint64_t address, uint32_t mapping, int64_t count)
{
	uint32_t location = add_location(p, address, mapping);

	add_sample(p, &location, 1, add_labels(p, 1, 1, "x", false), count);
}

static void write_chunks(void **state)
{
	static const uint8_t body[] = {
		0x10, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0,	 0, 0x13, 0,
		0,    0, 1, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 20, 0, 0,	  0
	};
	struct profile *p = recorded();
	struct bytes b;

	(void)state;
	add_text(p, add_mapping(p, 0x7000, 0x8000, 0x1000, "/lib/l.so (deleted)"), 0x1000, 0x800);
	add_leaf(p, 0x7013, 0, 9);
	add_leaf(p, 0x7011, 0, 6);
	add_leaf(p, 0x7010, 0, 5);
	add_leaf(p, 0x7500, 0, 0);
	b = write_one(p);
	assert_has(&b, "event      task-clock\nperiod     1000000\ntstart     1000\n"
		       "tsize      2048\ncpuspeed   0\npath       /lib/l.so\nx-start    "
		       "1737195301.5\n");
	assert_int_equal(b.size % 4, 0);
	assert_memory_equal(b.start + b.size - sizeof(body), body, sizeof(body));
	assert_non_null(strstr(last_file, "/2501181015/walnut/l.so.00000000000000"));
	profile_free(p);
	bytes_free(&b);
}

/* A program that runs in two containers has two paths there. */
static void sum_equal_images(void **state)
{
	static const char *const paths[] = { "/a/lib/l.so", "/b/lib/l.so", "/b/lib/other.so" };
	struct profile *p = recorded(), *again;
	struct bytes b;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t start = 0x7000 * (i + 1);

		add_leaf(p, start + 0x13, add_mapping(p, start, start + 0x1000, 0x1000, paths[i]),
			 i < 2 ? 4 + i : 0);
		memset(p->images[i].build_id, 0x5a, 20);
		p->images[i].build_id_size = 20;
	}
	b = write_one(p);
	assert_has(&b, "path       /a/lib/l.so\n");
	again = read_good(dcpi, &b);
	assert_int_equal(again->sample_count, 1);
	assert_int_equal(profile_total(again, NULL), 9);
	profile_free(again);
	profile_free(p);
	bytes_free(&b);
}

static void write_what_is_not_resolved(void **state)
{
	struct profile *p = recorded(), *again;
	struct bytes b;

	(void)state;
	add_leaf(p, 0x7010, add_mapping(p, 0x7000, 0x8000, 0x21000, "/gone/x"), 5);
	b = write_one(p);
	assert_has(&b, "tstart     21000\ntsize      4096\n");
	assert_has(&b, "x-addresses file\n");
	again = read_good(dcpi, &b);
	assert_false(again->mappings[0].linked);
	assert_int_equal(again->mappings[0].offset, 0x21000);
	assert_int_equal(again->locations[0].image_address, 0x21010);
	assert_int_equal(again->images[0].text_size, 0);
	profile_free(again);
	profile_free(p);
	bytes_free(&b);
}

static void write_outside_of_the_text(void **state)
{
	struct profile *p = recorded();
	struct bytes b;

	(void)state;
	add_text(p, add_mapping(p, 0x5000, 0x9000, 0x5000, "/x"), 0x5000, 0x10);
	add_leaf(p, 0x6001, 0, 1);
	add_leaf(p, 0x4fff, 0, 1);
	b = write_one(p);
	assert_has(&b, "tstart     4000\ntsize      12288\n");
	profile_free(p);
	bytes_free(&b);
	/* The end stays if the beginning moves. */
	p = recorded();
	add_text(p, add_mapping(p, 0x5000, 0x9000, 0x5000, "/x"), 0x5000, 0x3800);
	add_leaf(p, 0x4fff, 0, 1);
	b = write_one(p);
	assert_has(&b, "tstart     4000\ntsize      18432\n");
	profile_free(p);
	bytes_free(&b);
}

static void write_memory(void **state)
{
	struct profile *p = recorded(), *again;
	char *directory = new_directory();
	uint32_t kernel = add_mapping(p, UINT64_C(1) << 63, UINT64_MAX, UINT64_C(1) << 63,
				      "[kernel.kallsyms]");
	uint32_t anon = add_mapping(p, 0x7f0000000000, 0x7f1000000000, 0, "[anon]");

	(void)state;
	add_leaf(p, 0xffffffff81000010, kernel, 1);
	add_leaf(p, 0xffffffffffffffff, kernel, 2);
	add_leaf(p, 0xfffffe0000000010, kernel, 3);
	add_leaf(p, 0x7f0000001000, anon, 4);
	add_leaf(p, 0x7f0f00001000, anon, 5);
	add_leaf(p, 0x1234, PROFILE_NONE, 6);
	add_leaf(p, 0x5678, PROFILE_NONE, 7);
	write_good(p, directory);
	assert_int_equal(files_in(directory), 5);
	again = read_directory(directory);
	assert_int_equal(profile_total(again, NULL), 28);
	assert_int_equal(again->sample_count, 6);
	for (size_t i = 0; i < again->sample_count; i++) {
		const struct profile_sample *s = &again->samples[i];
		uint64_t address =
			s->depth ? again->locations[again->frames[s->first_frame]].address : 0;

		switch (again->values[2 * i]) {
		case 1:
			assert_int_equal(address, 0xffffffff81000010);
			break;
		case 2:
			assert_int_equal(address, 0xffffffffffffffff);
			break;
		case 3:
			assert_int_equal(address, 0xfffffe0000000010);
			break;
		case 4:
			assert_int_equal(address, 0x7f0000001000);
			break;
		case 5:
			assert_int_equal(address, 0x7f0f00001000);
			break;
		default:
			assert_int_equal(s->depth, 0);
			assert_int_equal(again->values[2 * i], 13);
		}
	}
	profile_free(again);
	remove_directory(directory);
	profile_free(p);
}

static void write_events(void **state)
{
	struct profile *p = profile_new(), *again;
	char *directory = new_directory();
	uint32_t location = add_location(p, 0x1010, add_mapping(p, 0x1000, 0x2000, 0, "/x"));
	uint32_t labels = add_labels(p, 0, 0, "", false);
	int64_t values[] = { 3, 0, 5 };

	(void)state;
	assert_int_equal(profile_add_value_type(p, "cycles", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "imiss", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "alloc_space", "bytes"), 0);
	p->value_types[0].period = 65536;
	assert_int_equal(profile_add_sample(p, &location, 1, labels, values), 0);
	write_good(p, directory);
	assert_int_equal(files_in(directory), 2); /* no file of imiss, which has no samples */
	values[1] = 2;
	assert_int_equal(profile_add_sample(p, &location, 1, labels, values), 0);
	write_good(p, directory);
	assert_int_equal(files_in(directory), 3);
	again = read_directory(directory);
	assert_int_equal(again->value_type_count, 3);
	assert_int_equal(again->sample_count, 1);
	for (size_t i = 0; i < 3; i++) {
		const struct profile_value_type *t = &again->value_types[i];

		assert_int_equal(again->values[i], strcmp(t->type, "cycles") == 0  ? 9
						   : strcmp(t->type, "imiss") == 0 ? 2
										   : 15);
		assert_string_equal(t->unit, strcmp(t->type, "alloc_space") ? "count" : "bytes");
		assert_int_equal(t->period, strcmp(t->type, "cycles") ? 0 : 65536);
	}
	profile_free(again);
	remove_directory(directory);
	profile_free(p);
}

/* Files of a clock and another event keep the clock's period when they are written again. */
static void rewrite_two_events(void **state)
{
	char *directory = new_directory(), *copy = new_directory();
	struct bytes b = basic(),
		     other = headed(
			     VERSION IMAGE EPOCH PLATFORM
			     "event      cycles\nperiod     65536\n" TSTART TSIZE CPUSPEED PATH);
	struct profile *p;
	struct bytes again;

	(void)state;
	WORDS(&other, 0x300, 1, 7, 1, 7);
	put_file(directory, "a", b.start, b.size);
	put_file(directory, "b", other.start, other.size);
	p = read_directory(directory);
	write_good(p, copy);
	assert_int_equal(files_in(copy), 2);
	again = file_bytes(last_file);
	assert_memory_equal(again.start, again.size == b.size ? b.start : other.start, again.size);
	assert_int_equal(unlink(last_file), 0);
	bytes_free(&again);
	assert_int_equal(files_in(copy), 1);
	again = file_bytes(last_file);
	assert_memory_equal(again.start, again.size == b.size ? b.start : other.start, again.size);
	bytes_free(&again);
	profile_free(p);
	bytes_free(&b);
	bytes_free(&other);
	remove_directory(directory);
	remove_directory(copy);
}

static void write_account(void **state)
{
	struct profile *p = recorded(), *again;
	char *directory = new_directory();

	(void)state;
	add_leaf(p, 0x1010, add_mapping(p, 0x1000, 0x2000, 0, "/x"), 5);
	add_leaf(p, 0x3010, add_mapping(p, 0x3000, 0x4000, 0, "/y"), 7);
	add_leaf(p, 0, PROFILE_NONE, 1);
	p->duration_ns = 1250000000;
	p->totals = (struct profile_totals){ .known = true,
					     .ticks = 20,
					     .counted = 13,
					     .out_of_range = 1,
					     .excluded = 2,
					     .kernel = 6,
					     .cpu_ns = 77 };
	assert_int_equal(profile_add_lost(p, "ring_full", 4), 0);
	write_good(p, directory);
	for (int times = 1; times <= 2; times++) {
		again = read_directory(directory);
		assert_int_equal(files_in(directory), 3);
		assert_true(again->totals.known);
		assert_int_equal(again->totals.ticks, 20 * times);
		assert_int_equal(again->totals.counted, 13 * times);
		assert_int_equal(again->totals.out_of_range, times);
		assert_int_equal(again->totals.excluded, 2 * times);
		assert_int_equal(again->totals.kernel, 6 * times);
		assert_int_equal(again->totals.cpu_ns, 77 * times);
		assert_int_equal(profile_lost(again), 4 * times);
		assert_int_equal(again->duration_ns, UINT64_C(1250000000) * times);
		assert_int_equal(again->time_ns, p->time_ns);
		assert_int_equal(profile_tick_ns(again), 1000000);
		profile_free(again);
		/* Written again: counts of the same epoch add up. */
		write_good(p, directory);
	}
	/*
	 * After counts without an account are added, there is no account: it would be one of a
	 * part.
	 */
	p->totals.known = false;
	write_good(p, directory);
	again = read_directory(directory);
	assert_false(again->totals.known);
	profile_free(again);
	remove_directory(directory);
	profile_free(p);
}

static void write_nothing(void **state)
{
	struct profile *p = recorded(), *again;
	struct bytes b;

	(void)state;
	p->totals.known = true;
	p->totals.ticks = p->totals.excluded = 3;
	b = write_one(p);
	assert_has(&b, "path       unknown@walnut\n");
	again = read_good(dcpi, &b);
	assert_int_equal(again->sample_count, 0);
	assert_int_equal(again->totals.excluded, 3);
	profile_free(again);
	profile_free(p);
	bytes_free(&b);
}

static void write_hostile_names(void **state)
{
	struct profile *p = recorded();
	char *directory = new_directory(), path[8200];
	struct bytes b;

	(void)state;
	memset(path, 'n', sizeof(path));
	memcpy(path, "/../..\nversion pdb-0.00\n", 24);
	path[sizeof(path) - 1] = '\0';
	add_leaf(p, 0x1010, add_mapping(p, 0x1000, 0x2000, 0, path), 5);
	assert_int_equal(profile_string(p, "../../up", &p->host), 0);
	assert_int_equal(profile_string(p, " ../e\nx", &p->event), 0);
	write_good(p, directory);
	assert_int_equal(files_in(directory), 1);
	assert_non_null(strstr(last_file, "/2501181015/_._.._up/"));
	b = file_bytes(last_file);
	assert_has(&b, "platform   ../../up\n");
	assert_has(&b, "event      ?../e?x\n");
	assert_has(&b, "path       /../..?version pdb-0.00?nnn");
	profile_free(read_good(dcpi, &b));
	bytes_free(&b);
	remove_directory(directory);
	profile_free(p);
}

static void write_labels(void **state)
{
	struct bytes one = headed(REQUIRED PATH "label      one\n");
	struct bytes two = headed(REQUIRED PATH "label \ttwo/2\n"), none = basic(), again;
	char *directory = new_directory(), *copy = new_directory();
	struct profile *p;

	(void)state;
	WORDS(&one, 0, 1, 7, 1, 7);
	WORDS(&two, 0, 1, 9, 1, 9);
	put_file(directory, "1", one.start, one.size);
	put_file(directory, "2", two.start, two.size);
	put_file(directory, "3", none.start, none.size);
	p = read_directory(directory);
	write_good(p, copy);
	assert_int_equal(files_in(copy), 3);
	profile_free(p);
	p = read_directory(copy);
	assert_int_equal(profile_total(p, NULL), 124);
	profile_free(p);
	snprintf(last_file, sizeof(last_file), "%s/2501181015/walnut/demo.%s_two_2_cpu-clock", copy,
		 BUILD_ID);
	again = file_bytes(last_file);
	assert_int_equal(again.size, two.size);
	assert_memory_equal(again.start, two.start, two.size);
	bytes_free(&again);
	bytes_free(&one);
	bytes_free(&two);
	bytes_free(&none);
	remove_directory(directory);
	remove_directory(copy);
}

/* --- Overflows and conflicts --- */

static void refuse_overflow(void **state)
{
	struct bytes b = headed(REQUIRED PATH);
	char *directory = new_directory();
	struct profile *p;
	struct bytes before, after;

	(void)state;
	WORDS(&b, 0x123, 1, 0xffffffff, 1, 0xffffffff);
	p = read_good(dcpi, &b);
	write_good(p, directory);
	assert_int_equal(files_in(directory), 1);
	before = file_bytes(last_file);
	write_bad(p, directory, "/usr/bin/demo: 8589934590 samples at address 0x401123");
	assert_int_equal(files_in(directory), 1);
	after = file_bytes(last_file);
	assert_int_equal(before.size, after.size);
	assert_memory_equal(before.start, after.start, after.size);
	bytes_free(&before);
	bytes_free(&after);
	p->values[0] = 1;
	p->locations[0].image_address++;
	write_bad(p, directory, "/usr/bin/demo: 4294967296 samples in all");
	profile_free(p);
	bytes_free(&b);
	remove_directory(directory);
}

/* The last address that fits, and the first that does not. */
static void drop_too_far(void **state)
{
	struct profile *p = recorded(), *again;
	struct format_dropped dropped;
	struct bytes b;

	(void)state;
	add_text(p, add_mapping(p, 0x1000, 0x300000000, 0x1000, "/lib/l.so"), 0x1000, 0x2ffffe000);
	add_leaf(p, 0x1010, 0, 1);
	add_leaf(p, 0x100000fff, 0, 2);
	add_leaf(p, 0x100001000, 0, 4);
	add_leaf(p, 0x200000000, 0, 8);
	dcpi->dropped_images(p, &dropped);
	assert_int_equal(dropped.samples, 12);
	assert_false(dropped.others);
	assert_string_equal(dropped.image, "/lib/l.so");
	b = write_one(p);
	assert_has(&b, "tstart     1000\ntsize      12884893696\n");
	assert_has(&b, "x-lost     12 4 GiB or more above the text's start\n");
	again = read_good(dcpi, &b);
	assert_int_equal(profile_total(again, NULL), 3);
	dcpi->dropped_images(again, &dropped);
	assert_int_equal(dropped.samples, 0);
	profile_free(again);
	profile_free(p);
	bytes_free(&b);
}

/* A text that ends far below all samples. */
static void drop_all_samples(void **state)
{
	struct profile *p = recorded();
	struct bytes b;

	(void)state;
	add_text(p, add_mapping(p, 0x1000, 0x300000000, 0x1000, "/lib/l.so"), 0x1000, 0x1000);
	add_leaf(p, 0x200000000, 0, 8);
	b = write_one(p);
	assert_has(&b, "tstart     1000\ntsize      4096\n");
	assert_has(&b, "x-lost     8 4 GiB or more above the text's start\n");
	profile_free(read_good(dcpi, &b));
	profile_free(p);
	bytes_free(&b);
}

static void refuse_what_differs(void **state)
{
	static const struct {
		const char *header, *word;
	} cases[] = {
		{ VERSION IMAGE EPOCH PLATFORM EVENT "period 5\n" TSTART TSIZE CPUSPEED PATH,
		  "its period differs" },
		{ VERSION IMAGE EPOCH PLATFORM EVENT PERIOD "tstart 400000\n" TSIZE CPUSPEED PATH,
		  "its tstart differs" },
		{ REQUIRED PATH "x-bucket 8\n", "its x-bucket differs" },
	};
	char *directory = new_directory();
	struct bytes b = basic();
	struct profile *p = read_good(dcpi, &b);

	(void)state;
	write_good(p, directory);
	profile_free(p);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		p = read_header(cases[i].header);
		write_bad(p, directory, cases[i].word);
		profile_free(p);
	}
	assert_int_equal(files_in(directory), 1);
	/* A longer text is invalid. */
	p = read_header(VERSION IMAGE EPOCH PLATFORM EVENT PERIOD TSTART
			"tsize 9000\n" CPUSPEED PATH "odd 1\n");
	write_good(p, directory);
	profile_free(p);
	assert_int_equal(files_in(directory), 1);
	bytes_free(&b);
	b = file_bytes(last_file);
	assert_has(&b, "tsize      9000\n");
	assert_has(&b, "odd 1\nsamples");
	p = read_good(dcpi, &b);
	assert_int_equal(profile_total(p, NULL), 115);
	profile_free(p);
	bytes_free(&b);
	remove_directory(directory);
}

static void keep_corrupt_files(void **state)
{
	char *directory = new_directory();
	struct bytes b = basic();
	struct profile *p = read_good(dcpi, &b);
	FILE *out;

	(void)state;
	write_good(p, directory);
	assert_int_equal(files_in(directory), 1);
	out = fopen(last_file, "a");
	assert_non_null(out);
	fputs("tail", out);
	fclose(out);
	write_bad(p, directory, "_cpu-clock: at byte");
	profile_free(p);
	bytes_free(&b);
	remove_directory(directory);
}

/* --- Directories --- */

struct failing {
	size_t number; /* of the file that cannot be written */
};

static int fill(FILE *out, size_t number, int old, void *context, struct error *e)
{
	const struct failing *f = context;

	(void)old;
	fprintf(out, "new %zu", number);
	return number == f->number ? error_set(e, 0, "it fails") : 0;
}

static void write_all_or_none(void **state)
{
	char *const names[] = { (char *)"a/b/1", (char *)"a/c/2", (char *)"3" };
	char *directory = new_directory(), path[4096];
	struct bytes b;
	struct error e;

	(void)state;
	assert_true(directory_write(directory, names, 3, fill, &(struct failing){ 2 }, &e) < 0);
	assert_string_equal(e.what, "it fails");
	snprintf(path, sizeof(path), "%s/a", directory);
	assert_int_equal(access(path, F_OK), -1);
	put_file(directory, "3", "old", 3);
	/* The directory that is in the way is reached after the other files were renamed. */
	snprintf(path, sizeof(path), "%s/a", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/a/c", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/a/c/2", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(directory_write(directory, (char *const[]){ names[2], names[0], names[1] }, 3,
				    fill, &(struct failing){ 9 }, &e) < 0);
	assert_non_null(strstr(e.what, "a/c/2: Is a directory"));
	assert_int_equal(files_in(directory), 1);
	b = file_bytes(last_file);
	assert_memory_equal(b.start, "old", 3);
	bytes_free(&b);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(directory_write(directory, names, 3, fill, &(struct failing){ 9 }, &e), 0);
	assert_int_equal(files_in(directory), 3);
	snprintf(path, sizeof(path), "%s/3", directory);
	b = file_bytes(path);
	assert_memory_equal(b.start, "new 2", 5);
	bytes_free(&b);
	assert_int_equal(directory_write(directory, names, 0, fill, NULL, &e), 0);
	remove_directory(directory);
}

static void clean_names(void **state)
{
	char names[][16] = { "..", "a/b", "", ".hidden", "a\n\x7f", "ok.x" };
	static const char *const clean[] = { "_.", "a_b", "", "_hidden", "a__", "ok.x" };

	(void)state;
	for (size_t i = 0; i < sizeof(clean) / sizeof(*clean); i++) {
		directory_clean_name(names[i]);
		assert_string_equal(names[i], clean[i]);
	}
}

static void read_a_directory(void **state)
{
	char *directory = new_directory(), path[4096];
	struct bytes b = basic();
	struct profile *p;
	struct error e = { 0 };

	(void)state;
	assert_true(format_read(directory, NULL, &p, &e) < 0);
	assert_non_null(strstr(e.what, "there is no profile in this directory"));
	put_file(directory, "hpcpid-walnut.log", "Sat Jan 18: started\n", 20);
	put_file(directory, "empty", "", 0);
	put_file(directory, ".hidden", b.start, b.size);
	assert_true(format_read(directory, NULL, &p, &e) < 0);
	put_file(directory, "2", b.start, b.size);
	snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/link", directory);
	assert_int_equal(symlink("2", path), 0);
	snprintf(path, sizeof(path), "%s/loop", directory);
	assert_int_equal(symlink(".", path), 0);
	p = read_directory(directory);
	assert_int_equal(profile_total(p, NULL), 108);
	assert_warned(p, "not read: ");
	assert_warned(p, "hpcpid-walnut.log is not a profile");
	assert_warned(p, "/empty is empty");
	assert_warned(p, "/link is not a regular file");
	assert_warned(p, "/fifo is not a regular file");
	profile_free(p);
	b.size -= 4;
	put_file(directory, "3", b.start, b.size);
	put_file(directory, "4.gz", "\x1f\x8b\x08", 3);
	p = read_directory(directory);
	assert_int_equal(profile_total(p, NULL), 108);
	assert_true(p->salvaged);
	assert_warned(p, "/3: at byte");
	assert_warned(p, "/4.gz: the gzip data is truncated");
	profile_free(p);
	assert_int_equal(format_read(directory, &(struct input_options){ .salvage = true }, &p, &e),
			 0);
	assert_int_equal(profile_total(p, NULL), 214);
	profile_free(p);
	bytes_free(&b);
	remove_directory(directory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rewrite_bytes),
		cmocka_unit_test(write_chunks),
		cmocka_unit_test(sum_equal_images),
		cmocka_unit_test(write_what_is_not_resolved),
		cmocka_unit_test(write_outside_of_the_text),
		cmocka_unit_test(write_memory),
		cmocka_unit_test(write_events),
		cmocka_unit_test(rewrite_two_events),
		cmocka_unit_test(write_account),
		cmocka_unit_test(write_nothing),
		cmocka_unit_test(write_hostile_names),
		cmocka_unit_test(write_labels),
		cmocka_unit_test(refuse_overflow),
		cmocka_unit_test(drop_too_far),
		cmocka_unit_test(drop_all_samples),
		cmocka_unit_test(refuse_what_differs),
		cmocka_unit_test(keep_corrupt_files),
		cmocka_unit_test(write_all_or_none),
		cmocka_unit_test(clean_names),
		cmocka_unit_test(read_a_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
