// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/pack.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"

void pack_bytes(struct pack *p, const void *bytes, size_t size)
{
	if (p->failed || array_reserve(&p->bytes, &p->room, p->size + size, 1)) {
		p->failed = true;
		return;
	}
	if (size)
		memcpy(p->bytes + p->size, bytes, size);
	p->size += size;
}

void pack_text(struct pack *p, const char *text)
{
	uint64_t size = strlen(text);

	pack_bytes(p, &size, sizeof(size));
	pack_bytes(p, text, size + 1);
}

int pack_write(const struct pack *p, int fd)
{
	size_t done = 0;

	if (p->failed)
		return -ENOMEM;
	if (ftruncate(fd, 0))
		return -errno;
	while (done < p->size) {
		ssize_t n = pwrite(fd, p->bytes + done, p->size - done, done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += MAX(n, 0);
	}
	return 0;
}

int pack_read(struct pack *p, int fd, size_t most)
{
	struct stat status;
	ssize_t n = 1;

	if (fstat(fd, &status))
		return -errno;
	if ((uint64_t)status.st_size > most)
		return -EBADMSG;
	if (array_reserve(&p->bytes, &p->room, status.st_size + 1, 1))
		return -ENOMEM;
	while (p->size < (size_t)status.st_size && n) {
		n = pread(fd, p->bytes + p->size, status.st_size - p->size, p->size);
		if (n < 0 && errno != EINTR)
			return -errno;
		p->size += MAX(n, 0);
	}
	return 0;
}

struct unpack unpack_begin(const struct pack *p)
{
	return (struct unpack){ p->bytes, p->bytes + p->size, false };
}

const void *unpack_array(struct unpack *u, uint64_t count, size_t size)
{
	const uint8_t *at = u->at;

	u->failed |= count > (size_t)(u->end - u->at) / size;
	if (u->failed)
		return NULL;
	u->at += count * size;
	return at;
}

void unpack_bytes(struct unpack *u, void *to, size_t size)
{
	const void *from = unpack_array(u, 1, size);

	if (from)
		memcpy(to, from, size);
	else
		memset(to, 0, size);
}

const char *unpack_text(struct unpack *u, size_t most)
{
	const char *text;
	uint64_t size;

	unpack_bytes(u, &size, sizeof(size));
	u->failed |= size > most;
	text = unpack_array(u, size + 1, 1);
	u->failed |= text && strnlen(text, size + 1) != size;
	return u->failed ? "" : text;
}
