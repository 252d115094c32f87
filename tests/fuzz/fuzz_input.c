// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for the layer below all readers: files are read, decompressed and split into
 * lines, with a moving window. Lines and bytes do not depend on the order of reading.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/input_file.h"
#include "util/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int begin(int fd, struct input *in, struct error *e)
{
	char path[64];

	if (lseek(fd, 0, SEEK_SET))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return input_open(path, NULL, in, e);
}

/* A hash of the content without line ends, or 0 when it cannot be read to its end. */
static uint64_t hash_lines(int fd)
{
	uint64_t hash = 1;
	struct input in;
	struct error e;
	const char *line;
	size_t size;
	int err;

	if (begin(fd, &in, &e))
		return 0;
	while (!(err = input_line(&in, &line, &size, &e)) && line)
		for (size_t i = 0; i < size; i++)
			hash = hash_u64(line[i], hash);
	input_close(&in);
	return err ? 0 : hash;
}

/* The same, from all of it in memory at once. */
static uint64_t hash_whole(int fd)
{
	uint64_t hash = 1;
	struct input in;
	struct error e;
	int err;

	if (begin(fd, &in, &e))
		return 0;
	err = input_need_all(&in, &e);
	for (size_t i = 0; i < in.size; i++) {
		bool last = i + 1 == in.size;

		if (in.bytes[i] == '\n' ||
		    (in.bytes[i] == '\r' && (last || in.bytes[i + 1] == '\n')))
			continue;
		hash = hash_u64((char)in.bytes[i], hash);
	}
	input_close(&in);
	return err ? 0 : hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("input", 0);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	if (hash_lines(fd) != hash_whole(fd)) {
		fputs("lines and bytes differ\n", stderr);
		abort();
	}
	close(fd);
	return 0;
}
