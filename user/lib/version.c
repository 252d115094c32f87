// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/version.h"

#include <errno.h>
#include <string.h>

#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/profil.h"

#define TEXT(number)   #number
#define EXPAND(number) TEXT(number)

/* The version is in two places, as programs include the header without the Makefile. */
_Static_assert(
	__builtin_strcmp(PROFIL_VERSION,
			 EXPAND(PROFIL_VERSION_MAJOR) "." EXPAND(PROFIL_VERSION_MINOR) "." EXPAND(
				 PROFIL_VERSION_PATCH)) == 0,
	"PROFIL_VERSION_MAJOR, _MINOR and _PATCH in profil.h are not the Makefile's VERSION");

EXPORT unsigned int profil_version(void)
{
	return PROFIL_VERSION_NUMBER(PROFIL_VERSION_MAJOR, PROFIL_VERSION_MINOR,
				     PROFIL_VERSION_PATCH);
}

/*
 * A larger size is a mistake of the caller.
 * Bound: caller: bytes of a struct of a later version; then: the call fails: EINVAL.
 */
#define SIZE_MOST 4096

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

int profil__struct_check(size_t size, size_t first, const char *name)
{
	if (size >= first && size <= SIZE_MOST)
		return 0;
	return profil__error(EINVAL, "size %zu of struct %s: pass sizeof(struct %s), %zu or more",
			     size, name, name, first);
}

int profil__struct_read(void *to, size_t known, const void *from, size_t size, const char *name)
{
	const char *bytes = from;

	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return profil__error(E2BIG,
					     "struct %s has %zu bytes and byte %zu is not 0, but "
					     "libprofil " PROFIL_VERSION " knows the first %zu: "
					     "install a newer libprofil",
					     name, size, i, known);
	memset(to, 0, known);
	memcpy(to, from, smaller(known, size));
	return 0;
}

void profil__struct_write(void *to, size_t size, const void *from, size_t known)
{
	memset(to, 0, size);
	memcpy(to, from, smaller(known, size));
}
