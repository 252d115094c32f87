// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/signals.h"

int file_read_line(const char *path, char *line, size_t size)
{
	FILE *in = fopen(path, "re");
	int err = 0;

	if (!in)
		return -errno;
	if (!fgets(line, size, in))
		err = ferror(in) ? -EIO : -ENODATA;
	else
		line[strcspn(line, "\n")] = '\0';
	fclose(in);
	return err;
}

int file_open_in(int root, const char *path, int flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int fd = root < 0 ? open(path, flags | O_CLOEXEC)
			  : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int file_reopen_regular(int opened, struct stat *status)
{
	struct stat ignored;
	char path[64];
	int fd = -EINVAL;

	status = status ?: &ignored;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", opened);
	if (fstat(opened, status) == 0 && S_ISREG(status->st_mode)) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(opened);
	return fd;
}

int file_open_regular(int root, const char *path, struct stat *status)
{
	int fd = file_open_in(root, path, O_PATH);

	return fd < 0 ? fd : file_reopen_regular(fd, status);
}

/* Whether the path names a pipe or device, which a file must not replace. */
static bool is_special(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* In /proc, for one, no file can be created either. */
static bool directory_exists(const char *path)
{
	char *copy = strdup(path);
	bool exists = copy && access(dirname(copy), F_OK) == 0;

	free(copy);
	return exists;
}

/* Sets the error and, for some codes, a hint. Returns -code. */
static int cannot_write(struct error *e, int code, const char *path)
{
	error_set(e, code, "cannot write %s", path);
	if (code == ENOENT && !directory_exists(path))
		error_hint(e, "the directory does not exist: make it first, with mkdir -p");
	else if (code == ENOENT || code == EROFS || code == EACCES || code == EPERM ||
		 code == ENOSPC || code == EDQUOT)
		error_hint(e, "give a file in another directory");
	return -code;
}

/*
 * Sets *target, to be free()d, to the file that a symbolic link leads to, so that the link itself
 * is not replaced; without a link, to the path. The kernel resolves the link, by open(2): in
 * directories like /tmp it refuses another user's link (fs.protected_symlinks); readlink(2) does
 * not.
 */
static int follow_link(const char *path, char **target)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	char link[64];

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd < 0) {
		*target = strdup(path); /* a new file, or a dangling link */
	} else {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		*target = realpath(link, NULL);
		close(fd);
	}
	return *target ? 0 : -ENOMEM;
}

/* Tries to create a file without a name, which leaves nothing behind. Returns 0 or an errno. */
static int try_directory(char *target)
{
	int fd = open(dirname(target), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EOPNOTSUPP || errno == EISDIR ? 0 : errno;
	close(fd);
	return 0;
}

int file_check_writable(const char *path, struct error *e)
{
	struct stat status;
	char *target;
	int code;

	if (is_special(path))
		return access(path, W_OK) ? cannot_write(e, errno, path) : 0;
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		return cannot_write(e, EISDIR, path);
	code = -follow_link(path, &target);
	if (!code) {
		code = try_directory(target);
		free(target);
	}
	return code ? cannot_write(e, code, path) : 0;
}

/* Has write() fill a stream on fd, which is closed in any case. */
static int write_stream(int fd, const char *path,
			int (*write)(FILE *out, void *context, struct error *e), void *context,
			struct error *e)
{
	FILE *out = fdopen(fd, "w");
	int err;

	if (!out) {
		err = cannot_write(e, errno, path);
		close(fd);
		return err;
	}
	errno = 0;
	err = write(out, context, e);
	if (!err && (ferror(out) || fflush(out)))
		err = cannot_write(e, errno ?: EIO, path);
	if (fclose(out) && !err)
		err = cannot_write(e, errno, path);
	return err;
}

static int write_beside(const char *path, int (*write)(FILE *out, void *context, struct error *e),
			void *context, struct error *e)
{
	struct held_signals held;
	char *temporary;
	int fd, err;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return error_no_memory(e);
	signals_hold(&held);
	fd = mkostemp(temporary, O_CLOEXEC);
	err = fd < 0 ? cannot_write(e, errno, path) : write_stream(fd, path, write, context, e);
	if (!err && rename(temporary, path))
		err = cannot_write(e, errno, path);
	if (fd >= 0 && err)
		unlink(temporary);
	signals_release(&held);
	free(temporary);
	return err;
}

/*
 * A pipe without a reader is an error: waiting for one could not be interrupted where signals are
 * blocked. In directories like /tmp a pipe may be another user's, who must not get the data.
 */
static int write_special(const char *path, int (*write)(FILE *out, void *context, struct error *e),
			 void *context, struct error *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0 && errno == ENXIO)
		return error_set(e, 0, "cannot write %s: no process reads from this pipe", path);
	if (fd < 0)
		return cannot_write(e, errno, path);
	if (fstat(fd, &status) || (S_ISFIFO(status.st_mode) && status.st_uid != geteuid())) {
		close(fd);
		return error_set(e, 0, "cannot write %s: the pipe belongs to another user", path);
	}
	fcntl(fd, F_SETFL, 0);
	return write_stream(fd, path, write, context, e);
}

int file_write(const char *path, int (*write)(FILE *out, void *context, struct error *e),
	       void *context, struct error *e)
{
	char *target;
	int err;

	if (is_special(path))
		return write_special(path, write, context, e);
	err = follow_link(path, &target);
	if (err)
		return cannot_write(e, -err, path);
	err = write_beside(target, write, context, e);
	free(target);
	return err;
}

int file_replace(const char *path, int (*write)(FILE *out, void *context, struct error *e),
		 void *context, struct error *e)
{
	struct stat status;

	if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
		return error_set(e, 0, "cannot write %s: it is not a regular file", path);
	return write_beside(path, write, context, e);
}
