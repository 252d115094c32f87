/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_FORMAT_FIXTURE_H
#define PROFIL_TESTS_FORMAT_FIXTURE_H

/* Shared by the tests of the file formats. These functions assert; none returns an error. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/format.h"

/* A file in memory. */
struct bytes {
	uint8_t *start;
	size_t size;
};

static inline void bytes_add(struct bytes *b, const void *from, size_t size)
{
	b->start = realloc(b->start, b->size + size + 1);
	assert_non_null(b->start);
	if (size)
		memcpy(b->start + b->size, from, size);
	b->size += size;
}

static inline void bytes_add_text(struct bytes *b, const char *text)
{
	bytes_add(b, text, strlen(text));
}

static inline void bytes_free(struct bytes *b)
{
	free(b->start);
	*b = (struct bytes){ 0 };
}

/* Reads a copy of exactly this size, so that a sanitizer sees every byte read past it. */
static inline int read_part(const struct format *format, const uint8_t *bytes, size_t size,
			    struct profile **p, struct error *e)
{
	uint8_t *copy = malloc(size);
	struct input in = { .path = "input", .bytes = copy, .size = size };
	int err = -1;

	assert_true(copy || size == 0);
	if (size)
		memcpy(copy, bytes, size);
	*p = NULL;
	snprintf(e->what, sizeof(e->what), "not of this format");
	if (size && format->detect(&in)) {
		*p = profile_new();
		assert_non_null(*p);
		err = format->read(&in, *p, e);
	}
	if (err) {
		profile_free(*p);
		*p = NULL;
	}
	free(copy);
	return err;
}

static inline struct profile *read_good(const struct format *format, const struct bytes *b)
{
	struct profile *p;
	struct error e = { 0 };

	if (read_part(format, b->start, b->size, &p, &e))
		fail_msg("%s", e.what);
	return p;
}

/* The error message must contain these words. */
static inline void read_bad(const struct format *format, const struct bytes *b, const char *words)
{
	struct profile *p;
	struct error e = { 0 };

	assert_true(read_part(format, b->start, b->size, &p, &e) < 0);
	if (!strstr(e.what, words))
		fail_msg("\"%s\" does not say \"%s\"", e.what, words);
}

/* A format may be unable to hold the profile: then e has the reason. */
static inline int try_write(const struct format *format, const struct profile *p, struct bytes *b,
			    struct error *e)
{
	char *start = NULL;
	FILE *out = open_memstream(&start, &b->size);
	int err;

	assert_non_null(out);
	err = format->write(p, &(struct format_options){ 0 }, out, e);
	assert_int_equal(fclose(out), 0);
	b->start = (uint8_t *)start;
	return err;
}

static inline struct bytes write_bytes(const struct format *format, const struct profile *p)
{
	struct bytes b = { 0 };
	struct error e = { 0 };

	if (try_write(format, p, &b, &e))
		fail_msg("%s", e.what);
	return b;
}

/* Creates a file with this content. The caller removes it, and frees the path. */
static inline char *temporary_file(const void *content, size_t size)
{
	const char *dir = getenv("TMPDIR");
	char *path = NULL;
	int fd;

	assert_true(asprintf(&path, "%s/format-XXXXXX", dir ? dir : "/tmp") > 0);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, size), (ssize_t)size);
	assert_int_equal(close(fd), 0);
	return path;
}

static inline int read_file(const struct bytes *b, struct profile **p, struct error *e)
{
	char *path = temporary_file(b->start, b->size);
	int err = format_read(path, NULL, p, e);

	unlink(path);
	free(path);
	return err;
}

static inline struct profile *read_file_good(const struct bytes *b)
{
	struct profile *p;
	struct error e = { 0 };

	if (read_file(b, &p, &e))
		fail_msg("%s", e.what);
	return p;
}

/* The path of a file in tests/data. */
static inline char *data_path(const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, PROFIL_TESTS "/data/%s", name) > 0);
	return path;
}

/* The path of another project's file, which is not in the tree; NULL: it is not on this machine. */
static inline char *others_path(const char *name)
{
	const char *data = getenv("PROFIL_TEST_DATA");
	char *path = NULL;

	if (!data)
		return NULL;
	assert_true(asprintf(&path, "%s/%s", data, name) > 0);
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

static inline uint32_t add_mapping(struct profile *p, uint64_t start, uint64_t limit,
				   uint64_t offset, const char *path)
{
	uint32_t image, mapping;

	assert_int_equal(profile_add_image(p, path, NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, start, limit, offset, image, &mapping), 0);
	return mapping;
}

static inline uint32_t add_location(struct profile *p, uint64_t address, uint32_t mapping)
{
	uint32_t location;

	assert_int_equal(profile_add_location(p, address, mapping, &location), 0);
	return location;
}

static inline uint32_t add_function(struct profile *p, const char *name, const char *file,
				    uint32_t line)
{
	struct profile_function f = {
		.name = name, .system_name = name, .file = file, .start_line = line
	};
	uint32_t id;

	assert_int_equal(profile_add_function(p, &f, &id), 0);
	return id;
}

static inline uint32_t add_labels(struct profile *p, uint32_t pid, uint32_t tid, const char *comm,
				  bool kernel)
{
	struct profile_labels labels = { .pid = pid, .tid = tid, .comm = comm, .kernel = kernel };
	uint32_t id;

	assert_int_equal(profile_add_labels(p, &labels, &id), 0);
	return id;
}

/* A profile that counts samples and time, and has no sample. */
static inline struct profile *empty_profile(uint64_t tick_ns)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "cpu", "nanoseconds"), 0);
	profile_set_tick_ns(p, tick_ns);
	return p;
}

static inline void add_sample(struct profile *p, const uint32_t *frames, uint32_t depth,
			      uint32_t labels, int64_t count)
{
	int64_t values[2] = { count, 0 };

	if (__builtin_mul_overflow(count, (int64_t)profile_tick_ns(p), &values[1]))
		values[1] = INT64_MAX;
	assert_int_equal(profile_add_sample(p, frames, depth, labels, values), 0);
}

static inline bool has_text(const char *const *texts, size_t count, const char *words)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(texts[i], words))
			return true;
	return false;
}

static inline void assert_warned(const struct profile *p, const char *words)
{
	if (!has_text(p->warnings, p->warning_count, words))
		fail_msg("no warning says \"%s\"", words);
}

/* Reads these bytes, which may succeed or fail, but must not crash. */
static inline void survive(const struct format *format, const uint8_t *bytes, size_t size)
{
	struct profile *p;
	struct error e = { 0 };

	if (read_part(format, bytes, size, &p, &e)) {
		assert_true(e.what[0] != '\0');
		return;
	}
	for (const struct format *const *f = format_all; *f; f++) {
		struct bytes b = { 0 };

		if (!(*f)->write)
			continue;
		if (try_write(*f, p, &b, &e))
			assert_true(e.what[0] != '\0');
		bytes_free(&b);
	}
	profile_free(p);
}

static inline void survive_truncation(const struct format *format, const struct bytes *b)
{
	for (size_t size = 0; size < b->size; size++)
		survive(format, b->start, size);
}

static inline void survive_bit_flips(const struct format *format, struct bytes *b)
{
	for (size_t i = 0; i < b->size * 8; i++) {
		b->start[i / 8] ^= 1 << i % 8;
		survive(format, b->start, b->size);
		b->start[i / 8] ^= 1 << i % 8;
	}
}

#endif
