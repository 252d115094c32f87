// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/directory.h"

/* As file_read_text(); is_line: up to the first newline at least. */
static ssize_t read_text(int directory, const char *path, char *text, size_t size, bool is_line)
{
	int fd = openat(directory, path, O_RDONLY | O_CLOEXEC), err = 0;
	size_t length = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n > 0 && length < size - 1 && !(is_line && memchr(text, '\n', length))) {
		n = read(fd, text + length, size - 1 - length);
		if (n < 0)
			err = -errno;
		else
			length += n;
	}
	close(fd);
	text[length] = '\0';
	return err ?: (ssize_t)length;
}

ssize_t file_read_text(int directory, const char *path, char *text, size_t size)
{
	return read_text(directory, path, text, size, false);
}

int file_read_line(const char *path, char *line, size_t size)
{
	ssize_t length = read_text(AT_FDCWD, path, line, size, true);

	if (length > 0)
		line[strcspn(line, "\n")] = '\0';
	return length > 0 ? 0 : length ?: -ENODATA;
}

bool file_find_number(const char *path, const char *text, uint64_t *number)
{
	char beginning[4096];
	const char *at = NULL;

	if (file_read_text(AT_FDCWD, path, beginning, sizeof(beginning)) > 0)
		at = strstr(beginning, text);
	return at && sscanf(at + strlen(text), "%" SCNu64, number) == 1;
}

FILE *file_stream(int fd)
{
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");

	if (!stream && fd >= 0)
		close(fd);
	return stream;
}

DIR *file_directory_stream(int fd)
{
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream && fd >= 0)
		close(fd);
	return stream;
}

/* Whether the path names a pipe or device, which a file must not replace. */
static bool is_special(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static void add_hint(struct error *e, int code, const char *path)
{
	char *copy = strdup(path);
	const char *directory = copy ? dirname(copy) : ".";

	/* In /proc, for one, no file can be created either. */
	if (code == ENOENT && access(directory, F_OK))
		error_hint(e, "the directory does not exist: make it first, with mkdir -p");
	else if (code == EROFS)
		directory_hint(e, code, directory);
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

int file_open_kallsyms(void)
{
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd >= 0 && pread(fd, &byte, 1, 0) > 0)
		return fd;
	file_close(fd);
	fd = open("/proc/1/root/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int file_check_writable(const char *path, struct error *e)
{
	struct stat status;
	int code, fd;
	char *target;

	if (is_special(path))
		return access(path, W_OK) ? cannot_write(e, errno, path) : 0;
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		return cannot_write(e, EISDIR, path);
	code = -follow_link(path, &target);
	if (!code) {
		/* Without a name, so that nothing is left behind. */
		fd = open(dirname(target), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		else if (errno != EOPNOTSUPP && errno != EISDIR)
			code = errno;
		free(target);
	}
	return code ? cannot_write(e, code, path) : 0;
}

/*
 * Opens a pipe or device to write in place. A pipe without a reader is an error: waiting for one
 * could not be interrupted where signals are blocked. In directories like /tmp a pipe may be
 * another user's, who must not get the data. Returns a descriptor, or a negative errno and sets e.
 */
static int open_special(const char *path, struct error *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0 && errno == ENXIO) {
		error_set(e, 0, "cannot write %s: no process reads from this pipe", path);
		return -ENXIO;
	}
	if (fd < 0)
		return cannot_write(e, errno, path);
	if (fstat(fd, &status) || (S_ISFIFO(status.st_mode) && status.st_uid != geteuid())) {
		close(fd);
		error_set(e, 0, "cannot write %s: the pipe belongs to another user", path);
		return -EPERM;
	}
	fcntl(fd, F_SETFL, 0);
	return fd;
}

int file_write(const char *path, unsigned int flags,
	       int (*write)(FILE *out, void *context, struct error *e), void *context,
	       struct error *e)
{
	unsigned int rules = flags & FILE_SAFE_DIRECTORY ? FILE_NO_FOREIGN_LINKS : 0;
	char *target = NULL, *copy;
	int err = 0, directory, fd;

	if (flags & FILE_IN_PLACE && is_special(path)) {
		fd = open_special(path, e);
		if (fd < 0)
			return fd;
		err = directory_fill_file(fd, path, false, write, context, e);
	} else {
		if (flags & FILE_FOLLOW_LINK)
			err = follow_link(path, &target);
		else
			target = strdup(path);
		copy = target ? strdup(target) : NULL;
		directory = -ENOMEM;
		if (copy)
			directory = file_open_by_rules(-1, dirname(copy), O_RDONLY | O_DIRECTORY,
						       rules);
		if (err || directory < 0) {
			err = error_set(e, err ? -err : -directory, "cannot write %s", path);
		} else {
			const char *slash = strrchr(target, '/');

			err = directory_write_file(directory, slash ? slash + 1 : target, target, 0,
						   write, context, e);
			close(directory);
		}
		free(copy);
		free(target);
	}
	if (err && !*e->hint)
		add_hint(e, -err, path);
	return err;
}
