// SPDX-License-Identifier: GPL-2.0-only
#include "format/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/gzip.h"
#include "util/array.h"

/* No profile is larger, and /dev/zero is. */
#define INPUT_MAX ((size_t)2 << 30)

/* What a file of a few KiB may inflate to; a larger one: that many times its size. */
#define INFLATED_MIN   ((size_t)64 << 20)
#define INFLATED_TIMES 256

struct bytes {
	uint8_t *start;
	size_t size;
	size_t room;
};

int input_error(const struct input *in, size_t offset, struct error *e, const char *format, ...)
{
	char reason[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return error_set(e, 0, "%s: at byte %zu%s: %s", in->path, offset,
			 in->inflated ? " of the inflated data" : "", reason);
}

static int read_all(int fd, const char *path, struct bytes *b, struct error *e)
{
	for (;;) {
		ssize_t n;

		if (b->size > INPUT_MAX)
			return error_set(e, EFBIG, "%s: more than 2 GiB", path);
		if (array_reserve(&b->start, &b->room, b->size + 65536, 1))
			return error_no_memory(e);
		n = read(fd, b->start + b->size, b->room - b->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(e, errno, "cannot read %s", path);
		if (n == 0)
			return 0;
		b->size += n;
	}
}

static int check_file(int fd, const char *path, struct bytes *b, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_set(e, errno, "cannot read %s", path);
	if (S_ISDIR(st.st_mode)) {
		error_set(e, EISDIR, "cannot read %s", path);
		error_mend(e, "name one of the files in it");
		return -EISDIR;
	}
	/* One byte more, so that the end is seen without growing. */
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size <= INPUT_MAX &&
	    array_reserve(&b->start, &b->room, st.st_size + 65536 + 1, 1))
		return error_no_memory(e);
	return 0;
}

static int read_path(const char *path, struct bytes *b, struct error *e)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0) {
		enum error_kind kind =
			errno == EACCES || errno == EPERM ? ERROR_NOT_PERMITTED : ERROR_FAILED;

		return error_set_kind(e, kind, errno, "cannot open %s", name);
	}
	err = check_file(fd, name, b, e);
	if (!err)
		err = read_all(fd, name, b, e);
	if (!standard)
		close(fd);
	return err;
}

static size_t inflated_max(size_t size)
{
	if (size > INPUT_MAX / INFLATED_TIMES)
		return INPUT_MAX;
	return size * INFLATED_TIMES > INFLATED_MIN ? size * INFLATED_TIMES : INFLATED_MIN;
}

static int inflate_bytes(const char *name, struct bytes *b, struct error *e)
{
	struct bytes inflated = { 0 };
	char reason[256];
	int err;

	err = gzip_inflate(b->start, b->size, inflated_max(b->size), &inflated.start,
			   &inflated.size, reason, sizeof(reason));
	if (err)
		return error_set(e, err == -ENOMEM ? ENOMEM : 0, "%s: %s", name, reason);
	free(b->start);
	*b = inflated;
	return 0;
}

int input_load(const char *path, struct input *in, struct error *e)
{
	struct bytes b = { 0 };
	int err = read_path(path, &b, e);

	*in = (struct input){ .path = strcmp(path, "-") == 0 ? "standard input" : path };
	if (!err && gzip_detect(b.start, b.size)) {
		in->inflated = true;
		err = inflate_bytes(in->path, &b, e);
	}
	if (!err && b.size == 0) {
		err = error_set(e, 0, "%s is empty", in->path);
		error_mend(e, "record again: whatever wrote it was killed before it was done");
	}
	if (err) {
		free(b.start);
		return err;
	}
	in->bytes = b.start;
	in->size = b.size;
	return 0;
}

void input_free(struct input *in)
{
	free((void *)in->bytes);
	*in = (struct input){ 0 };
}
