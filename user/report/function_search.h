/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_FUNCTION_SEARCH_H
#define PROFIL_REPORT_FUNCTION_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "symbol/symbol.h"
#include "util/error.h"

/* Finds the code that a function's name or an address means. */

/* Bytes of code that are shown where no symbol gives the function's size. */
#define FUNCTION_WINDOW 256

struct found_function {
	uint32_t image;		     /* PROFILE_NONE: in no known image */
	const char *name;	     /* or NULL */
	struct symbol_extent extent; /* 0, 0: unknown; then its locations are found by name */
	int64_t samples;	     /* whose leaf is in it */
	bool *locations;	     /* of each location of the profile: it is in the function */
};

/*
 * function: a name, of C++ with or without parameters; 0xADDRESS or IMAGE+0xADDRESS, in the image's
 * own numbering; NULL: the busiest function that is in a file. image: that holds it, its path or
 * base name; NULL: any. value: what is counted, as in profile_value(). The profile must have been
 * resolved; each of its images' `unnamed` becomes the reason why its file cannot be read. Returns
 * 0, or a negative errno with e set: -ENOENT, or -EINVAL if several functions match. The caller
 * frees found->locations, also after an error.
 */
int function_search(struct profile *p, const char *function, const char *image, const char *value,
		    struct found_function *found, struct error *e);

#endif
