// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/foreign.h"
#include "format/format.h"
#include "profile/hosts.h"
#include "profile/merge.h"
#include "util/sum.h"

/* --- One file --- */

static bool is_folded(const struct format *format)
{
	return strcmp(format->name, "folded") == 0;
}

/* The format of an input, or NULL. Nearly any text could be folded stacks: more of it is judged. */
static const struct format *detect(struct input *in)
{
	const struct format *format = format_detect(in);
	struct error ignored; /* the reader meets it again */

	if (format && !is_folded(format))
		return format;
	input_need(in, FOREIGN_WINDOW, &ignored);
	return format_detect(in);
}

static int unknown_format(struct input *in, struct error *e)
{
	const struct format *named = format_by_extension(in->path);
	const struct foreign *foreign = foreign_detect(in);
	char names[256] = "";
	size_t used = 0;

	if (!foreign && named && !named->read) {
		error_set(e, 0, "%s is by its name a file of the format %s, which is only written",
			  in->path, named->name);
		error_hint(e, "give the profile that it was written from");
		return -EINVAL;
	}
	foreign = foreign ?: foreign_text(in);
	if (foreign)
		return foreign_error(foreign, in, e);
	for (const struct format *const *f = format_all; *f; f++)
		if ((*f)->read && used < sizeof(names))
			used += snprintf(names + used, sizeof(names) - used, "%s%s",
					 used ? ", " : "", (*f)->name);
	error_set(e, 0, "%s is not a profile in any supported format", in->path);
	error_hint(e, "supported formats: %s", names);
	return -EINVAL;
}

/* Turns the error into a warning. */
static int note_salvage(const struct input *in, struct profile *p, struct error *e)
{
	p->salvaged = true;
	if (profile_warn(p, "salvaged what comes before this: %s", input_reason(in, e)))
		return error_no_memory(e);
	return 0;
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
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (!err || (p->sample_count == 0 && p->arc_count == 0))
		return err;
	if (in->options.salvage && err != -ENOMEM)
		return note_salvage(in, p, e);
	if (err == -EINVAL && p->sample_count && !e->hint[0])
		error_hint(e, "--salvage reads what comes before it");
	return err;
}

/*
 * Budgets of what a file becomes, as of what it inflates to: a minimum, or some times its size if
 * that is more. Files of real programs stay far below.
 * Bound: files: bytes that a file becomes: a minimum, or a multiple of its size, and the same of
 * its samples and frames; then: the file is refused.
 */
#define MEMORY_MIN   ((uint64_t)192 << 20) /* bytes of the profile */
#define MEMORY_TIMES 32
#define FRAMES_MIN   ((uint64_t)16 << 20) /* of all stacks, inlined ones too */
#define FRAMES_TIMES 32
#define TEXT_MIN     ((uint64_t)256 << 20) /* bytes of these frames' names */
#define TEXT_TIMES   256

static uint64_t budget(uint64_t size, uint64_t least, uint64_t times)
{
	return size > least / times ? size * times : least;
}

static int over_budget(const struct input *in, const char *what, struct error *e)
{
	error_set(e, 0,
		  "%s: %s than any profile of its size would: it is corrupt, or made to do harm",
		  in->path, what);
	error_hint(e, "if it is neither, gzip -dc makes it a larger file: the limits grow with it");
	return -EINVAL;
}

/*
 * Checks what commands make of the stacks: each of a sample's frames is several where functions are
 * inlined, and each has a name. Returns 0 or -errno with e set.
 */
