/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ANNOTATION_H
#define PROFIL_REPORT_ANNOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "report/annotate/disassembly.h"
#include "report/annotate/source_file.h"
#include "report/annotate/source_lines.h"
#include "symbol/symbol.h"
#include "util/error.h"

/* A function's instructions and source lines with the samples that fell on each. */

struct annotation_options {
	const char *function; /* as function_search() takes them */
	const char *image;
	const char *source_path; /* a folder where source files may be; or NULL */
	bool no_sources;
	bool debuginfod;
};

/* What was counted for each of some instructions or lines. */
struct tallies {
	uint64_t *self;	 /* number i's are self[i * value_count .. + value_count] */
	uint64_t *total; /* of the first value: samples in whose stacks it is */

	uint64_t *last_stack; /* private to annotation.c */
};

struct annotation {
	const struct profile *p;
	uint32_t image;		     /* PROFILE_NONE: none that is known */
	const char *function;	     /* its name, or NULL */
	struct symbol_extent extent; /* both 0: not known */
	bool stacks;		     /* false: totals are the same as self */
	size_t *values;		     /* the values that are counted: value_count of the profile's */
	size_t value_count;
	uint64_t samples;     /* of the first value: in the function itself, */
	uint64_t total;	      /* in it and what it called, */
	uint64_t all_samples; /* and in the whole profile */

	struct disassembly code; /* without instructions: it cannot be disassembled, */
	struct error no_code;	 /* and why */
	struct tallies code_counts;
	struct profile *code_places; /* its location i has instruction i's lines; or NULL */

	struct source_lines lines;
	const struct profile *line_places; /* whose locations they are of: p, or code_places */
	struct tallies line_counts;
	struct source_files files;
};

/*
 * Finds the function, disassembles it from its file on this machine, and counts. The profile must
 * have been resolved; its locations in the function may get lines, and its images' `unnamed` is not
 * kept. Without code, source lines will do, and without these, code. Returns 0, or a negative errno
 * with e set; annotation_free() is due in any case.
 */
int annotation_make(struct annotation *a, struct profile *p, const struct annotation_options *o,
		    struct error *e);
void annotation_free(struct annotation *a);

/* Whether it knows any source line. */
bool annotation_has_lines(const struct annotation *a);

#endif
