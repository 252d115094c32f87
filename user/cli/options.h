/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CLI_OPTIONS_H
#define PROFIL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "util/error.h"

/*
 * Stores the value of an option at `member`; value is NULL when an option that can do without one
 * has none. Returns 0, or -EINVAL with e set to why the value is invalid.
 */
typedef int option_parser(const char *value, void *member, struct error *e);

/* One option of a command: drives parsing and --help. A table of them ends with a NULL name. */
struct option_spec {
	const char *name; /* long, without dashes */
	char letter;	  /* short; 0: none */
	/* The name of its value in --help: VALUE, or [=VALUE] if it is optional. */
	const char *metavar;  /* NULL: it takes none */
	const char *help;     /* NULL: not in --help */
	option_parser *parse; /* NULL: the member is a bool and becomes true */
	size_t offset;	      /* of the member, in the command's options */
};

/*
 * Parses argv into `values`. Options and other arguments may be mixed, unless `stop` says that
 * the first other argument begins a command of its own. *first receives the number in argv (which
 * is reordered) of the first argument that is no option. --help sets *help and ends parsing.
 * Returns 0, or a negative errno with e set: its hint may be empty.
 */
int options_parse(const struct option_spec *specs, void *values, int argc, char **argv, bool stop,
		  int *first, bool *help, struct error *e);

/*
 * Returns the first of `names`, separated by blanks, that is an option in argv up to number
 * `first`, after options_parse() has accepted it; or NULL.
 */
const char *options_given(const struct option_spec *specs, const char *names, int first,
			  char **argv);

/*
 * Reads options from a file, with one on each line, as on the command line: --NAME VALUE,
 * --NAME=VALUE or -L VALUE. A value is the rest of the line, and may be in quotes. Empty lines are
 * ignored, and "#" begins a comment at the start of a word. refused: names of options that are for
 * the command line alone, the last one NULL. *text receives the memory that values
 * point into; the caller frees it after them, in any case. Returns 0, or a negative errno with e
 * set: it names the file and the line.
 */
int options_read(const struct option_spec *specs, const char *const *refused, void *values,
		 const char *path, char **text, struct error *e);

#define HELP_WIDTH 80 /* columns of --help */

/* A title in --help, before the option `first`. A table of them ends with a NULL title. */
struct option_group {
	const char *first;
	const char *title;
};

/*
 * Prints the options as in --help: one line each, and more where the text wraps. groups: NULL:
 * none.
 */
void options_print(const struct option_spec *specs, const struct option_group *groups, FILE *out);

option_parser option_text; /* const char * */
/* --unwind-memory of record, top and profild: unsigned int, in MiB */
option_parser option_unwind_memory;

/* Finds the word that was meant by one that is unknown. */
struct similar {
	const char *word; /* the unknown one */
	char best[64];	  /* the most similar offered word; "": none is similar */
	size_t fewest;	  /* private */
};

struct similar similar_to(const char *word);

/*
 * Takes a candidate, and returns true, if it is the best so far: with at most two mistakes, and at
 * most one for every two letters of the unknown word.
 */
bool similar_offer(struct similar *s, const char *candidate);

#endif
