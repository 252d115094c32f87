/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ANNOTATION_H
#define PROFIL_REPORT_ANNOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"
#include "report/disassembly.h"
#include "report/source_file.h"
#include "report/source_lines.h"
#include "symbol/symbol.h"
#include "util/error.h"

/* A function's instructions and source lines, and the samples of each. */

struct annotation_options {
	const char *function;	 /* as in function_search() */
	const char *image;	 /* the same */
	const char *value;	 /* the same */
	const char *source_path; /* a directory to look for source files in; or NULL */
	bool no_sources;
	bool debuginfod;
};

/* The counts of some instructions or lines. */
struct tallies {
	int64_t *self;	/* number i's are self[i * value_count .. + value_count] */
	int64_t *total; /* of the first value: samples in whose stacks it is */

	uint64_t *last_stack; /* private to annotation.c */
};

struct annotation {
	const struct profile *p;
	uint32_t image;		     /* PROFILE_NONE: unknown */
	const char *function;	     /* its name, or NULL */
	struct symbol_extent extent; /* 0, 0: unknown */
	bool script;		     /* it has source lines alone */
	bool stacks;		     /* false: totals equal self */
	size_t *values;		     /* the numbers of the values that are counted */
	char **titles;		     /* of each: rows_title() */
	size_t value_count;
	int64_t samples; /* of the first value: in the function itself */
	int64_t total;	 /* the same: in it and its callees */
	/* Magnitudes of the same samples, and of all: what percentages are of */
	uint64_t samples_weight, total_weight;
	magnitude_sum all_samples;

	struct disassembly code; /* empty: it cannot be disassembled */
	struct error no_code;	 /* why */
	struct tallies code_counts;
	struct profile *code_places; /* its location i has the lines of instruction i; or NULL */

	struct source_lines lines;
	const struct profile *line_places; /* the profile of their locations: p or code_places */
	struct tallies line_counts;
	struct source_files files;
};

/*
 * Finds the function, disassembles it from its file on this machine, and counts. The profile must
 * have been resolved; its locations in the function can get lines, and its images' `unnamed` are
 * overwritten. Either code or source lines suffice. Returns 0, or a negative errno with e set; call
 * annotation_free() in any case.
 */
int annotation_make(struct annotation *a, struct profile *p, const struct annotation_options *o,
		    struct error *e);
void annotation_free(struct annotation *a);

/* True if no sample of any value is of an instruction or a line, by its number in the tallies. */
bool annotation_is_quiet(const struct annotation *a, const struct tallies *t, size_t number);

/* Prints a line, begun by `prefix`, for each reason why code or source lines are missing. */
void annotation_notes(const struct annotation *a, const char *prefix, FILE *out);

/* True if any source line is known. */
bool annotation_has_lines(const struct annotation *a);

#endif
