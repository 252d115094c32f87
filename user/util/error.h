/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_ERROR_H
#define PROFIL_UTIL_ERROR_H

/* What kind of failure it is: the tool's exit code follows from it. */
enum error_kind {
	ERROR_FAILED,
	ERROR_USAGE,
	ERROR_NOT_PERMITTED,
	ERROR_KERNEL_LACKS,
};

/*
 * Why something failed, in words for a person. The function that fails fills it in and returns
 * a negative errno; whoever called prints it. Owned by the caller, no memory behind it.
 */
struct error {
	enum error_kind kind;
	char what[1024]; /* what failed, on what, why: one sentence, no newline */
	char mend[512];	 /* how to mend it, empty when nobody can know */
};

/*
 * Sets e->what from the format, with ": strerror(code)" behind it when code is not 0.
 * Returns -code, or -EINVAL when code is 0, so that it can be returned at once.
 */
int error_set(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a failure that is not of kind ERROR_FAILED. */
int error_set_kind(struct error *e, enum error_kind kind, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Adds how to mend it. */
void error_mend(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The one message for memory that ran out. Returns -ENOMEM. */
int error_no_memory(struct error *e);

#endif
