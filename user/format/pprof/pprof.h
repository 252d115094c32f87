/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PPROF_H
#define PROFIL_FORMAT_PPROF_H

#include "format/format.h"

/* pprof's profile.proto: see the messages there. */
extern const struct format format_pprof;
#define PPROF_NAME "pprof"

/* The numbers of Profile's fields, which are read and written one by one. */
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
	PPROF_FIELD_UNKNOWN = 16, /* from here on; its tag is no ASCII */
};

/*
 * What a profile has no place for is kept as extras (struct profile_extra). Their first byte says
 * what they are; but for the last, text follows.
 */
enum pprof_extra {
	EXTRA_DEFAULT_TYPE = 'd', /* Profile.default_sample_type, where no value is of this type */
	EXTRA_DROP_FRAMES = 'f',
	EXTRA_KEEP_FRAMES = 'k',
	EXTRA_DOC_URL = 'u',
	EXTRA_PERIOD = 'p',	/* "NUMBER UNIT TYPE", where it is no period of a value in memory */
	EXTRA_THREAD_KEY = 't', /* the key of the labels that name threads, when it is not comm */
	EXTRA_BUILD_ID = 'b',	/* of an image, when it is not in hex */
	EXTRA_RELOCATION = 'r', /* of the kernel's image: the symbol that its name ends in */
	EXTRA_UNKNOWN = '?',	/* Profile's fields from PPROF_FIELD_UNKNOWN on, as they came */
};

/* The label that names a thread: the second is what some write in place of the first. */
#define PPROF_COMM   "comm"
#define PPROF_THREAD "thread"

/* A function whose name the file leaves empty, as Go's runtime does where a stack is not known. */
#define PPROF_NO_NAME "??"

/* Its mapping has addresses in the image's own numbering, by what pprof takes it for, too. */
static inline bool pprof_is_whole(uint64_t start, uint64_t limit, uint64_t offset)
{
	return start == 0 && limit == UINT64_MAX && offset == 0;
}

/* How many nanoseconds the unit has: 0 when it is none of time. pprof_value.c */
uint64_t pprof_unit_ns(const char *unit);

/*
 * The number of the value that a file without a default_sample_type is to show: as pprof, the last.
 * But what was recorded here shows samples, and so does a file whose last value is nothing but the
 * time of its samples. There is one, at least. pprof_value.c
 */
size_t pprof_default_value(const struct profile *p);

/* pprof_write.c */
int pprof_write(const struct profile *p, const struct format_options *options, FILE *out,
		struct error *e);

/*
 * pprof_comment.c: what profile.proto has no fields for travels as comments "profil:KEY=VALUE".
 */

/* Called with each comment that is to be written. Returns 0 or -errno. */
typedef int pprof_comment(void *context, const char *text);

/* All but the period of value type `period_type`, which has a field. */
int pprof_comment_write(const struct profile *p, size_t period_type, pprof_comment *comment,
			void *context);

/* Takes a comment back; value types have been read. Returns 1 if it was ours, 0 or -ENOMEM. */
int pprof_comment_read(struct profile *p, const char *text);

#endif
