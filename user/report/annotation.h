/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ANNOTATION_H
#define PROFIL_REPORT_ANNOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "profile/profile.h"
#include "report/disassembly.h"
#include "symbol/symbol.h"
#include "util/error.h"
#include "util/index.h"

/*
 * The texts of source files. Debug information can name anything, so only regular files are opened,
 * and the size of all together is limited.
 */

/* Bound: files: bytes of source files in one report; then: further ones are not shown. */
#define SOURCE_FILES_MAX (64 << 20) /* bytes */

struct source_file {
	const char *name; /* as in debug information; the caller's */
	char *text;	  /* NULL: it was not found, or cannot be read */
	const char **lines;
	size_t line_count;
	bool is_private; /* not all may read it, and root did not */
	bool too_large;	 /* with it, all together would be more than SOURCE_FILES_MAX */
	time_t mtime;
};

struct source_files {
	const char *directory; /* where else to look for files; or NULL */
	char *own_directory;   /* source_files_trust(); or NULL */
	int root;	       /* the names are of this root directory, if has_root; owned */
	bool has_root;
	struct source_file **files;
	size_t count, room;
	size_t bytes; /* of all texts */
	struct index index;
};

/*
 * Stores the file of this name in *file, which source_files_free() frees. It is read the first
 * time: at its name, else in the directory, at as many of the name's last components as exist
 * there. At its name alone, root reads only what all users may read by that name: a profile, or a
 * user's program, can name any file. Returns 0, also if it cannot be read, or -ENOMEM.
 */
int source_files_find(struct source_files *s, const char *name, const struct source_file **file);
void source_files_free(struct source_files *s);

/* The text of a line, counted from 1, or NULL. */
const char *source_file_line(const struct source_file *f, uint64_t number);

/* A function's instructions and source lines, and the samples of each. */

struct annotation_options {
	const char *function;	 /* as in function_search() */
	const char *image;	 /* the same */
	const char *value;	 /* the same */
	const char *source_path; /* a directory to look for source files in; or NULL */
	bool no_sources;
	bool debuginfod;
};

struct source_line {
	const char *file; /* of the function itself, not of what is inlined; "": unknown */
	uint32_t number;  /* 0: unknown */
	/* Not NULL: only the part of the line that is in this function, which is inlined there */
	const char *inlined;
	const char *inlined_file;
	uint32_t inlined_number;
};

struct source_lines {
	/* By file, the function's own first, then by number; parts after their line. */
	struct source_line *lines;
	size_t count;
	uint32_t *own;	   /* of each location its line; PROFILE_NONE: not a location of these */
	uint32_t *inlined; /* of each location its part of that line; or PROFILE_NONE */
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

/* The line of a location in the function itself: where that calls what is inlined there, if any. */
struct source_line source_line_of(const struct profile *p, uint32_t location);

/* The same with the innermost function that is inlined there, if any. */
struct source_line source_line_inlined(const struct profile *p, uint32_t location);

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
