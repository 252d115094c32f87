/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_PRINT_FIXTURE_H
#define PROFIL_TESTS_PRINT_FIXTURE_H

/* Shared by the tests of views: a stream whose text can be compared. These functions assert. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The text that was printed last; freed at the end. */
static char *printed;

static inline FILE *print_begin(void)
{
	static size_t size;
	FILE *out;

	free(printed);
	printed = NULL;
	out = open_memstream(&printed, &size);
	assert_non_null(out);
	return out;
}

/* err: the view's result. The text is valid until the next print_begin(). */
static inline const char *print_end(FILE *out, int err)
{
	assert_int_equal(err, 0);
	assert_int_equal(fclose(out), 0);
	return printed;
}

#endif
