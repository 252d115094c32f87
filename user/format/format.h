/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FORMAT_H
#define PROFIL_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "format/input_file.h"
#include "profile/profile.h"
#include "util/error.h"

/*
 * What a profile can hold besides counts; each format keeps some of it. X(ASPECT, what it is called
 * where a format does not keep it)
 */
#define FORMAT_ASPECTS(X)                                                                     \
	X(ADDRESSES, "addresses")	/* pcs, at least as addresses in their image */       \
	X(STACKS, "call stacks")	/* frames beyond the leaf */                          \
	X(NAMES, "names")		/* function names */                                  \
	X(LINES, "source lines")	/* source files and line numbers */                   \
	X(INLINED, "inlined functions") /* inlined functions */                               \
	X(IMAGES, "images")		/* the image of each pc */                            \
	X(MAPPINGS, "mappings")		/* the address range of each image in memory */       \
	X(BUILD_IDS, "build IDs")                                                             \
	X(THREADS, "processes and threads") /* PIDs, TIDs and thread names */                 \
	X(MODE, "the CPU mode of ticks")    /* kernel or user mode of each sample */          \
	X(LABEL, "the label")		    /* the text of PROFILE_LABEL_KEY */               \
	X(TAGS, "labels")		    /* other labels */                                \
	X(VALUES, "more than one value")    /* several values for each sample */              \
	X(DELAY, "the delay")	/* beside them: for how long threads waited for the CPU */    \
	X(CALLS, "call counts") /* call counts of caller and callee */                        \
	X(COSTS, "inclusive costs of calls") /* inclusive costs of calls */                   \
	X(JUMPS, "jumps")                                                                     \
	X(EVENT, "the event")			/* name of the clock or event */              \
	X(PERIOD, "the period")			/* as time */                                 \
	X(EVENT_PERIOD, "the period in events") /* as a number of events */                   \
	X(TIME, "the start time")		/* start of the recording */                  \
	X(TICK_TIMES, "the times of ticks and waits")                                         \
	X(DURATION, "the duration")                                                           \
	X(HOST, "the host")                                                                   \
	X(COMMAND, "the command")                                                             \
	X(WALL, "wall times")		       /* the wall times of threads */                \
	X(ACCOUNT, "the account of ticks")     /* totals: ticks by outcome, lost ones too */  \
	X(COUNTERS, "the rest of the account") /* of the account: those that are not basic */ \
	X(COMMENTS, "comments")

enum format_aspect {
#define ASPECT_NUMBER(aspect, name) ASPECT_##aspect,
	FORMAT_ASPECTS(ASPECT_NUMBER)
#undef ASPECT_NUMBER
	ASPECT_COUNT
};

#define KEEPS(aspect) (1U << ASPECT_##aspect)

/* How to write a file. Zero-initialised: the defaults. */
struct format_options {
	const char *value; /* to be shown, or kept where there is room for one: profile_value() */
	bool instr_positions; /* Callgrind: instruction addresses beside source lines */
	bool no_times;	      /* pprof: without the times of ticks */
	bool utf8;	      /* pprof: texts have a replacement character for what is not UTF-8 */
};

/* Samples that a format with a file for each image cannot hold. */
struct format_dropped {
	uint64_t samples;
	const char *image; /* the first one's path, owned by the profile */
	bool others;	   /* they are of several images */
};

/*
 * One file format. read and detect are NULL in a format that is only written, write and
 * write_directory in one that is only read. A format with one file for each image has
 * write_directory instead of write.
 */
struct format {
	const char *name;	       /* argument of -f */
	const char *const *extensions; /* ".pb.gz", ...; ends with NULL */
	const char *const *files;      /* beginnings of file names; ends with NULL; or NULL: none */
	bool is_signed;		       /* it holds values below 0 */
	unsigned int keeps;	       /* what it can hold: KEEPS(aspect) | ... */
	unsigned int depth_max;	       /* frames of a stack that it can hold; 0: all */
	unsigned int cell;	       /* its addresses are multiples of this; 0: any */
	bool is_text;		       /* may be printed on a terminal */
	bool is_gzip;		       /* write() compresses */
	const char *directory_variable; /* environment variable with its directory; or NULL */
	bool streams;			/* read() extends the window itself, by input_need() */

