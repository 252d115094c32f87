// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/last_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/export.h"
#include "lib/profil.h"

static __thread char message[ERROR_SIZE];

int profil__error(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	return -code;
}

int profil__system_error(const char *format, ...)
{
	int code = errno;
	const char *text = strerrordesc_np(code); /* strerror() would load the locale's messages */
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	length = strlen(message);
	snprintf(message + length, sizeof(message) - length, ": %s", text ? text : "unknown error");
	return -code;
}

const char *profil__error_text(void)
{
	return message;
}

void profil__error_clear(void)
{
	message[0] = '\0';
}

EXPORT const char *profil_error(void)
{
	return message;
}
