/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PPROF_H
#define PROFIL_FORMAT_PPROF_H

#include "format/format.h"

/* pprof's profile.proto: see the messages there. */
extern const struct format format_pprof;

/* The numbers of Profile's fields, which are read and written one by one. */
enum pprof_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING_TABLE = 6,
	PPROF_TIME_NANOS = 9,
	PPROF_DURATION_NANOS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
	PPROF_DEFAULT_SAMPLE_TYPE = 14,
	PPROF_FIELD_UNKNOWN = 16, /* from here on; its tag is no ASCII */
};

enum pprof_wire {
	PPROF_VARINT = 0,
	PPROF_FIXED64 = 1,
	PPROF_BYTES = 2,
	PPROF_FIXED32 = 5
};

/* pprof_write.c */
int pprof_write(const struct profile *p, FILE *out, struct error *e);

/*
 * pprof_account.c: the account of the recording, which profile.proto has no fields for, travels
 * as comments "profil:KEY=VALUE".
 */

/* Called with each comment that is to be written. Returns 0 or -errno. */
typedef int pprof_comment(void *context, const char *text);
int pprof_account_write(const struct profile *p, pprof_comment *comment, void *context);

/* Takes a comment back. Returns 1 if it was one of these, 0 if not, or -ENOMEM. */
int pprof_account_read(struct profile *p, const char *text);

#endif
