// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/profil.h"

#include "lib/export.h"

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
