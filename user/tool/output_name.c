// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "tool/tool.h"

/* Extensions of files that are not profiles, and the command that makes them. */
static const struct {
	const char *extension, *what, *hint;
} others[] = {
	{ ".svg", "a picture", "write x.pb.gz, then: profiltool flamegraph x.pb.gz -o x.svg" },
	{ ".html", "a page", "write x.pb.gz, then: profiltool web x.pb.gz -o x.html" },
	{ ".json", "JSON",
	  "write x.pb.gz, then: profiltool report --json x.pb.gz >x.json, or dump --json" },
	{ ".txt", "text", "write x.pb.gz, then: profiltool report x.pb.gz >x.txt, or dump" },
};

static bool can_write(const struct format *format)
{
	return format->write || format->write_directory;
}

static bool writes_directory(const struct format *format)
{
	return format->write_directory;
}

/* Lists the names of the formats that `is_listed` selects: "pprof, gperftools". */
static void list_formats(bool (*is_listed)(const struct format *format), char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (const struct format *const *f = format_all; *f && used < size; f++)
		if (is_listed(*f))
			used += snprintf(text + used, size - used, "%s%s", used ? ", " : "",
					 (*f)->name);
}

void tool_list_formats(char *text, size_t size)
{
	list_formats(can_write, text, size);
}

bool tool_is_unnamed(const char *path)
{
	struct stat status;

	if (strcmp(path, "-") == 0 || strncmp(path, "/dev/", strlen("/dev/")) == 0)
		return true;
	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* Sets e if the path has an extension of others[]. Returns 0 or -errno. */
static int refuse_others(const char *path, struct error *e)
{
	size_t size = strlen(path) - (format_is_gzip_path(path) ? strlen(FORMAT_GZIP) : 0);

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		size_t tail = strlen(others[i].extension);

		if (size >= tail &&
		    strncasecmp(path + size - tail, others[i].extension, tail) == 0) {
			error_set_kind(e, ERROR_USAGE, 0, "%s would be %s, not a profile", path,
				       others[i].what);
			error_hint(e, "%s", others[i].hint);
			return -EINVAL;
		}
	}
	return 0;
}

const struct format *tool_output_format(const char *name, const char *path, struct error *e)
{
	const struct format *format;
	struct stat status;
	bool directory;
	char names[TOOL_LIST_SIZE];

	if (path && !*path) {
		error_set_kind(e, ERROR_USAGE, 0, "the name of the file to write is \"\"");
		error_hint(e, "a variable of the shell may be empty");
		return NULL;
	}
	if (!name && (!path || tool_is_unnamed(path)))
		return format_by_name("pprof");
	tool_list_formats(names, sizeof(names));
	if (name) {
		format = format_by_name(name);
		if (!format || !can_write(format)) {
			error_set_kind(e, ERROR_USAGE, 0, "no format \"%s\" can be written", name);
			error_hint(e, "the formats are: %s", names);
			return NULL;
		}
	} else {
		/*
		 * An extension says more than the beginning of a name: callgrind.out.7.svg would be
		 * a picture. A directory may have any name.
		 */
		directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
		format = format_by_extension(path);
		if (!format && !directory && refuse_others(path, e))
			return NULL;
		format = format ?: format_by_path(path);
		if (!format && directory) {
			error_set_kind(e, ERROR_USAGE, 0,
				       "%s is a directory, and no format is named", path);
			list_formats(writes_directory, names, sizeof(names));
			error_hint(e,
				   "name a file in it, as %s%sx.pb.gz; or add -f with one of %s, "
				   "which have a file for each image",
				   path, path[strlen(path) - 1] == '/' ? "" : "/", names);
		} else if (!format) {
			error_set_kind(e, ERROR_USAGE, 0, "the name %s implies no format to write",
				       path);
			error_hint(e,
				   "add -f with one of %s; or end it in .pb.gz, .prof, .folded, "
				   "...",
				   names);
		}
	}
	if (!format || !path || !format->write_directory || !format_is_gzip_path(path))
		return format;
	error_set_kind(e, ERROR_USAGE, 0, "%s: %s is not written compressed", path, format->name);
	error_hint(e, "leave " FORMAT_GZIP " out");
	return NULL;
}

const char *tool_output_place(const char *name, const char *path)
{
	const struct format *format = !path && name ? format_by_name(name) : NULL;
	const char *place =
		format && format->directory_variable ? getenv(format->directory_variable) : NULL;

	return place && *place ? place : path;
}
