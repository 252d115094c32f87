// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include <errno.h>
#include <zlib.h>

#include "format/gzip.h"

static void find_by_name(void **state)
{
	(void)state;
	for (const struct format *const *f = format_all; *f; f++)
		assert_ptr_equal(format_by_name((*f)->name), *f);
	assert_null(format_by_name("gperf"));
	assert_null(format_by_name(""));
}

static void find_by_path(void **state)
{
	(void)state;
	assert_string_equal(format_by_path("/a/x.pb.gz")->name, "pprof");
	assert_string_equal(format_by_path("x.prof")->name, "gperftools");
	assert_string_equal(format_by_path("x.folded.gz")->name, "folded");
	assert_string_equal(format_by_path("callgrind.out.123")->name, "callgrind");
	assert_string_equal(format_by_path("./cachegrind.out")->name, "callgrind");
	assert_string_equal(format_by_path("/a/gmon.out.7")->name, "gmon");
	/* An extension is stronger than what the name begins with, whichever format is first. */
	assert_string_equal(format_by_path("callgrind.out.1.gz")->name, "callgrind");
	assert_string_equal(format_by_path("callgrind.out.1.folded.gz")->name, "folded");
	assert_string_equal(format_by_path("gmon.out.prof")->name, "gperftools");
	assert_string_equal(format_by_path("gmon.out.pb.gz")->name, "pprof");
	assert_null(format_by_extension("callgrind.out.1"));
	assert_null(format_by_path("callgrind.outer"));
	assert_null(format_by_path("gmon.out/x"));
	assert_null(format_by_path("x.cpuprofile"));
	assert_null(format_by_path("x.gz"));
	assert_null(format_by_path("prof"));
	assert_null(format_by_path(".prof"));
	assert_null(format_by_path(""));
}

/* A small gperftools file. */
static struct bytes profile_bytes(void)
{
	struct profile *p = empty_profile(10000000);
	uint32_t frame = add_location(p, 0x1010, add_mapping(p, 0x1000, 0x2000, 0, "/bin/a"));
	struct bytes b;

	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 5);
	b = write_bytes(format_by_name("gperftools"), p);
	profile_free(p);
	return b;
}

static struct bytes compress_bytes(const void *start, size_t size)
{
	struct gzip_writer *w = malloc(sizeof(*w));
	struct bytes b = { 0 };
	struct error e = { 0 };
	char *memory = NULL;
	FILE *out = open_memstream(&memory, &b.size);

