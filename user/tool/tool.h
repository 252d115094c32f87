/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOOL_H
#define PROFIL_TOOL_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#include "format/format.h"
#include "profile/filter.h"
#include "profile/profile.h"
#include "report/report.h"
#include "cli/options.h"
#include "tool/query.h"
#include "util/error.h"

/* Shared by all commands. Exit codes are documented in profiltool(1) and never change. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_INCOMPLETE = 3,
	EXIT_NO_SAMPLES = 4,
	EXIT_NOT_PERMITTED = 5,
	EXIT_KERNEL_LACKS = 6,
};

/* What one wants to do with a command. */
enum tool_purpose {
	TOOL_LOOK,
	TOOL_RECORD,
	TOOL_COMPARE,
	TOOL_EXCHANGE,
	TOOL_CHECK,
};

struct tool_command {
	const char *name;
	const char *arguments; /* as in --help */
	const char *help;
	enum tool_purpose purpose; /* the list of commands is in groups by it */
	const char *summary;	   /* in that list: 66 columns at most */
	const struct option_spec *options;
	const struct option_group *groups; /* of the options, if they are many; or NULL */
	bool records;			   /* it uses the capabilities of the program's file */
	bool becomes_another; /* it executes a program, which gets signals and descriptors as is */
	/* argv[0] is the command's name. Returns an exit code. */
	int (*run)(int argc, char **argv);
};

extern const struct tool_command record_command, report_command, dump_command, convert_command,
	annotate_command, diff_command, merge_command, run_command, check_command,
	flamegraph_command, top_command, snapshot_command, web_command, browse_command,
	changes_command, why_command;

/* The prefix of each line on standard error. */
#define TOOL_PREFIX "profiltool: "

/* The exit code for an error. */
int tool_exit_code(const struct error *e);

/* Prints an error and its hint. Returns the exit code for it. */
int tool_fail(const struct error *e);

