/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_INPUT_H
#define PROFIL_UTIL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "util/tick_list.h"

struct profile_labels;

/*
 * Whose stacks to read: where there are too many, others' samples are read without them, and so is
 * the code that is in no other stack. labels: of a sample; number: of the labels in the profile.
 */
struct stack_choice {
	void *context;
	/* Of each sample that has a stack, before any is asked for. frames: about how many it has.
	 * Returns 0 or -ENOMEM. */
	int (*note)(void *context, const struct profile_labels *labels, uint32_t number,
		    size_t frames);
	/* Whether to read it, with so many locations that are in none before. */
	bool (*keep)(void *context, uint32_t number, size_t locations);
};

/* How to read a file. */
struct input_options {
	bool salvage;	     /* read as much of a corrupt file as possible */
	bool foreign;	     /* other users' links, and special files, are not opened */
	bool no_code;	     /* the stacks of samples are not needed: readers may drop them */
	unsigned int stride; /* bytes of code per count, in files that do not say; 0: 1 */
	/* Which ticks to keep, of a file alone: a directory is read as a whole. NULL: all. */
	struct tick_choice *ticks;
	const struct stack_choice *stacks; /* NULL: all; readers may ignore it */
};

/*
 * A file being read, once from front to back, so that it may be a pipe; gzip is inflated. A window
 * of the content is in memory: a reader asks for more and skips what it has read. For content that
 * is in memory already the caller sets bytes and size only.
 */
struct input {
	const char *path;     /* for messages */
	const uint8_t *bytes; /* the window: the next `size` bytes */
	size_t size;
	uint64_t offset; /* of bytes[0] in the content */
	uint64_t line;	 /* number of the last line read by input_line() */
	bool inflated;	 /* from gzip: offsets are not those of the file on disk */
	/* When the file was written last; of a pipe, when it was opened. ns since the epoch; 0:
	 * unknown */
	uint64_t written_ns;
	struct input_options options;

	struct input_source *source; /* private to format/input_file.c; NULL: the window is all */
};

/* Advances the window by `size` bytes, at most in->size. */
void input_skip(struct input *in, size_t size);

/*
 * For readers of binary formats: sets e to "PATH: at byte OFFSET: REASON". offset: in the content;
 * format: the reason. Returns -EINVAL.
 */
int input_error(const struct input *in, uint64_t offset, struct error *e, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same as "PATH:LINE: REASON", for the last line read. */
int input_line_error(const struct input *in, struct error *e, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The error's text without "PATH: ": a profile's warnings are printed behind its file's path. */
const char *input_reason(const struct input *in, const struct error *e);

#endif
