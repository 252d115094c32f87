/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_DIRECTORY_FIXTURE_H
#define PROFIL_TESTS_DIRECTORY_FIXTURE_H

/*
 * Shared by the tests that build programs: a directory of their own, and commands that run there.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char directory[256];

/* For a test program's setup function. Returns 0 or -1. */
static inline int directory_make(void)
{
	const char *base = getenv("TMPDIR");

	snprintf(directory, sizeof(directory), "%s/profil-test.XXXXXX",
		 base && *base ? base : "/tmp");
	return mkdtemp(directory) ? 0 : -1;
}

/* For its teardown. */
static inline int directory_remove(void)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command);
}

/* The same as functions of a group of tests that need nothing else. */
static inline int directory_setup(void **state)
{
	(void)state;
	return directory_make();
}

static inline int directory_teardown(void **state)
{
	(void)state;
	return directory_remove();
}

/* Runs a command in the directory, without output. Returns its status as wait(2) gives it. */
__attribute__((format(printf, 1, 2))) static inline int shell(const char *format, ...)
{
	char command[2048];
	va_list arguments;
	int n = snprintf(command, sizeof(command), "cd '%s' && exec >/dev/null 2>&1; ", directory);

	va_start(arguments, format);
	vsnprintf(command + n, sizeof(command) - n, format, arguments);
	va_end(arguments);
	return system(command);
}

/* Returns the path of a file there, which is valid until the next call. */
static inline const char *in_directory(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static inline void write_file(const char *name, const void *bytes, size_t size)
{
	FILE *f = fopen(in_directory(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

#endif