/* The same of a mistake in usage: what is wrong, and a hint, which is no format. */
int tool_misuse(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like tool_fail(), for a recording that could not begin; also prints unmet requirements. */
int tool_refuse(const struct error *e);

/* Replaces the line of progress on standard error, a terminal, by this; "": by nothing. */
void tool_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a warning, one sentence. */
void tool_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Parses a command's options into `values`; stop and first as in options_parse(). Returns -1, or an
 * exit code if the command ends here: --help or an error was printed.
 */
int tool_options(const struct tool_command *command, void *values, int argc, char **argv, bool stop,
		 int *first);

/* Options that have no effect on a view, or with an input: a mistake if one of them is given. */
struct tool_ignored {
	bool applies;
	const char *what;    /* the view or input, as in "--percent is not for WHAT" */
	const char *options; /* their long names, separated by blanks */
	const char *hint;    /* what to do instead; NULL: leave it out */
};

/*
 * Fails if one of the options is given. argv and first: of tool_options(), which has accepted them.
 * Returns 0, or -EINVAL with e set.
 */
int tool_check_ignored(const struct tool_command *command, const struct tool_ignored *ignored,
		       size_t count, int first, char **argv, struct error *e);

/* How addresses are resolved to names: a member of a command's options. */
struct tool_naming {
	bool lines;	   /* resolve inlined functions and source lines */
	bool debuginfod;   /* ask debuginfod servers for files that are missing */
	const char *symfs; /* the root directory of images' paths; NULL: ours */
	bool quiet;	   /* print no progress, and no summary of profiles that are read */
};

/* Checks, before a recording, that names can be resolved. Returns 0 or -errno with e set. */
int tool_check_naming(const struct tool_naming *naming, struct error *e);

/*
 * Resolves the names of a profile's addresses, and prints its new warnings; shows progress on a
 * terminal when that takes long. stop (may be NULL) as in struct symbol_options. Returns 0 or
 * -errno with e set.
 */
int tool_name(struct profile *p, const struct tool_naming *naming, bool (*stop)(void *context),
	      void *context, struct error *e);

/* Options of the commands that read profiles: a member of each one's options. */
struct tool_reading {
	struct tool_naming naming;
	bool strict;		/* a warning is an error */
	bool no_drop_frames;	/* keep the frames that a pprof file wants excluded */
	const char *executable; /* the program, if the file does not name it; or NULL */
	const char *file;	/* value of -i, which not all commands have; or NULL */
	struct input_options input;
	struct tool_query query; /* of commands with TOOL_QUERY_OPTIONS; else empty */
};

/* clang-format off */
#define TOOL_READING_OPTIONS(type, member)                                                        \
	{ "executable", 0, "FILE", "the program, where the profile does not name it: gmon.out",        \
	  option_text, offsetof(type, member.executable) },                                        \
	{ "dcpi-stride", 0, "BYTES", "bytes of code for each count of a DCPI file: 1 or 4",        \
	  tool_option_stride, offsetof(type, member.input.stride) },                               \
	{ "debuginfod", 0, NULL, "fetch symbols that are not here from servers: DEBUGINFOD_URLS",  \
	  NULL, offsetof(type, member.naming.debuginfod) },                                        \
	{ "inline", 0, NULL, "resolve source lines and inlined functions",        \
	  NULL, offsetof(type, member.naming.lines) },                                             \
	{ "no-drop-frames", 0, NULL, "keep the frames that a pprof file wants excluded",            \
	  NULL, offsetof(type, member.no_drop_frames) },                                           \
	{ "quiet", 'q', NULL, "print no progress and no summary", NULL,                            \
	  offsetof(type, member.naming.quiet) },                                                   \
	{ "salvage", 0, NULL, "take what can be read of a file that is truncated or corrupt",      \
	  NULL, offsetof(type, member.input.salvage) },                                            \
	{ "symfs", 0, "DIRECTORY", "take the files that have names from below DIRECTORY",          \
	  option_text, offsetof(type, member.naming.symfs) },                                      \
	{ "strict", 0, NULL, "refuse a file that breaks a rule of its format", NULL,               \
	  offsetof(type, member.strict) }

#define TOOL_NO_TIMES_OPTION(offset)                                                              \
	{ "no-times", 0, NULL, "pprof: leave out when ticks came and waits were", NULL, offset }

#define TOOL_VALUE_OPTION(offset)                                                                 \
	{ "value", 0, "TYPE", "what to count, when there are several: an event, cpu, ...",         \
	  option_text, offset }

#define TOOL_INPUT_OPTION(type, member)                                                           \
	{ "input", 'i', "FILE", "read this profile: the same as FILE alone", option_text,          \
	  offsetof(type, member.file) }
/* clang-format on */

/* The name of an input file in messages: "standard input" for "-". */
const char *tool_input_name(const char *path);

/*
 * Reads a profile, prints its warnings, and keeps the samples that reading->query selects. Returns
 * 0 or -errno with e set.
 */
int tool_read_selected(const char *path, const struct tool_reading *reading, struct profile **p,
		       struct error *e);

/*
 * Reads `count` profiles, at least one, resolves names, because equal functions can be at different
 * addresses, and merges them. Warns of an image that may not be the one that ran. Returns 0 or
 * -errno with e set; *p is then NULL.
 */
int tool_read_all(char *const *paths, int count, const struct tool_reading *reading,
		  struct profile **p, struct error *e);

/* Two intervals of one profile or archive: [0] is what [1] is compared with. */
struct tool_two {
	struct profile *p[2];
	char names[2][QUERY_NAME_SIZE];
};

/*
 * Reads the interval of reading->query and what it is compared with: query_find_other(). Returns 0
 * or -errno with e set; both profiles are then NULL.
 */
int tool_read_two(char *path, const struct tool_reading *reading, const char *other,
		  const char *option, struct tool_two *two, struct error *e);

#define TOOL_LIST_SIZE 320 /* of texts that list the words of an option */

/* Writes words, of which some may be NULL: "on, off". */
void tool_list_words(const char *const *words, size_t count, char *text, size_t size);

/* Returns the number of the word that an option has as its value, or -EINVAL with e set. */
int tool_find_word(const char *option, const char *value, const char *const *words, size_t count,
		   struct error *e);

/* Writes the names of the formats that can be written: "pprof, gperftools". */
void tool_list_formats(char *text, size_t size);
void tool_list_kinds(char *text, size_t size); /* of rows of top */

/* True if an output is standard output, a pipe or a device: such a name implies no format. */
bool tool_is_unnamed(const char *path);

/*
 * Returns the format to write: by its name; without one by the path's name; pprof if the path is
 * NULL, a pipe or a device. NULL with e set: none has this name, or the path implies none.
 */
const struct format *tool_output_format(const char *name, const char *path, struct error *e);

/*
 * Returns the path, or if it is NULL the directory that the environment names for files of this
 * format (directory_variable), or NULL.
 */
const char *tool_output_place(const char *name, const char *path);

/* The files that a command reads. */
struct tool_inputs {
	char *const *paths;
	int count; /* 0: nothing was named */
	char *one[1];
};

/*
 * Takes the files of the command line; if there are none, the archive if `query` (may be NULL)
 * needs it, else the directory that the environment names for files of a format. `in` points into
 * itself: do not copy it.
 */
void tool_find_inputs(char *const *paths, int count, const struct tool_query *query,
		      struct tool_inputs *in);

/* True if tool_find_inputs() finds an input if there are no files. */
bool tool_has_default_input(const struct tool_query *query);

/* Like tool_find_inputs(), for commands with -i. -EINVAL with e set: both -i and files. */
int tool_find_input(const struct tool_reading *reading, char *const *paths, int count,
		    struct tool_inputs *in, struct error *e);

/* Checks, before work begins, that the output can be written. Returns 0 or -errno with e set. */
int tool_check_output(const struct format *format, const char *path, struct error *e);

/*
 * Returns the first input that is the output or lies in it, or NULL. Compares files, not names;
 * ignores outputs that are standard output, a pipe or a device.
 */
const char *tool_find_in_output(char *const *paths, int count, const char *out);

/*
 * Writes a profile to a file, to standard output for "-", or to a directory if the format has one
 * file per image; whole or not at all. Returns 0 or -errno with e set: it names the output.
 */
int tool_write(const struct profile *p, const struct format *format,
	       const struct format_options *options, const char *path, struct error *e);

/*
 * Warns of parts of a profile that the format of the written file cannot hold: those of `aspects`
 * (format/loss.h), unless `quiet`; and of dropped samples and calls. True if sums below 0 are
 * dropped: the file is incomplete.
 */
bool tool_warn_of_loss(const struct profile *p, unsigned int aspects, const struct format *format,
		       const struct format_options *options, const char *path, bool quiet);

/* Fails if --no-times would have no effect on a format. Returns 0, or -EINVAL with e set. */
int tool_check_no_times(const struct format *format, struct error *e);

/* Arguments of tool_rewrite(), with which convert, merge and snapshot write a file. */
struct tool_rewrite {
	char *const *in;
	int count;
	const char *out;
	const char *format; /* NULL: by out's name */
	const struct tool_reading *reading;
	struct format_options writing;
};

/* Reads, names and merges profiles and writes the result. Returns an exit code. */
int tool_rewrite(const struct tool_rewrite *r);

/*
 * Warns that profiles have no samples of a value, or none that the query selects, unless a filter
 * (or NULL) took them. Returns the exit code.
 */
int tool_no_samples(const struct profile *p, const char *value,
		    const struct profile_filtered *filtered, const struct tool_query *query,
		    char *const *paths, int count);

/* The exit code of a command that succeeded: EXIT_INCOMPLETE if the profile was salvaged. */
int tool_done(const struct profile *p);

/* Options of the commands that print tables: a member of each one's options. */
struct tool_view {
	struct rows_options rows;
	uint64_t step_ns;      /* --by time: the length of rows; 0: chosen */
	long limit;	       /* rows; -1: as many as a terminal shows */
	struct row_view label; /* --by NAME: what rows.view points to */
	double percent;	       /* rows below it are not printed; negative: the view's default */
	bool json;
	bool last;     /* tool_table_is_last(): rows fill what messages left of the screen */
	bool cpu_time; /* columns of it also where rows are code */
};

/* clang-format off */
#define TOOL_VIEW_OPTIONS(type, member)                                                           \
	{ "by", 0, "FIELD", "what rows are each (function), or a label; time:100ms: slots of time", \
	  tool_option_by, offsetof(type, member) },                                                \
	{ "by-image", 0, NULL, "the same as --by image", tool_option_by_image,                     \
	  offsetof(type, member) },                                                                \
	{ "image", 'd', "IMAGE", "only what lies in this file: its path or base name",             \
	  option_text, offsetof(type, member.rows.image) },                                        \
	TOOL_VALUE_OPTION(offsetof(type, member.rows.value)),                                      \
	{ "limit", 'E', "ROWS", "print the first ROWS rows; 0: all", tool_option_limit,            \
	  offsetof(type, member.limit) },                                                          \
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(type, member.json) }
/* clang-format on */

