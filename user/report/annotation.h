/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ANNOTATION_H
#define PROFIL_REPORT_ANNOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "report/disassembly.h"
#include "symbol/symbol.h"
#include "util/error.h"

/* A function's instructions with the samples that fell on each. */

struct annotation_options {
	/*
	 * The function's name, of C++ with or without its parameters; or an address in it, or in
	 * code without a name, in its image's own numbering: 0xADDRESS or IMAGE+0xADDRESS.
	 */
	const char *function;
	const char *image; /* that holds it: its path or base name; NULL: any */
	bool no_sources;
};

struct annotation {
	const struct profile *p;
	uint32_t image;
	const char *function; /* its name, or NULL */
	struct symbol_extent extent;
	struct disassembly code;
	size_t *values; /* the values that are counted: value_count of the profile's */
	size_t value_count;
	uint64_t *counts; /* instruction i's are counts[i * value_count .. + value_count] */
	uint64_t samples; /* of the first value: in the function, and in the whole profile */
	uint64_t all_samples;
};

/*
 * Finds the function, disassembles it from its file on this machine, and counts. The profile must
 * have been resolved; its images' `unnamed` is not kept. Returns 0, or a negative errno with e set;
 * annotation_free() is due in any case.
 */
int annotation_make(struct annotation *a, struct profile *p, const struct annotation_options *o,
		    struct error *e);
void annotation_free(struct annotation *a);

#endif
