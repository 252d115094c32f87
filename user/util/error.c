// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int error_fill(struct error *e, enum error_kind kind, int code, const char *format,
		      va_list arguments)
{
	/* strerror() would load the locale's message catalogue. */
	const char *text = strerrordesc_np(code);
	int n;

	e->kind = kind;
	e->hint[0] = '\0';
	n = vsnprintf(e->what, sizeof(e->what), format, arguments);
	if (code && n >= 0 && (size_t)n < sizeof(e->what))
		snprintf(e->what + n, sizeof(e->what) - n, ": %s", text ?: "unknown error");
	return code ? -code : -EINVAL;
}

int error_set(struct error *e, int code, const char *format, ...)
{
	va_list arguments;
	int err;

	va_start(arguments, format);
	err = error_fill(e, code == EACCES || code == EPERM ? ERROR_NOT_PERMITTED : ERROR_FAILED,
			 code, format, arguments);
	va_end(arguments);
	return err;
}

int error_set_kind(struct error *e, enum error_kind kind, int code, const char *format, ...)
{
	va_list arguments;
	int err;

	va_start(arguments, format);
	err = error_fill(e, kind, code, format, arguments);
	va_end(arguments);
	return err;
}

int error_usage(struct error *e, const char *hint, const char *format, ...)
{
	va_list arguments;
	int err;

	va_start(arguments, format);
	err = error_fill(e, ERROR_USAGE, 0, format, arguments);
	va_end(arguments);
	error_hint(e, "%s", hint);
	return err;
}

int error_hint(struct error *e, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(e->hint, sizeof(e->hint), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

int error_no_memory(struct error *e)
{
	return error_set(e, ENOMEM, "out of memory");
}
