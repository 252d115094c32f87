/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FUNCTION_SEARCH_H
#define PROFIL_REPORT_FUNCTION_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "symbol/symbol.h"
#include "util/error.h"

/* Finds the code that is meant by a function's name or an address. */

/* Bytes of code that are shown where no symbol tells how long the function is. */
#define FUNCTION_WINDOW 256

struct found_function {
	uint32_t image;		     /* PROFILE_NONE: it is in none that is known */
	const char *name;	     /* or NULL */
	struct symbol_extent extent; /* both 0: not known, and its locations go by their names */
	uint64_t samples;	     /* whose leaf it is */
	bool *locations; /* of the profile: those that are in it. To be free()d, also on errors */
};

/*
 * function: a name, of C++ with or without its parameters; 0xADDRESS or IMAGE+0xADDRESS, in the
 * image's own numbering; NULL: the busiest one in a file. image: that holds it, its path or base
 * name; NULL: any. The profile must have been resolved; its images' `unnamed` becomes why their
 * files cannot be read. Returns 0, or a negative errno with e set: -ENOENT or, for one of several
 * functions, -EINVAL.
 */
int function_search(struct profile *p, const char *function, const char *image,
		    struct found_function *found, struct error *e);

#endif
