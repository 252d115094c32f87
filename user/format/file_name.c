// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <string.h>

#include "format/format.h"

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

bool format_has_extension(const struct format *format, const char *path)
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