static int check_stacks(const struct input *in, const struct profile *p, struct error *e)
{
	uint64_t size = input_bytes_read(in), frames = 0, text = 0;
	uint64_t frames_max = budget(size, FRAMES_MIN, FRAMES_TIMES);
	uint64_t text_max = budget(size, TEXT_MIN, TEXT_TIMES);
	uint64_t *names = calloc(p->function_count + 1, sizeof(*names));
	uint64_t *texts = calloc(p->location_count + 1, sizeof(*texts));
	int err = names && texts ? 0 : error_no_memory(e);

	for (size_t i = 0; i < p->function_count && !err; i++)
		names[i] = strlen(p->functions[i].name) + 1;
	for (size_t i = 0; i < p->location_count && !err; i++)
		for (uint32_t j = 0; j < p->locations[i].line_count; j++)
			texts[i] += names[p->lines[p->locations[i].first_line + j].function];
	for (size_t i = 0; i < p->frame_count && !err; i++) {
		frames += p->locations[p->frames[i]].line_count ?: 1;
		add_u64(&text, texts[p->frames[i]]);
		if (frames > frames_max)
			err = over_budget(in, "its stacks have more frames", e);
		else if (text > text_max)
			err = over_budget(in, "its stacks have longer names", e);
	}
	free(names);
	free(texts);
	return err;
}

static int read_input(const struct format *format, struct input *in, struct profile **result,
		      struct error *e)
{
	struct profile *p = profile_new();
	uint64_t size = input_file_size(in);
	int err;

	if (!p)
		return error_no_memory(e);
	if (size)
		p->bytes_max = budget(size, MEMORY_MIN, MEMORY_TIMES);
	err = read_format(format, in, p, e);
	if (p->too_large)
		err = over_budget(in, "takes more memory", e);
	err = err ?: check_stacks(in, p, e);
	p->bytes_max = 0;
	if (err) {
		profile_free(p);
		return err;
	}
	p->format = format->name;
	*result = p;
	return 0;
}

/* --- A directory --- */

/* More than there can be files, as a power of 2 */
#define PARTS 64

/*
 * How many skipped files are named; the warning says how many more there are.
 * Bound: files: skipped files that are named in a warning; then: the warning says how many more
 * there are.
 */
#define NAMED_MAX 10

struct reader {
	const char *path;
	struct input_options options;
	struct error *e;
	/*
	 * What was read: parts[i] is merged from 2^i files, or NULL; those of lower i were read
	 * later. So each file is merged at most PARTS times, however many files there are.
	 */
	struct profile *parts[PARTS];
	struct profile *p;     /* the sum of all parts, in the end; NULL: no file was read */
	struct profile *notes; /* has the warnings about skipped files */
	size_t skipped;
	bool damaged;		 /* at least one skipped file is a profile, or may be one */
	struct error unreadable; /* of the first file that cannot be read; or empty */
	struct hosts hosts;	 /* where the profiles were recorded */
};

/* Skips a file, for the reason in r->e. */
static int skip_file(struct reader *r)
{
	if (r->skipped++ >= NAMED_MAX)
		return 0;
	return profile_warn(r->notes, "skipped: %s", r->e->what) ? error_no_memory(r->e) : 0;
}

/*
 * Skips a file that is corrupt, err being -EINVAL, or cannot be read. Without memory returns err.
 */
static int skip_failed(struct reader *r, int err)
{
	if (err == -ENOMEM)
		return err;
	if (err != -EINVAL && !r->unreadable.what[0])
		r->unreadable = *r->e;
	r->damaged = true;
	return skip_file(r);
}

/* Merges *later, if it is not NULL, into parts[i], and moves the sum to *later. */
static int take_part(struct reader *r, size_t i, struct profile **later)
{
	int err = *later ? profile_merge(r->parts[i], *later, NULL, r->e) : 0;

	profile_free(*later);
	*later = r->parts[i];
	r->parts[i] = NULL;
	return err;
}

