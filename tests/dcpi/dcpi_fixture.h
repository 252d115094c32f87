/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_DCPI_FIXTURE_H
#define PROFIL_TESTS_DCPI_FIXTURE_H

/* Shared by the tests that read and write DCPI files. */

#include "tests/unit/format_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>

#include "format/dcpi/dcpi.h"
#include "util/directory.h"

static const struct format *const dcpi = &format_dcpi;

#define BUILD_ID "1f2e3d4c5b6a79880f1e2d3c4b5a69788796a5b4"

/* The header's lines as they are written, except `path`. */
#define VERSION	 "version    pdb-0.07\n"
#define IMAGE	 "image      " BUILD_ID "\n"
#define EPOCH	 "epoch      2501181015\n"
#define PLATFORM "platform   walnut\n"
#define EVENT	 "event      cpu-clock\n"
#define PERIOD	 "period     10101010\n"
#define TSTART	 "tstart     401000\n"
#define TSIZE	 "tsize      4096\n"
#define CPUSPEED "cpuspeed   0\n"
#define REQUIRED VERSION IMAGE EPOCH PLATFORM EVENT PERIOD TSTART TSIZE CPUSPEED
#define PATH	 "path       /usr/bin/demo\n"

/* The lines after the image's. */
#define REST EPOCH PLATFORM EVENT PERIOD TSTART TSIZE CPUSPEED

#define ORIGIN_S 1737195300 /* of EPOCH */

/* Appends a body of words. */
static inline void add_words(struct bytes *b, const uint32_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t bytes[] = { words[i], words[i] >> 8, words[i] >> 16, words[i] >> 24 };

		bytes_add(b, bytes, sizeof(bytes));
	}
}

#define WORDS(b, ...) \
	add_words(b, (const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

/* A file with this header and its terminator, without a body. */
static inline struct bytes headed(const char *header)
{
	struct bytes b = { 0 };

	bytes_add_text(&b, header);
	bytes_add_text(&b, "samples");
	while (b.size % 4 != 3)
		bytes_add_text(&b, " ");
	bytes_add_text(&b, "\n");
	return b;
}

static inline struct bytes basic(void)
{
	struct bytes b = headed(REQUIRED PATH);

	WORDS(&b, 0x136, 2, 70, 3, 0x172, 1, 33, 0xfff, 1, 2, 4, 108);
	return b;
}

/* --- Directories --- */

static inline char *new_directory(void)
{
	const char *parent = getenv("TMPDIR");
	char *path = NULL;

	assert_true(asprintf(&path, "%s/dcpi-XXXXXX", parent ? parent : "/tmp") > 0);
	assert_non_null(mkdtemp(path));
	return path;
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void remove_directory(char *path)
{
	assert_int_equal(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(path);
}

static char last_file[4096];
static int file_count;

static inline int count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	file_count++;
	snprintf(last_file, sizeof(last_file), "%s", path);
	return 0;
}

/* Returns the number of files below the directory; last_file is one of them. */
static inline int files_in(const char *path)
{
	file_count = 0;
	assert_int_equal(nftw(path, count_file, 8, FTW_PHYS), 0);
	return file_count;
}

static inline struct bytes file_bytes(const char *path)
{
	struct bytes b = { 0 };
	char buffer[4096];
	FILE *in = fopen(path, "r");
	size_t size;

	assert_non_null(in);
	while ((size = fread(buffer, 1, sizeof(buffer), in)))
		bytes_add(&b, buffer, size);
	fclose(in);
	return b;
}

static inline void put_file(const char *directory, const char *name, const void *bytes, size_t size)
{
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
}

static inline void write_good(const struct profile *p, const char *path)
{
	struct error e = { 0 };

	if (dcpi->write_directory(p, &(struct format_options){ 0 }, path, &e))
		fail_msg("%s", e.what);
}

static inline void write_bad(const struct profile *p, const char *path, const char *words)
{
	struct error e = { 0 };

	assert_true(dcpi->write_directory(p, &(struct format_options){ 0 }, path, &e) < 0);
	if (!strstr(e.what, words))
		fail_msg("\"%s\" does not say \"%s\"", e.what, words);
}

static inline struct profile *read_directory(const char *path)
{
	struct profile *p;
	struct error e = { 0 };

	if (format_read(path, NULL, &p, &e))
		fail_msg("%s", e.what);
	return p;
}

/* The only file that is written of a profile. */
static inline struct bytes write_one(const struct profile *p)
{
	char *directory = new_directory();
	struct bytes b;

	write_good(p, directory);
	assert_int_equal(files_in(directory), 1);
	b = file_bytes(last_file);
	remove_directory(directory);
	return b;
}

static inline void assert_has(const struct bytes *b, const char *line)
{
	if (!memmem(b->start, b->size, line, strlen(line)))
		fail_msg("no line \"%s\" in:\n%.*s", line, (int)b->size, (char *)b->start);
}

/* Returns the profile of a file with this header and one count at tstart. */
static inline struct profile *read_header(const char *header)
{
	struct bytes b = headed(header);
	struct profile *p;

	WORDS(&b, 0, 1, 7, 1, 7);
	p = read_good(dcpi, &b);
	bytes_free(&b);
	return p;
}

#endif
