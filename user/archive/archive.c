// SPDX-License-Identifier: GPL-2.0-only
#include "archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/tree.h"
#include "format/format.h"
#include "util/clock.h"
#include "util/directory.h"

#define LOCK_NAME ".lock"

/*
 * How many seconds that are taken follow each other at most: after the clock was set back by so
 * many windows. Windows that replace all of a time make much longer steps.
 * Bound: machine: seconds that are taken when a window is named, as after the clock was set back;
 * then: the window is not written; again: at the next window; share: none; seen: windows_failed,
 * and the log.
 */
#define MOST_STEPS 100000

struct archive {
	struct tree tree;
	int lock;
};

/*
 * How long a process that was killed keeps the lock, at most: its keeper writes what it had begun.
 * Bound: pace.
 */
#define KEEPER_NS (10 * NS_PER_S)
/* Bound: pace. */
#define KEEPER_LOOK_MS 10

/* Locks the host's directory; the file names the holder for others. */
static int lock_directory(struct archive *a, pid_t holder, struct error *e)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + KEEPER_NS;
	struct stat status;

	a->lock = openat(a->tree.fd, LOCK_NAME,
			 O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (a->lock < 0) {
		int err = error_set(e, errno, "cannot write %s/" LOCK_NAME, a->tree.path);

		directory_hint(e, -err, a->tree.path);
		return err;
	}
	/* A hard link can make any file the lock, which is written. */
	if (fstat(a->lock, &status) || !S_ISREG(status.st_mode) || status.st_nlink > 1) {
		error_set(e, 0, "cannot write %s/" LOCK_NAME ": it is not a file of its own",
			  a->tree.path);
		error_hint(e, "remove it: profild makes it again");
		return -EINVAL;
	}
	while (flock(a->lock, LOCK_EX | LOCK_NB)) {
		pid_t other;
		char pid[32];
		ssize_t size;

		if (errno != EWOULDBLOCK)
			return error_set(e, errno, "cannot lock %s/" LOCK_NAME, a->tree.path);
		size = pread(a->lock, pid, sizeof(pid) - 1, 0);
		pid[size > 0 ? size : 0] = '\0';
		other = strtol(pid, NULL, 10);
		if (other > 0 && kill(other, 0) && errno == ESRCH &&
		    clock_ns(CLOCK_MONOTONIC) < end_ns) {
			poll(NULL, 0, KEEPER_LOOK_MS);
			continue;
		}
		error_set_kind(e, ERROR_FAILED, 0, "%s is in use by process %ld", a->tree.path,
			       (long)other);
		error_hint(e, "one profild --continuous writes there: stop it, or give another "
			      "directory");
		return -EBUSY;
	}
	/* What matters is the lock: its file may be empty on a full disk. */
	if (ftruncate(a->lock, 0) == 0)
		dprintf(a->lock, "%d\n", (int)holder);
	return 0;
}

int archive_open(const char *directory, const char *host, pid_t holder, struct archive **result,
		 struct error *e)
{
	struct archive *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return error_no_memory(e);
	a->lock = -1;
	err = tree_open(&a->tree, directory, host, true, e);
	err = err ?: lock_directory(a, holder, e);
	err = err ?: tree_scan(&a->tree, 0, UINT64_MAX, true, e);
	if (err)
		archive_close(a);
	else
		*result = a;
	return err;
}

bool archive_has_writer(const char *directory, const char *host)
{
	struct tree t;
	struct error e;
	bool locked = false;
	int fd = -1;

	if (tree_open(&t, directory, host, false, &e) == 0)
		fd = openat(t.fd, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		locked = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
		close(fd);
	}
	tree_close(&t);
	return locked;
}

void archive_close(struct archive *a)
{
	if (!a)
		return;
	if (a->lock >= 0)
		close(a->lock);
	tree_close(&a->tree);
	free(a);
}

/* Moves *time_s to the first second from there on that no coarser window covers. */
static int next_uncovered(struct archive *a, uint64_t *time_s, struct error *e)
{
	uint64_t from_s;

	do {
		const struct tree *t = &a->tree;
		int err = tree_scan(&a->tree, *time_s, *time_s, false, e);

		if (err)
			return err;
		from_s = *time_s;
		for (size_t i = 0; i < t->count; i++) {
			const struct window_name *w = &t->windows[i].name;
			uint64_t end_s = w->start_s + w->grain_s;

			if (w->grain_s > WINDOW_FINE_S && !w->sum && !w->damaged &&
			    w->start_s <= from_s && end_s > *time_s)
				*time_s = end_s;
		}
	} while (*time_s > from_s);
	return 0;
}

struct encoding {
	int fd;
	void (*step)(void *context);
	void *context;
};

static ssize_t encode_some(void *context, const char *bytes, size_t size)
{
	const struct encoding *w = context;
	ssize_t written;

	if (w->step)
		w->step(w->context);
	written = write(w->fd, bytes, size);
	return MAX(written, 0); /* as fopencookie(3) wants it */
}

int archive_encode(const struct profile *p, void (*step)(void *context), void *context, int *fd,
		   struct error *e)
{
	const struct format_options options = { 0 };
	struct encoding w = { memfd_create("profil-window", MFD_CLOEXEC), step, context };
	FILE *out = w.fd < 0
			    ? NULL
			    : fopencookie(&w, "w", (cookie_io_functions_t){ .write = encode_some });
	int err;

	if (!out) {
		err = error_set(e, errno, "no memory for a window");
	} else {
		err = format_by_name("pprof")->write(p, &options, out, e);
		if (!err && ferror(out))
			err = -EIO;
		if (fclose(out) && !err)
			err = -errno;
		if (err && err != -ENOMEM)
			err = error_set(e, -err, "no memory for a window");
	}
	*fd = w.fd;
	if (err && w.fd >= 0)
		close(w.fd);
	return err;
}

int archive_write(struct archive *a, int fd, uint64_t time_ns, char *path, size_t size,
		  struct error *e)
{
	struct window_name w = { .start_s = time_ns / NS_PER_S, .grain_s = WINDOW_FINE_S };
	int err = -EEXIST;

	for (int i = 0; i < MOST_STEPS && err == -EEXIST; i++, w.start_s++) {
		err = next_uncovered(a, &w.start_s, e);
		/* Sums that would contain the window are removed: they are made again. */
		for (size_t j = 0; j < a->tree.count && !err; j++) {
			const struct window_name *sum = &a->tree.windows[j].name;

			if (sum->sum && sum->start_s <= w.start_s &&
			    sum->start_s + sum->grain_s > w.start_s)
				err = tree_remove(&a->tree, sum, e);
		}
		err = err ?: tree_write_bytes(&a->tree, fd, &w, e);
		if (!err && path)
			tree_path(&a->tree, &w, path, size);
	}
	return err;
}