static int read_file(struct reader *r, const FTSENT *file)
{
	const struct format *format;
	struct profile *p;
	struct input in;
	int err;

	if (file->fts_statp->st_size == 0) {
		error_set(r->e, 0, "%s is empty", file->fts_path);
		return skip_file(r);
	}
	err = input_open(file->fts_path, &r->options, &in, r->e);
	if (err)
		return skip_failed(r, err);
	format = detect(&in);
	/* Here the file's name has to say so, too. */
	if (format && is_folded(format) && !format_matches_path(format, in.path))
		format = NULL;
	if (!format) {
		error_set(r->e, 0, "%s is not a profile", in.path);
		err = skip_file(r);
		goto out;
	}
	err = read_input(format, &in, &p, r->e);
	if (err) {
		err = skip_failed(r, err);
	} else if (hosts_add(&r->hosts, p->host)) {
		profile_free(p);
		err = error_no_memory(r->e);
	} else {
		size_t i = 0;

		for (; r->parts[i] && !err; i++)
			err = take_part(r, i, &p);
		r->parts[i] = p;
	}
out:
	input_close(&in);
	return err;
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
	while (!err && (errno = 0, entry = fts_read(tree))) {
		bool hidden = entry->fts_level > FTS_ROOTLEVEL && entry->fts_name[0] == '.';

		if (hidden && entry->fts_info == FTS_D)
			fts_set(tree, entry, FTS_SKIP);
		if (hidden)
			continue;
		switch (entry->fts_info) {
		case FTS_D:
		case FTS_DP:
			break;
		case FTS_F:
			err = read_file(r, entry);
			break;
		case FTS_DNR:
		case FTS_ERR:
		case FTS_NS:
			err = error_set(r->e, entry->fts_errno, "cannot read %s", entry->fts_path);
			err = skip_failed(r, err);
			break;
		default: /* symbolic links, devices, ... */
			error_set(r->e, 0, "%s is not a regular file", entry->fts_path);
			err = skip_file(r);
		}
	}
	if (!err && errno)
		err = error_set(r->e, errno, "cannot read %s", r->path);
	fts_close(tree);
	for (size_t i = 0; i < PARTS && !err; i++)
		if (r->parts[i])
			err = take_part(r, i, &r->p);
	return err;
}

static int read_directory(const char *path, const struct input_options *options, struct profile **p,
			  struct error *e)
{
	struct reader r = { .path = path, .e = e, .notes = profile_new() };
	int err;

	if (options)
		r.options = *options;
	r.options.ticks = NULL;
	err = r.notes ? read_tree(&r) : error_no_memory(e);

	if (!err && r.p) {
		struct profile *notes = r.notes;
		char hosts[512];

		if (r.skipped > NAMED_MAX)
			err = profile_warn(notes, "skipped: %zu more files", r.skipped - NAMED_MAX);
		if (!err && hosts_are_several(&r.hosts, hosts, sizeof(hosts)))
			err = profile_warn(
				notes,
				"it has profiles of several machines, which are added up: %s",
				hosts);
		for (size_t i = 0; i < notes->warning_count && !err; i++)
			err = profile_warn(r.p, "%s", notes->warnings[i]);
		r.p->salvaged |= r.damaged;
		err = err ? error_no_memory(r.e) : 0;
	} else if (!err && r.unreadable.what[0]) {
		*e = r.unreadable;
		err = -EACCES;
	} else if (!err) {
		error_set(e, 0, "%s: there is no profile in this directory", path);
		if (r.skipped)
			error_hint(e, "%s", r.notes->warnings[0]);
		err = -EINVAL;
	}
	for (size_t i = 0; i < PARTS; i++)
		profile_free(r.parts[i]);
	profile_free(r.notes);
	hosts_free(&r.hosts);
	if (err)
		profile_free(r.p);
	else
		*p = r.p;
	return err;
}

int format_read(const char *path, const struct input_options *options, struct profile **p,
		struct error *e)
{
	const struct format *format;
	struct input in;
	int err = input_open(path, options, &in, e);

	if (err == -EISDIR && strcmp(path, "-") != 0)
		return read_directory(path, options, p, e);
	if (err)
		return err;
	format = detect(&in);
	err = format ? read_input(format, &in, p, e) : unknown_format(&in, e);
	input_close(&in);
	return err;
}
