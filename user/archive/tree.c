// SPDX-License-Identifier: GPL-2.0-only
#include "archive/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "util/array.h"
#include "util/file_set.h"
#include "util/sum.h"

#define DIRECTORY_MODE 0700
#define FILE_MODE      0600
#define BLOCK_SIZE     512 /* of st_blocks */

static int cannot_write(struct error *e, int code, const char *directory, const char *file)
{
	error_set(e, code, "cannot write %s/%s", directory, file);
	if (code == ENOSPC || code == EDQUOT)
		error_hint(e, "make room there, or keep less: --retain-bytes, --retain-days");
	else if (code == EROFS || code == EACCES || code == EPERM)
		error_hint(e, "give another directory");
	return -code;
}

/* Makes the directory's entry in its parent durable. */
static int sync_parent(const char *path)
{
	char parent[4096];
	int fd, err;

	snprintf(parent, sizeof(parent), "%s/..", path);
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 || fsync(fd) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

static int make_directory(const char *path, struct error *e)
{
	if (mkdir(path, DIRECTORY_MODE) == 0)
		return sync_parent(path) ? error_set(e, errno, "cannot write %s", path) : 0;
	if (errno == EEXIST)
		return 0;
	error_set(e, errno, "cannot make the directory %s", path);
	if (errno == ENOENT)
		error_hint(e, "its parent directory does not exist: make it first, with mkdir -p");
	return -EINVAL;
}

int tree_open(struct tree *t, const char *directory, const char *host, bool make, struct error *e)
{
	char *name = strdup(*host ? host : "unknown");
	int err = 0;

	*t = (struct tree){ .fd = -1 };
	if (name)
		directory_clean_name(name);
	if (!name || asprintf(&t->path, "%s/%s", directory, name) < 0) {
		t->path = NULL;
		err = error_no_memory(e);
	}
	free(name);
	if (!err && make)
		err = make_directory(directory, e) ?: make_directory(t->path, e);
	if (err)
		return err;
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->fd >= 0)
		return 0;
	return error_set(e, errno, "cannot read %s", t->path);
}

void tree_close(struct tree *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->path);
	free(t->windows);
	*t = (struct tree){ .fd = -1 };
}

/* --- Reading --- */

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

	if (scan->clean && strncmp(name, WINDOW_TEMPORARY, strlen(WINDOW_TEMPORARY)) == 0)
		unlinkat(fd, name, 0);
	if (!window_parse_file(name, scan->day_s, &w.name))
		return 0;
	/* Whoever drops windows may do so meanwhile. */
	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	w.bytes = (uint64_t)status.st_blocks * BLOCK_SIZE;
	if (array_reserve(&t->windows, &t->room, t->count + 1, sizeof(*t->windows)))
		return -ENOMEM;
	t->windows[t->count++] = w;
	return 0;
}

/* What file_write() leaves of a file with a dot, such as .state, when it is killed. */
static bool is_temporary(const char *name)
{
	size_t size = strlen(name), suffix = strlen(".XXXXXX");

	return name[0] == '.' && size > suffix + 1 && name[size - suffix] == '.';
}

static int visit_day(int fd, const char *name, void *context)
{
	struct scan *scan = context;
	int day;

	if (scan->clean && is_temporary(name))
		unlinkat(fd, name, 0);
	if (!window_parse_day(name, &scan->day_s) ||
	    scan->day_s < scan->first_s - scan->first_s % WINDOW_DAY_S ||
	    scan->day_s > scan->last_s)
		return 0;
	day = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (day < 0) /* removed meanwhile, a symbolic link, or no directory */
		return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? 0 : -errno;
	return tree_visit(day, visit_file, scan);
}

static int by_time(const void *one, const void *other)
{
	const struct window_name *a = &((const struct tree_window *)one)->name;
	const struct window_name *b = &((const struct tree_window *)other)->name;

	return compare_u64(a->start_s, b->start_s)     ?:
		       compare_u64(b->grain_s, a->grain_s) ?:
		       compare_u64(a->sum, b->sum);
}

/* Whether a window is to be ignored beside one of this grain. */
static bool is_finer(const struct window_name *w, unsigned int grain_s)
{
	return w->sum ? w->grain_s <= grain_s : w->grain_s < grain_s;
}

