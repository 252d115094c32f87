// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int set_error(struct error *e, const char *place, const char *format, va_list arguments)
{
	char reason[512];

	vsnprintf(reason, sizeof(reason), format, arguments);
	return error_set(e, 0, "%s: %s", place, reason);
}

int input_error(const struct input *in, uint64_t offset, struct error *e, const char *format, ...)
{
	char place[sizeof(e->what) / 2];
	va_list arguments;

	snprintf(place, sizeof(place), "%s: at byte %" PRIu64 "%s", in->path, offset,
		 in->inflated ? " of the inflated data" : "");
	va_start(arguments, format);
	set_error(e, place, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

int input_line_error(const struct input *in, struct error *e, const char *format, ...)
{
	char place[sizeof(e->what) / 2];
	va_list arguments;

	snprintf(place, sizeof(place), "%s:%" PRIu64, in->path, in->line);
	va_start(arguments, format);
	set_error(e, place, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

const char *input_reason(const struct input *in, const struct error *e)
{
	size_t size = strlen(in->path);
	bool named = strncmp(e->what, in->path, size) == 0 && strncmp(e->what + size, ": ", 2) == 0;

	return named ? e->what + size + 2 : e->what;
}

void input_skip(struct input *in, size_t size)
{
	in->bytes += size;
	in->size -= size;
	in->offset += size;
}
