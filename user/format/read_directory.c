// SPDX-License-Identifier: GPL-2.0-only
#include "format/read_directory.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "format/format.h"
#include "profile/merge.h"

/* More than there can be files, as a power of 2 */
#define PARTS 64

/* Files that are left out and named; how many more there are is told. */
#define NAMED_MAX 10

struct reader {
	const char *path;
	const struct input_options *options;
	struct error *e;
	/*
	 * What was read: parts[i] is of 2^i files, or NULL; those of lower i were read later. So
	 * each file is merged as often as there are parts, not as there are files.
	 */
	struct profile *parts[PARTS];
	struct profile *p;     /* all of it, in the end; NULL: nothing */
	struct profile *notes; /* has the warnings about files that are left out */
	size_t left_out;
	bool damaged;		      /* at least one of them is a profile */
	const char *hosts[NAMED_MAX]; /* those that the profiles are from; texts of notes */
	size_t host_count;
};

static int leave_out(struct reader *r, const char *what)
{
	if (r->left_out++ >= NAMED_MAX)
		return 0;
	return profile_warn(r->notes, "left out: %s", what) ? error_no_memory(r->e) : 0;
}

/* Merges *later, if there is any, into the part, which then takes its place. */
static int take_part(struct reader *r, size_t i, struct profile **later)
{
	int err = *later ? profile_merge(r->parts[i], *later, r->e) : 0;

	profile_free(*later);
	*later = r->parts[i];
	r->parts[i] = NULL;
	return err;
}

static int add(struct reader *r, struct profile *p)
{
	size_t i = 0;
	int err = 0;

	for (; r->parts[i] && !err; i++)
		err = take_part(r, i, &p);
	r->parts[i] = p;
	return err;
}

static int add_up(struct reader *r)
{
	int err = 0;

	for (size_t i = 0; i < PARTS && !err; i++)
		if (r->parts[i])
			err = take_part(r, i, &r->p);
	return err;
}

/* Nearly all text could be folded stacks: one that is must be called so to be read unasked. */
static bool is_profile(const char *path, const struct input *in)
{
	const struct format *format = format_detect(in);

	if (format && strcmp(format->name, "folded") == 0)
		return format_by_path(path) == format;
	return format;
}

static int note_host(struct reader *r, const char *host)
{
	const char *interned;
	size_t i = 0;

	if (!*host || r->host_count == NAMED_MAX)
		return 0;
	if (profile_string(r->notes, host, &interned))
		return error_no_memory(r->e);
	while (i < r->host_count && r->hosts[i] != interned)
		i++;
	r->hosts[i] = interned;
	r->host_count += i == r->host_count;
	return 0;
}

static int read_profile(struct reader *r, const char *path)
{
	struct profile *p;
	int err = format_read(path, r->options, &p, r->e);

	if (err == -EINVAL) {
		r->damaged = true;
		return leave_out(r, r->e->what);
	}
	if (err)
		return err;
	err = note_host(r, p->host);
	if (err)
		profile_free(p);
	return err ?: add(r, p);
}

static int read_file(struct reader *r, const FTSENT *file)
{
	const char *path = file->fts_path;
	struct input in;
	bool readable;
	int err;

	if (file->fts_statp->st_size == 0) {
		error_set(r->e, 0, "%s is empty", path);
		return leave_out(r, r->e->what);
	}
	err = input_open(path, r->options, &in, r->e);
	if (err)
		return err;
	readable = is_profile(path, &in);
	input_close(&in);
	if (readable)
		return read_profile(r, path);
	error_set(r->e, 0, "%s is not a profile", path);
	return leave_out(r, r->e->what);
}

static int visit(struct reader *r, FTS *tree, FTSENT *entry)
{
	bool hidden = entry->fts_level > FTS_ROOTLEVEL && entry->fts_name[0] == '.';

	switch (entry->fts_info) {
	case FTS_D:
		if (hidden)
			fts_set(tree, entry, FTS_SKIP);
		return 0;
	case FTS_F:
		return hidden ? 0 : read_file(r, entry);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return error_set_kind(
			r->e, entry->fts_errno == EACCES ? ERROR_NOT_PERMITTED : ERROR_FAILED,
			entry->fts_errno, "cannot read %s", entry->fts_path);
	case FTS_DP:
		return 0;
	default: /* symbolic links and what is no regular file */
		error_set(r->e, 0, "%s is not a regular file", entry->fts_path);
		return hidden ? 0 : leave_out(r, r->e->what);
	}
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int read_tree(struct reader *r)
{
	char *const paths[] = { (char *)r->path, NULL };
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	FTSENT *entry;
	int err = 0;

	if (!tree)
		return error_set(r->e, errno, "cannot read %s", r->path);
	while (!err && (errno = 0, entry = fts_read(tree)))
		err = visit(r, tree, entry);
	if (!err && errno)
		err = error_set(r->e, errno, "cannot read %s", r->path);
	fts_close(tree);
	return err;
}

static int nothing(struct reader *r)
{
	error_set(r->e, 0, "%s: there is no profile in this directory", r->path);
	if (r->left_out)
		error_mend(r->e, "%s", r->notes->warnings[0]);
	return -EINVAL;
}

/* The sum does not tell from which of them a sample is. */
static int note_hosts(struct reader *r)
{
	char names[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < r->host_count && used < sizeof(names); i++)
		used += snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
				 r->hosts[i]);
	if (r->host_count < 2 ||
	    !profile_warn(r->notes, "it has profiles of several machines, which are added up: %s%s",
			  names, r->host_count == NAMED_MAX ? ", ..." : ""))
		return 0;
	return error_no_memory(r->e);
}

static int add_notes(struct reader *r)
{
	struct profile *notes = r->notes;

	if (r->left_out > NAMED_MAX &&
	    profile_warn(notes, "left out: %zu more files", r->left_out - NAMED_MAX))
		return error_no_memory(r->e);
	if (note_hosts(r))
		return -ENOMEM;
	for (size_t i = 0; i < notes->warning_count; i++)
		if (profile_warn(r->p, "%s", notes->warnings[i]))
			return error_no_memory(r->e);
	return 0;
}

int directory_read(const char *path, const struct input_options *options, struct profile **p,
		   struct error *e)
{
	struct reader r = { .path = path, .options = options, .e = e, .notes = profile_new() };
	int err = r.notes ? read_tree(&r) : error_no_memory(e);

	err = err ?: add_up(&r);
	if (!err)
		err = r.p ? add_notes(&r) : nothing(&r);
	if (r.p)
		r.p->salvaged |= r.damaged;
	for (size_t i = 0; i < PARTS; i++)
		profile_free(r.parts[i]);
	profile_free(r.notes);
	if (err)
		profile_free(r.p);
	else
		*p = r.p;
	return err;
}
