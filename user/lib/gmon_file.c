// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Creates gmon.out: which path, and that it appears only when it is complete. */
#include "lib/gmon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_NAME "gmon.out"

/* How many temporary names are tried: other processes may be writing to this directory. */
#define TRIES 100

/* Not on the stack, which may be a small one of a signal handler that calls exit(). */
static char file_name[PATH_MAX], temporary_name[PATH_MAX];

void profil__gmon_print(const char *format, ...)
{
	char line[512] = "libprofil-gmon: ";
	size_t used = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - 1 - used, format, arguments);
	va_end(arguments);
	used = strlen(line);
	line[used++] = '\n';
	/* If this fails, there is no other way to report it. */
	while (write(STDERR_FILENO, line, used) < 0 && errno == EINTR)
		;
}

/* Writes to the descriptor and closes it. */
static int write_to(int fd, const struct gmon_histogram *h, const struct gmon_arcs *arcs)
{
	int err = profil__gmon_write(fd, h, arcs);

	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* Opens a temporary file beside `path`, with the mode that libc's runtime uses. */
static int open_temporary(const char *path)
{
	const int size = sizeof(temporary_name);
	int fd = -1;

	for (int i = 0; i < TRIES && fd < 0; i++) {
		if (snprintf(temporary_name, size, "%s.%d-%d", path, getpid(), i) >= size)
			return -ENAMETOOLONG;
		fd = open(temporary_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

static int write_beside(const char *path, const struct gmon_histogram *h,
			const struct gmon_arcs *arcs)
{
	int fd = open_temporary(path), err;

	if (fd < 0)
		return fd;
	err = write_to(fd, h, arcs);
	if (!err && rename(temporary_name, path))
		err = -errno;
	if (err)
		unlink(temporary_name);
	return err;
}

/*
 * Writes to an existing file in a directory where no other can be created: root may have created it
 * for a program that changes its directory and its user.
 */
static int write_into(const char *path, const struct gmon_histogram *h,
		      const struct gmon_arcs *arcs)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = ftruncate(fd, 0) ? -errno : profil__gmon_write(fd, h, arcs);
	if (err && ftruncate(fd, 0))
		profil__gmon_print("%s is incomplete", path);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int write_file(const char *path, const struct gmon_histogram *h,
		      const struct gmon_arcs *arcs)
{
	int err = write_beside(path, h, arcs), into;

	if (err == -EACCES || err == -EPERM || err == -EROFS) {
		into = write_into(path, h, arcs);
		if (into != -ENOENT)
			err = into;
	}
	return err;
}

/*
 * Sets file_name to GMON_OUT_PREFIX and the PID. Returns false if that is not set. A name that is
 * truncated here is too long for open(2) in any case.
 */
static bool name_by_prefix(void)
{
	const char *prefix = secure_getenv("GMON_OUT_PREFIX");

	if (prefix)
		snprintf(file_name, sizeof(file_name), "%s.%d", prefix, getpid());
	return prefix;
}

void profil__gmon_create_file(const struct gmon_histogram *h, const struct gmon_arcs *arcs)
{
	int err;

	if (name_by_prefix()) {
		err = write_file(file_name, h, arcs);
		if (!err)
			return;
		profil__gmon_print("cannot write %s: %s; writing %s", file_name,
				   strerrordesc_np(-err), DEFAULT_NAME);
	}
	err = write_file(DEFAULT_NAME, h, arcs);
	if (err)
		profil__gmon_print("cannot write %s: %s", DEFAULT_NAME, strerrordesc_np(-err));
}
