// SPDX-License-Identifier: GPL-2.0-only
#include "format/format.h"

#include <string.h>

#include "format/dcpi/dcpi.h"
#include "format/foreign.h"

/* Formats with a magic number come before those that are recognised by what they look like. */
/* clang-format off */
const struct format *const format_all[] = {
	&format_gmon,
	&format_gperftools,
	&format_dcpi,
	&format_perf,
	&format_pprof,
	&format_callgrind,
	&format_perf_script,
	&format_folded,
	&format_speedscope,
	&format_firefox,
	&format_otlp,
	NULL,
};
/* clang-format on */

const struct format *format_by_name(const char *name)
{
	for (const struct format *const *f = format_all; *f; f++)
		if (strcmp((*f)->name, name) == 0)
			return *f;
	return NULL;
}

const struct format *format_by_extension(const char *path)
{
	for (const struct format *const *f = format_all; *f; f++)
		if (format_has_extension(*f, path))
			return *f;
	return NULL;
}

/* callgrind.out.7.folded: what was added at the end is what the user wants. */
const struct format *format_by_path(const char *path)
{
	const struct format *format = format_by_extension(path);

	for (const struct format *const *f = format_all; !format && *f; f++)
		if (format_names_file(*f, path))
			format = *f;
	return format;
}

const struct format *format_detect(const struct input *in)
{
	const struct format *named = format_by_path(in->path);

	if (foreign_detect(in))
		return NULL;
	for (const struct format *const *f = format_all; *f; f++) {
		if (!(*f)->read || !(*f)->detect(in))
			continue;
		/* What is text may look like several: a stack's first function may be "events: x".
		 */
		if ((*f)->is_text && named && named->is_text && named->read && named->detect(in))
			return named;
		return *f;
	}
	/* Text may begin with anything: the file's name decides, and its reader reports errors. */
	return named && named->read && named->is_text ? named : NULL;
}
