// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Writes counts as a CPU profile of gperftools: words, then the mappings as text. */
#include "lib/profil.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "lib/last_error.h"
#include "lib/export.h"
#include "lib/proc.h"
#include "lib/samples.h"

#define NS_PER_US 1000

/* --- Words, of the size of the process's pointers --- */

static int add_word(struct bytes *out, size_t width, uint64_t value)
{
	uint32_t narrow = value;

	if (width == sizeof(narrow))
		return profil__bytes_add(out, &narrow, sizeof(narrow));
	return profil__bytes_add(out, &value, sizeof(value));
}

static int add_words(struct bytes *out, size_t width, const uint64_t *words, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = add_word(out, width, words[i]);
	return err;
}

/* A count that exceeds a word becomes several samples, which readers add up. */
static int add_sample(struct bytes *out, size_t width, uint64_t pc, uint64_t count)
{
	uint64_t most = width == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
	int err = 0;

	while (count && !err) {
		uint64_t words[] = { count < most ? count : most, 1, pc };

		err = add_words(out, width, words, 3);
		count -= words[0];
	}
	return err;
}

static int add_counts(struct bytes *out, size_t width, const struct samples *samples)
{
	const uint64_t header[] = { 0, 3, 0, (samples->period_ns + NS_PER_US / 2) / NS_PER_US, 0 };
	const uint64_t trailer[] = { 0, 1, 0 };
	int err = add_words(out, width, header, 5);

	for (size_t i = 0; i < samples->count && !err; i++) {
		const struct sample *s = &samples->all[i];

		/* Address 0 would end the file for readers. */
		err = add_sample(out, width, s->address ? s->address : 1, s->count);
	}
	return err ?: add_words(out, width, trailer, 3);
}

/* --- The process --- */

/* Returns the size of an address of the process, in bytes. */
static size_t word_width(pid_t pid)
{
	unsigned char ident[EI_NIDENT] = { 0 };
	char path[PROC_PATH_SIZE];
	ssize_t size;
	int fd;

	if (!pid)
		return sizeof(void *);
	profil__proc_path(path, pid, "exe");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return sizeof(void *);
	size = read(fd, ident, sizeof(ident));
	close(fd);
	return size == sizeof(ident) && ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
}

/* Whether a line of /proc/PID/maps is code of the executable. */
static bool is_main_code(const char *line, size_t length, const char *executable)
{
	size_t name = strlen(executable);
	const char *mode = memchr(line, ' ', length);

	return name && length > name && line[length - name - 1] == ' ' &&
	       memcmp(line + length - name, executable, name) == 0 && mode && mode[3] == 'x';
}

/* Adds the lines that are code of the executable, or the others. */
static int add_lines(struct bytes *out, const struct bytes *maps, const char *executable,
		     bool main_code)
{
	const char *line = maps->data, *end = maps->data + maps->size;
	int err = 0;

	while (line < end && !err) {
		const char *newline = memchr(line, '\n', end - line);

		if (!newline)
			break;
		if (is_main_code(line, newline - line, executable) == main_code)
			err = profil__bytes_add(out, line, newline + 1 - line);
		line = newline + 1;
	}
	return err;
}

/* The executable's code comes first: readers take the first mapping for the program. */
static int add_maps(struct bytes *out, const struct samples *samples)
{
	char executable[4096];
	char path[PROC_PATH_SIZE];
	ssize_t length;
	int err;

	profil__proc_path(path, samples->pid, "exe");
	length = readlink(path, executable, sizeof(executable) - 1);
	executable[length < 0 ? 0 : length] = '\0';
	err = add_lines(out, &samples->maps, executable, true);
	return err ?: add_lines(out, &samples->maps, executable, false);
}

static int write_samples(const struct samples *samples, const char *path)
{
	struct bytes out = { 0 };
	int err = add_counts(&out, word_width(samples->pid), samples);

	err = err ?: add_maps(&out, samples);
	err = err ?: profil__bytes_write(&out, path);
	free(out.data);
	return err;
}

EXPORT int profil_write_gperftools(struct profil_session *session, const char *path)
{
	return profil__samples_write_session(session, write_samples, path);
}

EXPORT int profil_write_gperftools_buffer(const unsigned short *buffer, size_t bufsiz,
					  size_t offset, unsigned int scale, const char *path)
{
	return profil__samples_write_buffer(buffer, bufsiz, offset, scale, write_samples, path);
}