	assert_true(w && out);
	assert_int_equal(gzip_open(w, out, &e), 0);
	assert_int_equal(deflateParams(&w->z, Z_BEST_COMPRESSION, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(gzip_close(w, gzip_write(w, start, size, &e), &e), 0);
	assert_int_equal(fclose(out), 0);
	free(w);
	b.start = (uint8_t *)memory;
	return b;
}

static void check_invalid(const struct bytes *b, const char *words)
{
	struct profile *p;
	struct error e = { 0 };

	assert_int_equal(read_file(b, &p, &e), -EINVAL);
	if (!strstr(e.what, words))
		fail_msg("\"%s\" does not say \"%s\"", e.what, words);
}

static void read_good_profile(const struct bytes *b)
{
	struct profile *p = read_file_good(b);

	assert_string_equal(p->format, "gperftools");
	assert_int_equal(profile_total(p, NULL), 5);
	profile_free(p);
}

static void read_plain_and_gzip(void **state)
{
	struct bytes b = profile_bytes(), gz = compress_bytes(b.start, b.size);

	(void)state;
	read_good_profile(&b);
	read_good_profile(&gz);
	/* padded, as on a tape */
	bytes_add(&gz, "\0\0\0", 3);
	read_good_profile(&gz);
	bytes_free(&b);
	bytes_free(&gz);
}

static void read_concatenated_gzip(void **state)
{
	struct bytes b = profile_bytes();
	struct bytes first = compress_bytes(b.start, 10);
	struct bytes second = compress_bytes(b.start + 10, b.size - 10);

	(void)state;
	bytes_add(&first, second.start, second.size);
	read_good_profile(&first);
	bytes_free(&b);
	bytes_free(&first);
	bytes_free(&second);
}

static void reject_gzip(void **state)
{
	struct bytes b = profile_bytes(), gz = compress_bytes(b.start, b.size);
	size_t size = gz.size;

	(void)state;
	for (gz.size = 2; gz.size < size; gz.size++)
		check_invalid(&gz, "gzip data is truncated");
	gz.size = size;
	gz.start[size - 5] ^= 1;
	check_invalid(&gz, "data check");
	gz.start[size - 5] ^= 1;
	bytes_add_text(&gz, "more");
	check_invalid(&gz, "data of another kind follows");
	bytes_free(&b);
	bytes_free(&gz);
}

static void reject_bomb(void **state)
{
	size_t size = 65 << 20;
	uint8_t *zeros = calloc(1, size);
	struct bytes gz, profile = profile_bytes();

	(void)state;
	assert_non_null(zeros);
	memcpy(zeros, profile.start, profile.size);
	gz = compress_bytes(zeros, size);
	check_invalid(&gz, "inflates to more");
	free(zeros);
	bytes_free(&gz);
	bytes_free(&profile);
}

static void inflated_offsets_say_so(void **state)
{
	struct bytes b = profile_bytes(), gz;

	(void)state;
	b.start[16] = 9;
	gz = compress_bytes(b.start, b.size);
	check_invalid(&b, ": at byte 16: version 9");
	check_invalid(&gz, ": at byte 16 of the inflated data: version 9");
	bytes_free(&b);
	bytes_free(&gz);
}

static void reject_other_content(void **state)
{
	struct bytes b = { 0 };
	struct profile *p;
	struct error e = { 0 };

	(void)state;
	check_invalid(&b, "is empty");
	bytes_add_text(&b, "#!/bin/sh\n");
	assert_true(read_file(&b, &p, &e) < 0);
	assert_non_null(strstr(e.what, "is a text file that is no profile"));
	assert_non_null(strstr(e.hint, "profiltool record"));
	bytes_free(&b);
	bytes_add_text(&b, "\1\2\3\4\5\6\7\10\n");
	assert_true(read_file(&b, &p, &e) < 0);
	assert_non_null(strstr(e.what, "is not a profile"));
	assert_non_null(strstr(e.hint, "gperftools, "));
	bytes_free(&b);
}

static void reject_unreadable(void **state)
{
	struct profile *p;
	struct error e = { 0 };

	(void)state;
	assert_int_equal(format_read("/nonexistent/file", NULL, &p, &e), -ENOENT);
	assert_non_null(strstr(e.what, "/nonexistent/file"));
}

static void read_standard_input(void **state)
{
	struct bytes b = profile_bytes();
	int ends[2], saved = dup(STDIN_FILENO);
	struct profile *p;
	struct error e = { 0 };

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], b.start, b.size), (ssize_t)b.size);
	close(ends[1]);
	assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
	close(ends[0]);
	if (format_read("-", NULL, &p, &e))
		fail_msg("%s", e.what);
	assert_int_equal(profile_total(p, NULL), 5);
	profile_free(p);
	assert_int_equal(format_read("-", NULL, &p, &e), -EINVAL);
	assert_string_equal(e.what, "standard input is empty");
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
	bytes_free(&b);
}

/* A full disk is an error, of the writer or of the stream. */
static void full_disk(void **state)
{
	struct profile *p = empty_profile(5);
	uint32_t frame = add_location(p, 0x1010, add_mapping(p, 0x1000, 0x2000, 0, "/bin/a"));
	FILE *out = fopen("/dev/full", "w");
	struct error e = { 0 };

	(void)state;
	if (!out) {
		print_message("# no /dev/full: not done\n");
		profile_free(p);
		return;
	}
	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 5);
	setvbuf(out, NULL, _IONBF, 0);
	for (const struct format *const *f = format_all; *f; f++) {
		if (!(*f)->write)
			continue;
		clearerr(out);
		assert_true((*f)->write(p, &(struct format_options){ 0 }, out, &e) == -ENOSPC ||
			    ferror(out));
	}
	fclose(out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_by_name),
		cmocka_unit_test(find_by_path),
		cmocka_unit_test(read_plain_and_gzip),
		cmocka_unit_test(read_concatenated_gzip),
		cmocka_unit_test(reject_gzip),
		cmocka_unit_test(reject_bomb),
		cmocka_unit_test(inflated_offsets_say_so),
		cmocka_unit_test(reject_other_content),
		cmocka_unit_test(reject_unreadable),
		cmocka_unit_test(read_standard_input),
		cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
