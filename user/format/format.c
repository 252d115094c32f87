// SPDX-License-Identifier: GPL-2.0-only
#include "format/format.h"

#include <ctype.h>
#include <string.h>

#include "format/dcpi/dcpi.h"

static bool ends_with(const char *path, size_t size, const char *extension)
{
	size_t tail = strlen(extension);

	return size > tail && memcmp(path + size - tail, extension, tail) == 0;
}

static bool has_extension(const struct format *format, const char *path, size_t size)
{
	for (const char *const *extension = format->extensions; *extension; extension++)
		if (ends_with(path, size, *extension))
			return true;
	return false;
}

bool format_is_gzip_path(const char *path)
{
	return ends_with(path, strlen(path), FORMAT_GZIP);
}

bool format_names_file(const struct format *format, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (const char *const *file = format->files; file && *file; file++) {
		size_t size = strlen(*file);

		if (strncmp(name, *file, size) == 0 && !isalnum((unsigned char)name[size]))
			return true;
	}
	return false;
}

/* Whether the path ends in an extension of the format, perhaps with FORMAT_GZIP behind it. */
static bool format_has_extension(const struct format *format, const char *path)
{
	size_t size = strlen(path);

	return has_extension(format, path, size) ||
	       (format_is_gzip_path(path) &&
		has_extension(format, path, size - strlen(FORMAT_GZIP)));
}

bool format_matches_path(const struct format *format, const char *path)
{
	return format_has_extension(format, path) || format_names_file(format, path);
}

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