/* They are in order, and coarse ones begin at whole tens of minutes and hours. */
static void note_covered(struct tree *t)
{
	uint64_t ten_end = 0, hour_end = 0;

	for (size_t i = 0; i < t->count; i++) {
		struct window_name *w = &t->windows[i].name;

		if (w->damaged)
			continue;
		t->windows[i].covered = (w->start_s < hour_end && is_finer(w, WINDOW_HOUR_S)) ||
					(w->start_s < ten_end && is_finer(w, WINDOW_10MIN_S));
		if (w->grain_s == WINDOW_HOUR_S && !w->sum)
			hour_end = w->start_s + WINDOW_HOUR_S;
		if (w->grain_s == WINDOW_10MIN_S && !w->sum)
			ten_end = w->start_s + WINDOW_10MIN_S;
	}
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
		if (w->damaged || t->windows[i].covered || w->start_s < summed_until ||
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

	t->count = 0;
	err = fd < 0 ? -errno : tree_visit(fd, visit_day, &scan);
	if (err)
		return error_set(e, -err, "cannot read %s", t->path);
	if (t->count)
		qsort(t->windows, t->count, sizeof(*t->windows), by_time);
	note_covered(t);
	return 0;
}

/* --- Writing --- */

int tree_open_day(const struct tree *t, uint64_t time_s, bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char name[WINDOW_DAY_SIZE];
	int fd;

	if (!window_day_name(time_s, name))
		return -EOVERFLOW;
	fd = openat(t->fd, name, flags);
	if (fd >= 0 || errno != ENOENT || !make)
		return fd < 0 ? -errno : fd;
	if ((mkdirat(t->fd, name, DIRECTORY_MODE) && errno != EEXIST) || fsync(t->fd))
		return -errno;
	fd = openat(t->fd, name, flags);
	return fd < 0 ? -errno : fd;
}

/* Fills a new file, durably; fd is closed in any case. */
static int fill(int fd, const struct profile *p, struct error *e)
{
	const struct format_options options = { 0 };
	FILE *out = fdopen(fd, "w");
	int err;

	if (!out) {
		close(fd);
		return error_no_memory(e);
	}
	errno = 0;
	err = format_by_name("pprof")->write(p, &options, out, e);
	if (err == -ENOMEM) {
		fclose(out);
		return err;
	}
	if (err || ferror(out) || fflush(out) || fsync(fd))
		err = error_set(e, errno ?: EIO, "write");
	if (fclose(out) && !err)
		err = error_set(e, errno, "write");
	return err;
}

/* Some file systems cannot rename so: the lock excludes other writers there. */
static int rename_new(int day, const char *temporary, const char *name)
{
	struct stat status;

	if (renameat2(day, temporary, day, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (fstatat(day, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(day, temporary, day, name) ? -errno : 0;
}

static int write_in_day(int day, const struct profile *p, const char *name, bool replace,
			struct error *e)
{
	char temporary[64];
	int fd, err;

	snprintf(temporary, sizeof(temporary), WINDOW_TEMPORARY "%d", (int)getpid());
	unlinkat(day, temporary, 0);
	fd = openat(day, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    FILE_MODE);
	if (fd < 0)
		return -errno;
	err = fill(fd, p, e);
	if (!err && replace)
		err = renameat(day, temporary, day, name) ? -errno : 0;
	else if (!err)
		err = rename_new(day, temporary, name);
	if (err) {
		unlinkat(day, temporary, 0);
		return err;
	}
	return fsync(day) ? -errno : 0;
}

int tree_write(const struct tree *t, const struct profile *p, const struct window_name *w,
	       bool replace, struct error *e)
{
	char file[WINDOW_DAY_SIZE + WINDOW_NAME_SIZE], name[WINDOW_NAME_SIZE];
	int day = tree_open_day(t, w->start_s, true), err = day;

	window_file_name(w, name);
	if (day >= 0) {
		err = write_in_day(day, p, name, replace, e);
		close(day);
	}
	if (!err)
		return 0;
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (!window_day_name(w->start_s, file))
		return error_set(e, -err, "%s: a window with an invalid time", t->path);
	strcat(strcat(file, "/"), name);
	return cannot_write(e, -err, t->path, file);
}

void tree_path(const struct tree *t, const struct window_name *w, char *path, size_t size)
{
	char day[WINDOW_DAY_SIZE], name[WINDOW_NAME_SIZE];

	if (!window_day_name(w->start_s, day))
		day[0] = '\0';
	window_file_name(w, name);
	snprintf(path, size, "%s/%s/%s", t->path, day, name);
}
