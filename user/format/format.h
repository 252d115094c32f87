/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FORMAT_H
#define PROFIL_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/input_file.h"
#include "profile/profile.h"
#include "util/error.h"

/* What a profile can hold besides counts, and a format can keep or not. */
enum format_aspect {
	ASPECT_ADDRESSES, /* of pcs, at least in their image */
	ASPECT_STACKS,	  /* more than the leaf */
	ASPECT_NAMES,	  /* of functions */
	ASPECT_LINES,	  /* source files and line numbers */
	ASPECT_INLINED,	  /* the functions inlined at a pc */
	ASPECT_IMAGES,	  /* which file a pc lies in */
	ASPECT_MAPPINGS,  /* where images stood in memory */
	ASPECT_BUILD_IDS,
	ASPECT_THREADS, /* processes, threads and their names */
	ASPECT_MODE,	/* which ticks came in the kernel */
	ASPECT_LABEL,	/* the one that dcpilabel(1) gives */
	ASPECT_TAGS,	/* other labels */
	ASPECT_VALUES,	/* several values for each sample */
	ASPECT_CALLS,	/* how often functions called each other */
	ASPECT_COSTS,	/* what was spent in calls */
	ASPECT_JUMPS,
	ASPECT_EVENT, /* the clock or event */
	ASPECT_PERIOD,
	ASPECT_EVENT_PERIOD, /* in events, where it is no time */
	ASPECT_TIME,	     /* when it was recorded */
	ASPECT_DURATION,
	ASPECT_HOST,
	ASPECT_COMMAND,
	ASPECT_ACCOUNT, /* of all ticks, lost ones too */
	ASPECT_COMMENTS,
	ASPECT_COUNT
};

#define KEEPS(aspect) (1U << ASPECT_##aspect)

/* How a file is to be written. */
struct format_options {
	bool instr_positions; /* Callgrind: addresses of instructions beside source lines */
};

/*
 * One file format. Some go one way only: read, or write and write_directory, may be NULL. One that
 * has a file for each image has write_directory in place of write.
 */
struct format {
	const char *name;	       /* what -f takes */
	const char *const *extensions; /* ".pb.gz", ...; ends with NULL */
	const char *const *files; /* what names of its files begin with; ends with NULL; or NULL */
	unsigned int keeps;	  /* KEEPS(aspect) | ... */
	bool is_text;		  /* it may go to a terminal */
	bool is_gzip;		  /* what write() makes */
	const char *place; /* the environment variable with the directory of its files; or NULL */
	bool streams;	   /* read() asks for more of the input itself */

	/*
	 * Whether the file is of this format, from its beginning: INPUT_WINDOW bytes, or all of
	 * it when it is smaller.
	 */
	bool (*detect)(const struct input *in);

	/*
	 * Fills an empty profile. What real writers get wrong and other readers take is
	 * overlooked, with profile_warn(). Corrupt is an error: path, offset or line, reason.
	 * What was read until then is left in the profile, which is whole in itself.
	 * Uses memory in proportion to the input's size at most; one that streams, in proportion
	 * to what is distinct in it. The whole input is in the window when it does not stream.
	 */
	int (*read)(struct input *in, struct profile *p, struct error *e);

	/* The profile is not changed. The caller checks the stream for write errors. */
	int (*write)(const struct profile *p, const struct format_options *options, FILE *out,
		     struct error *e);

	/*
	 * What the format has no place for, and leaves out: samples of which frames, and calls of
	 * which kind, in words. NULL: it leaves out none.
	 */
	uint64_t (*samples_left_out)(const struct profile *p);
	const char *no_place_for;
	uint64_t (*calls_left_out)(const struct profile *p);
	const char *no_place_for_calls;

	/*
	 * Writes files below a directory, which is made when it is not there: all or none. One
	 * file, when the path is named as one.
	 */
	int (*write_directory)(const struct profile *p, const struct format_options *options,
			       const char *path, struct error *e);
};

/* The format of this name, or NULL. */
const struct format *format_by_name(const char *name);

/* The first format that the path's name matches, or NULL. */
const struct format *format_by_path(const char *path);

/* The format of an input, by its beginning; for text that no format claims, by its name. Or NULL.
 */
const struct format *format_detect(const struct input *in);

/* file_name.c: what a file's name says */

#define FORMAT_GZIP ".gz"

/* Whether the path ends in FORMAT_GZIP. */
bool format_is_gzip_path(const char *path);

/* Whether the last part of the path begins with one of format->files: callgrind.out.PID. */
bool format_names_file(const struct format *format, const char *path);

/* The same, or the path ends in an extension of the format, perhaps with FORMAT_GZIP behind it. */
bool format_matches_path(const struct format *format, const char *path);

/* All formats, for help texts; ends with NULL. */
extern const struct format *const format_all[];

/*
 * read.c: reads a profile of any format, found by content; "-" is standard input. Inflates gzip.
 * With options->salvage, what was read before an error is a profile, too, with a warning. options
 * may be NULL.
 *
 * Of a directory, reads all profiles in it and below, in the order of their paths, and merges them.
 * A file that is not a profile is skipped, with a warning, and so is a profile that is corrupt: the
 * sum then counts as salvaged. Profiles of several hosts are added up, with a warning. Symbolic
 * links are not followed. A directory without a profile is an error.
 *
 * Returns 0 or -errno with e set. On success *p is the caller's to profile_free().
 */
int format_read(const char *path, const struct input_options *options, struct profile **p,
		struct error *e);

#endif
