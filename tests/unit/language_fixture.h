/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_LANGUAGE_FIXTURE_H
#define PROFIL_TESTS_LANGUAGE_FIXTURE_H

/* Shared by the tests of interpreters: what is found in an image. */

#include <fcntl.h>

#include "directory_fixture.h"
#include "script/language.h"

static inline struct language_image find(const char *path)
{
	struct language_image image;
	struct elf_file file;
	struct error e;

	assert_int_equal(elf_file_open(&file, open(path, O_RDONLY | O_CLOEXEC), NULL, &e), 0);
	language_find(&file, &image);
	elf_file_close(&file);
	return image;
}

/* In a library of image.c, which is in the test's directory. */
static inline struct language_image find_built(const char *options)
{
	assert_int_equal(shell("gcc -shared -fPIC -o image.so %s image.c", options), 0);
	return find(in_directory("image.so"));
}

#endif
