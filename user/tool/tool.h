/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOOL_H
#define PROFIL_TOOL_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#include "format/format.h"
#include "profile/profile.h"
#include "report/report.h"
#include "tool/options.h"
#include "util/error.h"

/* What every command shares. Exit codes are documented in profiltool(1) and never change. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_INCOMPLETE = 3,
	EXIT_NO_SAMPLES = 4,
	EXIT_NOT_PERMITTED = 5,
	EXIT_KERNEL_LACKS = 6,
};

struct tool_command {
	const char *name;
	const char *arguments; /* as in --help */
	const char *help;
	const struct option_spec *options;
	bool becomes_another; /* program, that is to get signals and descriptors as they come */
	/* argv[0] is the command's name. Returns an exit code. */
	int (*run)(int argc, char **argv);
};

extern const struct tool_command record_command, report_command, dump_command, convert_command,
	run_command;

/* The prefix of all that the tool says on standard error. */
#define TOOL_PREFIX "profiltool: "

/* Prints why something failed and how to mend it. Returns the exit code for it. */
int tool_fail(const struct error *e);

/* Prints a warning, one sentence. */
void tool_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Parses a command's options. Returns -1 to go on, or an exit code: after --help, whose text is
 * printed, or an error.
 */
int tool_options(const struct tool_command *command, void *values, int argc, char **argv, bool stop,
		 int *first);

void tool_help(const struct tool_command *command, FILE *out);

/* Reads a profile and passes its warnings on; with `strict` a warning is an error. */
int tool_read(const char *path, bool strict, struct profile **p, struct error *e);

/*
 * Gives the addresses of a profile that was read from `path` their names, as far as the images are
 * on this machine. Warns of an image that may not be the one that ran.
 */
int tool_resolve(struct profile *p, const char *path, struct error *e);

/*
 * The format of a file to write: the one of this name, else the one of the path's extension, else
 * pprof. NULL with e set: there is none of this name.
 */
const struct format *tool_output_format(const char *name, const char *path, struct error *e);

/* Whether a profile could be written there now, to be asked before work begins. */
int tool_check_output(const char *path, struct error *e);

/* Writes a profile to a file, or standard output for "-", whole or not at all. */
int tool_write(const struct profile *p, const struct format *format, const char *path,
	       struct error *e);

/* Prints the table, or JSON, on standard output. limit -1: as many rows as a terminal shows. */
int tool_print(const struct profile *p, bool json, long limit, struct error *e);

/*
 * Writes out standard output, before something else is said on standard error and at the end.
 * Returns 0 or the first error that printing met: a negative errno.
 */
int tool_flush(void);

/* Parser for the member `long limit` of -n. */
int tool_option_limit(const char *value, void *member, struct error *e);

#endif
