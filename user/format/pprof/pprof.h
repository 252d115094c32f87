/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PPROF_H
#define PROFIL_FORMAT_PPROF_H

#include "format/format.h"

/* pprof's profile.proto, gzipped: profile.proto describes the messages. */
#define PPROF_NAME "pprof"

/* Field numbers of the message Profile, whose fields are read and written one by one. */
enum pprof_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING_TABLE = 6,
	PPROF_DROP_FRAMES = 7,
	PPROF_KEEP_FRAMES = 8,
	PPROF_TIME_NANOS = 9,
	PPROF_DURATION_NANOS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
	PPROF_DEFAULT_SAMPLE_TYPE = 14,
	PPROF_DOC_URL = 15,
	PPROF_FIELD_UNKNOWN = 16, /* and above; their tags are not ASCII */
	PPROF_TICKS = 1001,	  /* of profiltool alone, and so are the next */
	PPROF_WALL = 1002,
	PPROF_WAITS = 1003,
	PPROF_CALLS = 1004,
};

/*
 * What struct profile cannot represent is kept as extras (struct profile_extra). The first byte of
 * an extra is its kind; text follows, except for EXTRA_UNKNOWN.
 */
enum pprof_extra {
	EXTRA_DEFAULT_TYPE = 'd', /* Profile.default_sample_type that is not in sample_type */
	EXTRA_DOC_URL = 'u',
	EXTRA_PERIOD = 'p',	/* NUMBER NUL TYPE NUL UNIT: a period of none of the value types */
	EXTRA_THREAD_KEY = 't', /* key of labels that name threads, if it is not PPROF_COMM */
	EXTRA_BUILD_ID = 'b',	/* of an image, if it is not hexadecimal */
	EXTRA_RELOCATION = 'r', /* of the kernel's image: the symbol at the end of its name */
	EXTRA_UNKNOWN = '?',	/* bytes of Profile's fields from PPROF_FIELD_UNKNOWN on */
};

/* Keys of the label that names a thread; some writers use PPROF_THREAD. */
#define PPROF_COMM	 "comm"
#define PPROF_GENERATION "pid_generation"
#define PPROF_THREAD	 "thread"

/* Name of functions without one in the file: Go's runtime writes them for unknown stacks. */
#define PPROF_NO_NAME "??"

/* True if a mapping covers all addresses: it is in the image's own numbering, for pprof as well. */
static inline bool pprof_is_whole(uint64_t start, uint64_t limit, uint64_t offset)
{
	return start == 0 && limit == UINT64_MAX && offset == 0;
}

/* Returns the nanoseconds in a unit of time; 0: it is another unit. */
uint64_t pprof_unit_ns(const char *unit);

/*
 * The value type to be shown of a file without default_sample_type: the last, as in pprof, that is
 * not 0 in all samples, since some writers list all values that they could have measured; but for
 * recordings of profiltool, and files where that is the time of their samples, the samples. The
 * profile has at least one value type.
 */
size_t pprof_default_value(const struct profile *p);

/* pprof_write.c */
int pprof_write(const struct profile *p, const struct format_options *options, FILE *out,
		struct error *e);

/* pprof_comment.c: comments "profil:KEY=VALUE" hold what profile.proto has no fields for. */

/* Writes a comment; `text` is valid during the call. Returns 0 or -errno. */
typedef int pprof_comment(void *context, const char *text);

/*
 * Calls comment() for each, except for the period of value type `period_type`, which has a field.
 * Returns 0, -ENOMEM or the first error of comment().
 */
int pprof_comment_write(const struct profile *p, size_t period_type, pprof_comment *comment,
			void *context);

/*
 * Sets the member of p that the comment is about; *taken: whether it is such a comment. The value
 * types have been read before. Returns 0 or -ENOMEM.
 */
int pprof_comment_read(struct profile *p, const char *text, bool *taken);

#endif