	/*
	 * Whether the input is in this format, judged by the window: the first INPUT_WINDOW bytes,
	 * or the whole file when it is smaller.
	 */
	bool (*detect)(const struct input *in);

	/*
	 * Fills an empty profile. Unless the format streams, the whole input is in the window.
	 * Deviations that real writers have and other readers accept get a profile_warn().
	 * Corrupt input is an error that names path, offset or line, and reason; the profile then
	 * holds what was read before, and is valid. Returns 0 or -errno with e set; but for
	 * -ENOMEM, which the caller sets it to. Memory is at most proportional to the input's size;
	 * in a format that streams, to its distinct stacks.
	 */
	int (*read)(struct input *in, struct profile *p, struct error *e);

	/*
	 * Writes to a stream. Returns 0 or -errno with e set; the caller flushes and checks out.
	 * All writers take what projection_make() has made of a profile: they skip values that they
	 * cannot hold, as of samples whose sums are 0.
	 */
	int (*write)(const struct profile *p, const struct format_options *options, FILE *out,
		     struct error *e);

	/*
	 * How many samples and calls write() drops since the format cannot hold them, and which
	 * ones, in words. NULL: it drops none.
	 */
	uint64_t (*dropped_samples)(const struct profile *p, const struct format_options *options);
	const char *cannot_hold;
	uint64_t (*dropped_calls)(const struct profile *p);
	const char *cannot_hold_calls;

	/*
	 * Which samples of single images write_directory() drops since the format cannot hold
	 * them, and which ones, in words. NULL: it drops none.
	 */
	void (*dropped_images)(const struct profile *p, struct format_dropped *dropped);
	const char *cannot_hold_in_image;

	/*
	 * Writes files below the directory `path`, which it creates if need be: all or none. With
	 * a path that format_names_file() accepts, writes that one file.
	 */
	int (*write_directory)(const struct profile *p, const struct format_options *options,
			       const char *path, struct error *e);
};

/* The format with this name, or NULL. */
const struct format *format_by_name(const char *name);

/* The first format that has the path's extension, or NULL. */
const struct format *format_by_extension(const char *path);

/* The same; if there is none, the first that format_names_file() accepts; or NULL. */
const struct format *format_by_path(const char *path);

/*
 * The format of an input, by its beginning, and for text that may be several, by its name; else a
 * text format, by its name; or NULL.
 */
const struct format *format_detect(const struct input *in);

/* What a file's name says */

#define FORMAT_GZIP ".gz"

/* Whether the path ends in FORMAT_GZIP. */
bool format_is_gzip_path(const char *path);

/* Whether the last part of the path begins with one of format->files: callgrind.out.PID. */
bool format_names_file(const struct format *format, const char *path);

/* Either of these two. */
bool format_matches_path(const struct format *format, const char *path);

/* All formats, for help texts; ends with NULL. */
extern const struct format *const format_all[];
extern const struct format format_callgrind, format_firefox, format_folded, format_gmon,
	format_gperftools, format_otlp, format_perf, format_perf_script, format_pprof,
	format_speedscope;

/*
 * read.c: reads a profile of any format, found by content; "-" is standard input. Inflates gzip.
 * With options->salvage, what was read before an error is a profile, too, with a warning. options
 * may be NULL.
 *
 * Of a directory, reads all profiles in it and below, in the order of their paths, and merges them.
 * A file that is not a profile is skipped, with a warning, and so is a profile that is corrupt, and
 * what cannot be read: the sum then counts as salvaged. Profiles of several hosts are added up,
 * with a warning. Symbolic links are not followed. A directory without a profile is an error.
 *
 * Returns 0 or -errno with e set. On success *p is the caller's to profile_free().
 */
int format_read(const char *path, const struct input_options *options, struct profile **p,
		struct error *e);

/*
 * JSON may have long metadata before what says of which kind it is, and headers many unknown lines:
 * so much is searched.
 */
#define FOREIGN_WINDOW ((size_t)1 << 20)

/* A kind of file that users give as a profile, and that no reader here supports. */
struct foreign {
	const char *what; /* "a recording of perf" */
	/* How to get a profile from such a file; "%s" stands for its path. Empty: no way. */
	const char *hint;
};

/* The kind of the file, judged by the window; NULL: none of these. */
const struct foreign *foreign_detect(const struct input *in);

#endif