/*
 * Returns the view for perf's --sort KEY[,KEY...]: "comm", "dso", "sym", "comm,dso,sym", ...; NULL:
 * there is no such view. TOOL_SORT_KEYS lists the keys in messages.
 */
const struct row_view *tool_view_of_keys(const char *keys);

#define TOOL_SORT_KEYS "comm, dso, sym, srcline, srcfile, pid or tid"

/* clang-format off */
#define TOOL_WAIT_OPTIONS(type, member)                                                           \
	{ "state", 0, "STATE", "with waits: only time in this state; repeatable",                  \
	  tool_option_state, offsetof(type, member.states) },                                      \
	{ "reason", 0, "REASON", "with waits: only those for this",                                \
	  tool_option_reason, offsetof(type, member.reason) },                                     \
	{ "idle", 0, "show|hide", "with waits: whether to show those for work", tool_option_idle,  \
	  offsetof(type, member.hide_idle) }

#define TOOL_FILTER_OPTIONS(type, member)                                                         \
	{ "focus", 0, "REGEX", "only samples with a function in their stack that matches",         \
	  option_text, offsetof(type, member.focus) },                                             \
	{ "ignore", 0, "REGEX", "no samples with a function in their stack that matches",          \
	  option_text, offsetof(type, member.ignore) },                                            \
	TOOL_WAIT_OPTIONS(type, member)
