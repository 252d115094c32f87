// SPDX-License-Identifier: GPL-2.0-only
#include "format/format.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "format/callgrind/callgrind.h"
#include "format/dcpi/dcpi.h"
#include "format/read_directory.h"
#include "format/folded/folded.h"
#include "format/foreign.h"
#include "format/gmon/gmon.h"
#include "format/gperftools/gperftools.h"
#include "format/pprof/pprof.h"

/* Those with a magic number come before those that are recognised by what they look like. */
/* clang-format off */
const struct format *const format_all[] = {
	&format_gmon,
	&format_gperftools,
	&format_dcpi,
	&format_pprof,
	&format_callgrind,
	&format_folded,
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

static bool ends_with(const char *path, size_t size, const char *extension)
{
	size_t tail = strlen(extension);

	return size > tail && memcmp(path + size - tail, extension, tail) == 0;
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

static bool has_extension(const struct format *format, const char *path, size_t size)
{
	for (const char *const *extension = format->extensions; *extension; extension++)
		if (ends_with(path, size, *extension))
			return true;
	return false;
}

const struct format *format_by_path(const char *path)
{
	size_t size = strlen(path);

	for (const struct format *const *f = format_all; *f; f++)
		if (has_extension(*f, path, size) || format_names_file(*f, path) ||
		    (format_is_gzip_path(path) &&
		     has_extension(*f, path, size - strlen(FORMAT_GZIP))))
			return *f;
	return NULL;
}

const struct format *format_detect(const struct input *in)
{
	const struct format *named = format_by_path(in->path);

	if (foreign_detect(in))
		return NULL;
	for (const struct format *const *f = format_all; *f; f++)
		if ((*f)->read && (*f)->detect(in))
			return *f;
	/* Text may begin with anything: the name tells, and the reader says what is wrong. */
	return named && named->is_text ? named : NULL;
}

static int unknown_format(const struct input *in, struct error *e)
{
	const struct foreign *foreign = foreign_detect(in);
	char names[256] = "";
	size_t used = 0;

	if (foreign)
		return foreign_error(foreign, in, e);
	for (const struct format *const *f = format_all; *f; f++)
		if ((*f)->read && used < sizeof(names))
			used += snprintf(names + used, sizeof(names) - used, "%s%s",
					 used ? ", " : "", (*f)->name);
	error_set(e, 0, "%s is not a profile of any format that is read here", in->path);
	error_mend(e, "give a file of one of these formats: %s", names);
	return -EINVAL;
}

/* The error without the path, which stands before every warning. */
static const char *without_path(const struct input *in, const struct error *e)
{
	size_t size = strlen(in->path);

	if (strncmp(e->what, in->path, size) == 0 && strncmp(e->what + size, ": ", 2) == 0)
		return e->what + size + 2;
	return e->what;
}

static int note_salvage(const struct input *in, struct profile *p, struct error *e)
{
	p->salvaged = true;
	return profile_warn(p, "salvaged what comes before this: %s", without_path(in, e))
		       ? error_no_memory(e)
		       : 0;
}

/* What was read before an error is a profile, too, if there is any. */
static int salvage(const struct input *in, struct profile *p, int err, struct error *e)
{
	if (err == -ENOMEM || (p->sample_count == 0 && p->arc_count == 0))
		return err;
	return note_salvage(in, p, e);
}

static int read_format(const struct format *format, struct input *in, struct profile *p,
		       struct error *e)
{
	int err = format->streams ? 0 : input_need_all(in, e);

	if (err && in->options.salvage && in->size)
		err = note_salvage(in, p, e);
	if (err)
		return err;
	err = format->read(in, p, e);
	if (err && in->options.salvage)
		err = salvage(in, p, err, e);
	else if (err == -EINVAL && p->sample_count && !e->mend[0])
		error_mend(e, "--salvage reads what comes before it");
	return err;
}

static int read_input(struct input *in, struct profile **result, struct error *e)
{
	const struct format *format = format_detect(in);
	struct profile *p;
	int err;

	if (!format)
		return unknown_format(in, e);
	p = profile_new();
	if (!p)
		return error_no_memory(e);
	err = read_format(format, in, p, e);
	if (err) {
		profile_free(p);
		return err;
	}
	p->format = format->name;
	*result = p;
	return 0;
}

int format_read(const char *path, const struct input_options *options, struct profile **p,
		struct error *e)
{
	struct input in;
	int err = input_open(path, options, &in, e);

	if (err == -EISDIR && strcmp(path, "-") != 0)
		return directory_read(path, options, p, e);
	if (err)
		return err;
	err = read_input(&in, p, e);
	input_close(&in);
	return err;
}
