// SPDX-License-Identifier: GPL-2.0-only
#include "format/format.h"

#include <errno.h>
#include <string.h>

#include "format/gperftools.h"
#include "format/input.h"
#include "format/pprof.h"

/* Those with a magic number come before those that are recognised by what they look like. */
const struct format *const format_all[] = {
	&format_gperftools,
	&format_pprof,
	NULL,
};

const struct format *format_by_name(const char *name)
{
	for (const struct format *const *f = format_all; *f; f++)
		if (strcmp((*f)->name, name) == 0)
			return *f;
	return NULL;
}

static bool ends_with(const char *path, const char *extension)
{
	size_t size = strlen(path), tail = strlen(extension);

	return size > tail && strcmp(path + size - tail, extension) == 0;
}

const struct format *format_by_extension(const char *path)
{
	for (const struct format *const *f = format_all; *f; f++)
		for (const char *const *extension = (*f)->extensions; *extension; extension++)
			if (ends_with(path, *extension))
				return *f;
	return NULL;
}

static const struct format *detect(const struct input *in)
{
	for (const struct format *const *f = format_all; *f; f++)
		if ((*f)->read && (*f)->detect(in))
			return *f;
	return NULL;
}

static int unknown_format(const struct input *in, struct error *e)
{
	char names[256] = "";
	size_t used = 0;

	for (const struct format *const *f = format_all; *f; f++)
		if ((*f)->read && used < sizeof(names))
			used += snprintf(names + used, sizeof(names) - used, "%s%s",
					 used ? ", " : "", (*f)->name);
	error_set(e, 0, "%s is not a profile of any format that is read here", in->path);
	error_mend(e, "give a file of one of these formats: %s", names);
	return -EINVAL;
}

static int read_input(const struct input *in, struct profile **result, struct error *e)
{
	const struct format *format = detect(in);
	struct profile *p;
	int err;

	if (!format)
		return unknown_format(in, e);
	p = profile_new();
	if (!p)
		return error_no_memory(e);
	err = format->read(in, p, e);
	if (err) {
		profile_free(p);
		return err;
	}
	p->format = format->name;
	*result = p;
	return 0;
}

int format_read(const char *path, struct profile **p, struct error *e)
{
	struct input in;
	int err = input_load(path, &in, e);

	if (err)
		return err;
	err = read_input(&in, p, e);
	input_free(&in);
	return err;
}