/* clang-format on */

/*
 * Returns 0; or -ENOENT with e set if the filter chooses states or reasons, and the profile has no
 * waits.
 */
int tool_check_waits(const struct profile *p, const struct profile_filter *filter, struct error *e);

/*
 * Filters by --focus and the like with profile_filter(), and prints the share that is kept. Where
 * states are chosen, their time is the value that is shown unless `value` asks for another.
 */
int tool_filter(struct profile *p, const struct profile_filter *filter, const char *value,
		struct profile_filtered *filtered, struct error *e);

/* Parsers for the types of members that are named. */
option_parser tool_option_stride;		     /* unsigned int: 1 or 4 */
option_parser tool_option_by, tool_option_by_image;  /* struct tool_view: a view, or time:LENGTH */
option_parser tool_option_state, tool_option_reason; /* unsigned int; const char * */
option_parser tool_option_idle;			     /* bool hide_idle */
option_parser tool_option_percent;		     /* double */
option_parser tool_option_limit;		     /* long: -E */
option_parser tool_option_directory;		     /* const char *: a directory that exists */

/* Checks that a profile has the value type of --value (may be NULL). Returns 0 or -ENOENT. */
int tool_check_value(const struct profile *p, const char *type, struct error *e);

/* Makes the time of threads the value that is shown if --value is not given; if there is any. */
void tool_show_wall(struct profile *p);

/* Checks that samples have the tag of --by (view: may be NULL). Returns 0 or -ENOENT. */
int tool_check_tag(const struct profile *p, const struct row_view *view, struct error *e);

/* True if a profile has the image of --image; NULL means all. */
bool tool_has_image(const struct profile *p, const char *image);

/* Sets e: there is no such image. Returns -ENOENT. */
int tool_no_image(const char *image, struct error *e);

/*
 * Looks up where functions begin, if rows are addresses. The caller frees *extents, after the last
 * use of view->rows, in any case. Returns 0 or -errno with e set.
 */
int tool_find_extents(struct profile *p, struct tool_view *view, struct symbol_extent **extents,
		      struct error *e);

/*
 * Prints the summary of a profile on standard error: in brief on a terminal, unless `verbose`, else
 * all of it, because who reads a file later cannot ask again. rows: the value and filters of the
 * table. target: as in report_summary(). after: receives what is to be printed behind the table
 * that follows, to be free()d; NULL: none follows, and what answers is last. See report_brief().
 * Returns 0 or -errno with e set.
 */
int tool_summarize(const struct profile *p, const struct rows_options *rows, const char *target,
		   bool verbose, char **after, struct error *e);

/*
 * True if the table is for a person at a terminal: all else is printed before it, so that it stays
 * on the screen.
 */
bool tool_table_is_last(const struct tool_view *view);

/* The options of a table on standard output. */
struct report_table_options tool_table_options(const struct tool_view *view);

/* Prints the table, or JSON, on standard output. Returns 0 or -errno with e set. */
int tool_print(const struct profile *p, const struct tool_view *view, struct error *e);

/*
 * Flushes standard output: before anything is printed on standard error, and at the end. Returns 0,
 * or a negative errno: the first error of printing.
 */
int tool_flush(void);

#endif
