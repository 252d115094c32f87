// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set_kind(struct error *e, enum error_kind kind, int code, const char *format, ...)
{
	/* strerror() would load the locale's message catalogue. */
	const char *text = strerrordesc_np(code);
	va_list arguments;
	int n;

	e->kind = kind;
	e->hint[0] = '\0';
	va_start(arguments, format);
	n = vsnprintf(e->what, sizeof(e->what), format, arguments);
	va_end(arguments);
	if (code && n >= 0 && (size_t)n < sizeof(e->what))
		snprintf(e->what + n, sizeof(e->what) - n, ": %s", text ?: "unknown error");
	return code ? -code : -EINVAL;
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

void text_append(char *text, size_t size, const char *separator, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	snprintf(text + used, size - used, "%s", used ? separator : "");
	used = strlen(text);
	va_start(arguments, format);
	vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}
