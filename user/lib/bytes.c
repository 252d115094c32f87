// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/last_error.h"

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

int profil__bytes_read(struct bytes *bytes, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	ssize_t size = 1;

	if (fd < 0)
		return profil__system_error("cannot open %s", path);
	while (!(err = reserve(bytes, 4096)) && size) {
		size = read(fd, bytes->data + bytes->size, bytes->room - bytes->size);
		if (size > 0) {
			bytes->size += size;
		} else if (size < 0 && errno != EINTR) {
			err = profil__system_error("cannot read");
			break;
		}
	}
	close(fd);
	return err;
}
