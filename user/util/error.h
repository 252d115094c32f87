/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_ERROR_H
#define PROFIL_UTIL_ERROR_H

/* The kind of a failure, which decides the tool's exit code. */
enum error_kind {
	ERROR_FAILED,
	ERROR_USAGE,
	ERROR_NOT_PERMITTED,
	ERROR_KERNEL_LACKS,
};

/*
 * Why something failed, as text for the user. The function that fails fills it in and returns a
 * negative errno; the tool prints it. The caller owns the struct, which points to no other memory.
 */
struct error {
	enum error_kind kind;
	char what[1024]; /* what failed, on what, why: one sentence, no newline */
	char hint[512];	 /* hint: how to fix it; empty: unknown */
};

/*
 * Sets e->what from the format, followed by ": strerror(code)" unless code is 0, and clears the
 * hint. Returns -code, or -EINVAL if code is 0, so that the caller can return the result. The kind
 * is ERROR_NOT_PERMITTED for EACCES and EPERM, else ERROR_FAILED.
 */
int error_set(struct error *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with another kind. */
int error_set_kind(struct error *e, enum error_kind kind, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same of a mistake in usage, with a hint, which is no format. Returns -EINVAL. */
int error_usage(struct error *e, const char *hint, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the hint. Returns -EINVAL, for a caller that returns that. */
int error_hint(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets "out of memory" and returns -ENOMEM. */
int error_no_memory(struct error *e);

#endif
