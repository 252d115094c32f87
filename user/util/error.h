/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_ERROR_H
#define PROFIL_UTIL_ERROR_H

#include <errno.h>
#include <stddef.h>

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
 * hint. Returns -code, or -EINVAL if code is 0, so that the caller can return the result.
 */
int error_set_kind(struct error *e, enum error_kind kind, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static inline enum error_kind error_kind_of(int code)
{
	return code == EACCES || code == EPERM ? ERROR_NOT_PERMITTED : ERROR_FAILED;
}

/* The same, of the kind that the code says. */
#define error_set(e, code, ...) error_set_kind((e), error_kind_of(code), (code), __VA_ARGS__)

/* The same of a mistake in usage, with a hint, which is no format. Returns -EINVAL. */
#define error_usage(e, hint, ...) \
	(error_set_kind((e), ERROR_USAGE, 0, __VA_ARGS__), error_hint((e), "%s", (hint)))

/* Sets the hint. Returns -EINVAL, for a caller that returns that. */
int error_hint(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets "out of memory" and returns -ENOMEM. */
int error_no_memory(struct error *e);

/*
 * Appends to a text in `size` bytes, such as a list in a message, behind the separator unless the
 * text is empty. What has no room is cut.
 */
void text_append(char *text, size_t size, const char *separator, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
