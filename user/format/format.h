/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FORMAT_H
#define PROFIL_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"
#include "util/error.h"

/* A file in memory, already inflated when it was gzip. */
struct input {
	const char *path; /* for messages */
	const uint8_t *bytes;
	size_t size;
	bool inflated; /* it was gzip: offsets are not those of the file on disk */
};

/*
 * Sets "PATH: at byte OFFSET: " and the reason, which the format gives. Returns -EINVAL. For
 * readers of binary formats.
 */
int input_error(const struct input *in, size_t offset, struct error *e, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* One file format. read and write may be NULL: then the format goes one way only. */
struct format {
	const char *name;	       /* what -f takes */
	const char *const *extensions; /* ".pb.gz", ...; ends with NULL */
	const char *loses;	       /* what it cannot hold, for a person; NULL: nothing */

	/* Whether the file is of this format, from its content; never reads past size. */
	bool (*detect)(const struct input *in);

	/*
	 * Fills an empty profile. What real writers get wrong and other readers take is
	 * overlooked, with profile_warn(). Corrupt is an error: path, offset or line, reason.
	 * Uses memory in proportion to the input's size at most.
	 */
	int (*read)(const struct input *in, struct profile *p, struct error *e);

	/* The profile is not changed. The caller checks the stream for write errors. */
	int (*write)(const struct profile *p, FILE *out, struct error *e);
};

/* The format of this name, or NULL. */
const struct format *format_by_name(const char *name);

/* The format whose extension the path ends with, or NULL. */
const struct format *format_by_extension(const char *path);

/* All formats, for help texts; ends with NULL. */
extern const struct format *const format_all[];

/*
 * Reads a profile of any format, found by content. "-" is standard input. Inflates gzip.
 * On success *p is the caller's to profile_free().
 */
int format_read(const char *path, struct profile **p, struct error *e);

#endif
