/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_LAYOUT_H
#define PROFIL_TESTS_LAYOUT_H

/* Shared by the programs that compare profil's layouts with an interpreter's headers. */

#include <stddef.h>
#include <stdio.h>

static int differences;

static void compare(const char *name, size_t ours, size_t theirs)
{
	if (ours == theirs)
		return;
	printf("%s: %zu, in the headers %zu\n", name, ours, theirs);
	differences++;
}

#endif
