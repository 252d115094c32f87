// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/directory.h"

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

static void add_hint(struct error *e, int code, const char *path)
{
	char *copy = strdup(path);

	if (code == ENOENT && !directory_exists(path))
		error_hint(e, "the directory does not exist: make it first, with mkdir -p");
	else if (code == EROFS && copy)
		directory_hint(e, code, dirname(copy));
	else if (code == ENOENT || code == EACCES || code == EPERM || code == ENOSPC ||
		 code == EDQUOT)
		error_hint(e, "give a file in another directory");
	else if (code == ELOOP)
		error_hint(e, "links form a loop, or another user owns one: name the file's own "
			      "directory");
	free(copy);
}

static int cannot_write(struct error *e, int code, const char *path)
{
	error_set(e, code, "cannot write %s", path);
	add_hint(e, code, path);
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
		return error_set(e, errno, "cannot write %s", path);
	if (fstat(fd, &status) || (S_ISFIFO(status.st_mode) && status.st_uid != geteuid())) {
		close(fd);
		return error_set(e, 0, "cannot write %s: the pipe belongs to another user", path);
	}
	fcntl(fd, F_SETFL, 0);
	return directory_fill_file(fd, path, false, write, context, e);
}

/* Writes the file, whose directory is open or has an error; closes the directory. */
static int write_in(int directory, const char *path,
		    int (*write)(FILE *out, void *context, struct error *e), void *context,
		    struct error *e)
{
	const char *slash = strrchr(path, '/');
	int err;

	if (directory < 0)
		return error_set(e, -directory, "cannot write %s", path);
	err = directory_write_file(directory, slash ? slash + 1 : path, path, 0, write, context, e);
	close(directory);
	return err;
}

/* Opens the directory of a file, by the function given. Returns a descriptor or -errno. */
static int open_parent(const char *path, int (*open_directory)(const char *path))
{
	char *copy = strdup(path);
	int fd = copy ? open_directory(dirname(copy)) : -ENOMEM;

	free(copy);
	return fd;
}

static int open_named_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int file_write(const char *path, int (*write)(FILE *out, void *context, struct error *e),
	       void *context, struct error *e)
{
	char *target;
	int err;

	if (is_special(path)) {
		err = write_special(path, write, context, e);
	} else {
		err = follow_link(path, &target);
		if (err)
			return cannot_write(e, -err, path);
		err = write_in(open_parent(target, open_named_directory), target, write, context,
			       e);
		free(target);
	}
	if (err && !*e->hint)
		add_hint(e, -err, path);
	return err;
}

int file_replace(const char *path, int (*write)(FILE *out, void *context, struct error *e),
		 void *context, struct error *e)
{
	int err = write_in(open_parent(path, directory_open), path, write, context, e);

	if (err && !*e->hint)
		add_hint(e, -err, path);
	return err;
}
