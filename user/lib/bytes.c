// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/last_error.h"
#include "util/signals.h"

/* Makes room for `size` more bytes. */
static int reserve(struct bytes *bytes, size_t size)
{
	size_t room = bytes->room;
	char *data;

	if (size <= room - bytes->size)
		return 0;
	room += size > room / 2 ? size : room / 2;
	data = room > bytes->room ? realloc(bytes->data, room) : NULL;
	if (!data)
		return profil__error(ENOMEM, "out of memory");
	bytes->data = data;
	bytes->room = room;
	return 0;
}

int profil__bytes_add(struct bytes *bytes, const void *data, size_t size)
{
	int err = reserve(bytes, size);

	if (!err && size) {
		memcpy(bytes->data + bytes->size, data, size);
		bytes->size += size;
	}
	return err;
}

static int read_all(struct bytes *bytes, int fd)
{
	for (;;) {
		int err = reserve(bytes, 4096);
		ssize_t size;

		if (err)
			return err;
		size = read(fd, bytes->data + bytes->size, bytes->room - bytes->size);
		if (size == 0)
			return 0;
		if (size > 0)
			bytes->size += size;
		else if (errno != EINTR)
			return profil__system_error("cannot read");
	}
}

int profil__bytes_read(struct bytes *bytes, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return profil__system_error("cannot open %s", path);
	err = read_all(bytes, fd);
	close(fd);
	return err;
}

/* Closes the descriptor in any case. */
static int write_all(const struct bytes *bytes, int fd, const char *path)
{
	size_t written = 0;
	int err;

	while (written < bytes->size) {
		ssize_t size = write(fd, bytes->data + written, bytes->size - written);

		if (size > 0)
			written += size;
		else if (size == 0 || errno != EINTR)
			break;
	}
	err = written == bytes->size ? 0 : profil__system_error("cannot write %s", path);
	if (close(fd) && !err)
		err = profil__system_error("cannot write %s", path);
	return err;
}

/* Whether the path is a pipe or device, like /dev/stdout, that must not be replaced by a file. */
static bool is_special(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/*
 * A pipe without a reader is an error: waiting for one would stop the program. In directories like
 * /tmp a pipe may be another user's, who must not get the data.
 */
static int write_special(const struct bytes *bytes, const char *path)
{
	int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;

	if (fd < 0 && errno == ENXIO)
		return profil__error(ENXIO, "cannot write %s: no process reads from this pipe",
				     path);
	if (fd < 0)
		return profil__system_error("cannot open %s", path);
	if (fstat(fd, &status) || (S_ISFIFO(status.st_mode) && status.st_uid != geteuid())) {
		close(fd);
		return profil__error(EPERM, "cannot write %s: the pipe belongs to another user",
				     path);
	}
	fcntl(fd, F_SETFL, 0);
	return write_all(bytes, fd, path);
}

/* Writes to a temporary file, which is then renamed. */
static int write_renamed(const struct bytes *bytes, const char *path, char *temporary)
{
	struct held_signals held;
	int fd, err;

	signals_hold(&held);
	fd = mkostemp(temporary, O_CLOEXEC); /* of mode 0600 */
	if (fd < 0)
		err = profil__system_error("cannot write %s", path);
	else
		err = write_all(bytes, fd, path);
	if (!err && rename(temporary, path))
		err = profil__system_error("cannot write %s", path);
	if (err && fd >= 0)
		unlink(temporary);
	signals_release(&held);
	return err;
}

int profil__bytes_write(const struct bytes *bytes, const char *path)
{
	static const char suffix[] = ".XXXXXX";
	size_t size = strlen(path) + sizeof(suffix);
	char *temporary;
	int err;

	if (is_special(path))
		return write_special(bytes, path);
	temporary = malloc(size);
	if (!temporary)
		return profil__error(ENOMEM, "out of memory");
	snprintf(temporary, size, "%s%s", path, suffix);
	err = write_renamed(bytes, path, temporary);
	free(temporary);
	return err;
}
