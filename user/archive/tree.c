// SPDX-License-Identifier: GPL-2.0-only
#include "archive/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "util/array.h"
#include "util/directory.h"
#include "util/file.h"
#include "util/order.h"

#define BLOCK_SIZE 512 /* of st_blocks */

int tree_open(struct tree *t, const char *directory, const char *host, bool make, struct error *e)
{
	char *name = strdup(*host ? host : "unknown");
	int err = 0, parent;

	*t = (struct tree){ .fd = -1 };
	if (name)
		directory_clean_name(name);
	if (!name || asprintf(&t->path, "%s/%s", directory, name) < 0) {
		t->path = NULL;
		err = error_no_memory(e);
	}
	free(name);
	if (err)
		return err;
	parent = make ? directory_make(directory) : directory_open(directory);
	t->fd = parent < 0 ? parent : directory_open_in(parent, strrchr(t->path, '/') + 1, make);
	file_close(parent);
	if (t->fd >= 0)
		return 0;
	err = t->fd;
	t->fd = -1;
	if (err == -EACCES || err == -EPERM || !make)
		error_set(e, -err, "cannot read %s", t->path);
	else
		error_set(e, -err, "cannot make the directory %s",
			  parent < 0 ? directory : t->path);
	if (make)
		directory_hint(e, -err, directory);
	if (err == -ENOENT && make)
		error_hint(e, "its parent directory does not exist: make it first, with mkdir -p");
	else if (err == -ELOOP || (err == -ENOTDIR && parent >= 0))
		error_hint(e, "symbolic links in there are not followed, nor those of other users "
			      "that lead there");
	return err;
}

void tree_close(struct tree *t)
{
	file_close(t->fd);
	free(t->path);
	free(t->windows);
	*t = (struct tree){ .fd = -1 };
}

FILE *tree_read_list(const char *directory, const char *host, const char *name)
{
	struct error ignored;
	struct tree t;
	int fd = -1;

	if (!tree_open(&t, directory, host, false, &ignored))
		fd = directory_open_file(t.fd, name);
	tree_close(&t);
	return file_stream(fd);
}

int tree_write_list(const char *directory, const char *host, const char *name,
		    int (*write)(FILE *out, void *context, struct error *e), void *context,
		    struct error *e)
{
	char path[PATH_MAX];
	struct tree t;
	int err = tree_open(&t, directory, host, false, e);

	if (!err) {
		snprintf(path, sizeof(path), "%s/%s", t.path, name);
		err = directory_write_file(t.fd, name, path, DIRECTORY_DURABLE, write, context, e);
	}
	tree_close(&t);
	return err;
}

int tree_visit(int fd, int (*visit)(int fd, const char *name, void *context), void *context)
{
	DIR *stream = fdopendir(fd);
	struct dirent *entry;
	int err = 0;

	if (!stream) {
		err = -errno;
		close(fd);
		return err;
	}
	while (!err && (errno = 0, entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = visit(fd, entry->d_name, context);
	err = err ?: -errno;
	closedir(stream);
	return err;
}

struct scan {
	struct tree *t;
	uint64_t first_s, last_s, day_s;
	bool clean;
};

static int visit_file(int fd, const char *name, void *context)
{
	struct scan *scan = context;
	struct tree *t = scan->t;
	struct tree_window w = { 0 };
	struct stat status;

	if (!window_parse_file(name, scan->day_s, &w.name))
		return 0;
	/* Whoever drops windows may do so meanwhile. */
	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	w.bytes = (uint64_t)status.st_blocks * BLOCK_SIZE;
	return array_add(t->windows, t->count, t->room, w);
}

static int visit_day(int fd, const char *name, void *context)
{
	struct scan *scan = context;
	int day;

	if (!window_parse_day(name, &scan->day_s) ||
	    scan->day_s < scan->first_s - scan->first_s % WINDOW_DAY_S ||
	    scan->day_s > scan->last_s)
		return 0;
	day = directory_open_in(fd, name, false);
	if (day < 0) /* removed meanwhile, a symbolic link, or no directory */
		return day == -ENOENT || day == -ELOOP || day == -ENOTDIR ? 0 : day;
	if (scan->clean)
		directory_remove_temporaries(day);
	return tree_visit(day, visit_file, scan);
}

ORDER(by_time, struct tree_window, LEAST(name.start_s) ?: MOST(name.grain_s) ?: LEAST(name.sum))

/* True if a window is to be ignored beside one of this grain. */
static bool is_finer(const struct window_name *w, unsigned int grain_s)
{
	return w->sum ? w->grain_s <= grain_s : w->grain_s < grain_s;
}

size_t tree_choose(const struct tree *t, uint64_t since_s, uint64_t until_s,
		   unsigned int most_grain_s, bool *chosen)
{
	uint64_t summed_until = 0;
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct window_name *w = &t->windows[i].name;
		uint64_t end_s = w->start_s + w->grain_s;

		chosen[i] = false;
		if (window_is_apart(w) || t->windows[i].covered || w->start_s < summed_until ||
		    w->start_s >= until_s || end_s <= since_s)
			continue;
		if (w->sum &&
		    (w->grain_s > most_grain_s || w->start_s < since_s || end_s > until_s))
			continue;
		if (w->sum)
			summed_until = end_s;
		chosen[i] = true;
		count++;
	}
	return count;
}

int tree_scan(struct tree *t, uint64_t first_s, uint64_t last_s, bool clean, struct error *e)
{
	struct scan scan = { .t = t, .first_s = first_s, .last_s = last_s, .clean = clean };
	int fd = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	uint64_t ten_end = 0, hour_end = 0;

	t->count = 0;
	if (clean)
		directory_remove_temporaries(t->fd);
	err = fd < 0 ? -errno : tree_visit(fd, visit_day, &scan);
	if (err)
		return error_set(e, -err, "cannot read %s", t->path);
	if (t->count)
		qsort(t->windows, t->count, sizeof(*t->windows), by_time);
	/* Coarse windows begin at whole tens of minutes and hours. */
	for (size_t i = 0; i < t->count; i++) {
		struct window_name *w = &t->windows[i].name;

		if (window_is_apart(w))
			continue;
		t->windows[i].covered = (w->start_s < hour_end && is_finer(w, WINDOW_HOUR_S)) ||
					(w->start_s < ten_end && is_finer(w, WINDOW_10MIN_S));
		if (w->grain_s == WINDOW_HOUR_S && !w->sum)
			hour_end = w->start_s + WINDOW_HOUR_S;
		if (w->grain_s == WINDOW_10MIN_S && !w->sum)
			ten_end = w->start_s + WINDOW_10MIN_S;
	}
	return 0;
}

int tree_open_day(const struct tree *t, uint64_t time_s, bool make)
{
	char name[WINDOW_DAY_SIZE];

	return window_day_name(time_s, name) ? directory_open_in(t->fd, name, make) : -EOVERFLOW;
}

struct writing {
	const struct profile *p;
	const char *path; /* for messages */
};

static int write_pprof(FILE *out, void *context, struct error *e)
{
	const struct format_options options = { 0 };
	const struct writing *w = context;
	int err = format_by_name("pprof")->write(w->p, &options, out, e);

	/* It does not know which file it is. */
	return !err || err == -ENOMEM ? err
				      : error_set(e, errno ?: -err, "cannot write %s", w->path);
}

static int copy_bytes(FILE *out, void *context, struct error *e)
{
	const int *fd = context;
	char bytes[65536];
	off_t at = 0;
	ssize_t size;

	while ((size = pread(*fd, bytes, sizeof(bytes), at)) > 0 &&
	       fwrite(bytes, 1, size, out) == (size_t)size)
		at += size;
	return size < 0 ? error_set(e, errno, "cannot read a window") : 0;
}

/* Has write() fill the file of a window. */
static int write_file(const struct tree *t, const struct window_name *w, bool replace,
		      int (*write)(FILE *out, void *context, struct error *e), void *context,
		      struct error *e)
{
	char path[PATH_MAX], name[WINDOW_NAME_SIZE];
	int day = tree_open_day(t, w->start_s, true), err;

	if (day == -EOVERFLOW)
		return error_set(e, EOVERFLOW, "%s: a window with an invalid time", t->path);
	window_file_name(w, name);
	tree_path(t, w, path, sizeof(path));
	if (day < 0) {
		err = error_set(e, -day, "cannot write %s", path);
	} else {
		err = directory_write_file(day, name, path,
					   DIRECTORY_DURABLE | (replace ? 0 : DIRECTORY_NEW), write,
					   context, e);
		close(day);
	}
	if (err == -ENOSPC || err == -EDQUOT)
		error_hint(e, "make room there, or keep less: --retain-bytes, --retain-days");
	else if (err == -ELOOP || err == -ENOTDIR)
		error_hint(e, "give another directory");
	else
		directory_hint(e, -err, t->path);
	return err;
}

int tree_write(const struct tree *t, const struct profile *p, const struct window_name *w,
	       bool replace, struct error *e)
{
	char path[PATH_MAX];

	tree_path(t, w, path, sizeof(path));
	return write_file(t, w, replace, write_pprof, &(struct writing){ p, path }, e);
}

static bool has_bytes(const struct tree *t, const struct window_name *w, int fd)
{
	char name[WINDOW_NAME_SIZE], bytes[2][65536];
	int day = tree_open_day(t, w->start_s, false), file;
	off_t at = 0;
	ssize_t size, other;

	window_file_name(w, name);
	file = day < 0 ? day : directory_open_file(day, name);
	file_close(day);
	if (file < 0)
		return false;
	do {
		size = pread(fd, bytes[0], sizeof(bytes[0]), at);
		other = pread(file, bytes[1], sizeof(bytes[1]), at);
		at += size;
	} while (size > 0 && size == other && memcmp(bytes[0], bytes[1], size) == 0);
	close(file);
	return size == 0 && other == 0;
}

int tree_write_bytes(const struct tree *t, int fd, const struct window_name *w, struct error *e)
{
	int err = write_file(t, w, false, copy_bytes, &fd, e);

	return err == -EEXIST && has_bytes(t, w, fd) ? 0 : err;
}

int tree_remove(const struct tree *t, const struct window_name *w, struct error *e)
{
	char path[PATH_MAX], name[WINDOW_NAME_SIZE];
	int day = tree_open_day(t, w->start_s, false), err = day < 0 ? day : 0;

	window_file_name(w, name);
	if (!err && unlinkat(day, name, 0))
		err = -errno;
	file_close(day);
	if (!err || err == -ENOENT)
		return 0;
	tree_path(t, w, path, sizeof(path));
	return error_set(e, -err, "cannot remove %s", path);
}

int tree_rename(const struct tree *t, const struct window_name *from, const struct window_name *to,
		struct error *e)
{
	char path[PATH_MAX], name[WINDOW_NAME_SIZE], new_name[WINDOW_NAME_SIZE];
	int day = tree_open_day(t, from->start_s, false), err = day < 0 ? day : 0;

	window_file_name(from, name);
	window_file_name(to, new_name);
	if (!err && renameat(day, name, day, new_name))
		err = -errno;
	file_close(day);
	if (!err)
		return 0;
	tree_path(t, from, path, sizeof(path));
	return error_set(e, -err, "cannot rename %s", path);
}

void tree_path(const struct tree *t, const struct window_name *w, char *path, size_t size)
{
	char day[WINDOW_DAY_SIZE], name[WINDOW_NAME_SIZE];

	if (!window_day_name(w->start_s, day))
		day[0] = '\0';
	window_file_name(w, name);
	snprintf(path, size, "%s/%s/%s", t->path, day, name);
}
