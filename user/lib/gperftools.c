// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Writes counts as a CPU profile of gperftools: words, then the mappings as text. */
#include "lib/profil.h"

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
#include "util/elf_header.h"
#include "util/file.h"
#include "util/proc_maps.h"

#define NS_PER_US 1000

/* Adds words of the size of the process's pointers. */
static int add_words(struct bytes *out, size_t width, const uint64_t *words, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		uint32_t narrow = words[i];

		if (width == sizeof(narrow))
			err = profil__bytes_add(out, &narrow, sizeof(narrow));
		else
			err = profil__bytes_add(out, &words[i], sizeof(words[i]));
	}
	return err;
}

static int add_counts(struct bytes *out, size_t width, const struct samples *samples)
{
	const uint64_t header[] = { 0, 3, 0,
				    (samples->counting.tick_ns + NS_PER_US / 2) / NS_PER_US, 0 };
	const uint64_t trailer[] = { 0, 1, 0 };
	const uint64_t most = width == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
	int err = add_words(out, width, header, 5);

	for (size_t i = 0; i < samples->count && !err; i++) {
		uint64_t count = samples->all[i].count;

		/* A count that exceeds a word becomes several samples, which readers add up. */
		while (count && !err) {
			/* Address 0 would end the file for readers. */
			const uint64_t words[] = { count < most ? count : most, 1,
						   samples->all[i].address ?: 1 };

			err = add_words(out, width, words, 3);
			count -= words[0];
		}
	}
	return err ?: add_words(out, width, trailer, 3);
}

/* Returns the size of an address of the process, in bytes. */
static size_t word_width(pid_t pid)
{
	char path[PROC_PATH_SIZE];
	unsigned int bits;
	int fd;

	profil__proc_path(path, pid, "exe");
	fd = pid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return sizeof(void *);
	bits = elf_bits(fd);
	close(fd);
	return bits == 32 ? 4 : 8;
}

/* Adds the lines of /proc/PID/maps that are code of the executable, or the others. */
static int add_lines(struct bytes *out, const struct bytes *maps, const char *executable,
		     bool main_code)
{
	const char *line = maps->data, *end = maps->data + maps->size, *newline;
	int err = 0;

	while (line < end && !err && (newline = memchr(line, '\n', end - line))) {
		char *copy = strndup(line, newline - line);
		struct proc_map map;
		bool is_main;

		if (!copy)
			return profil__error(ENOMEM, "out of memory");
		is_main = *executable && proc_map_parse(copy, &map) && map.executable &&
			  strcmp(map.path, executable) == 0;
		free(copy);
		if (is_main == main_code)
			err = profil__bytes_add(out, line, newline + 1 - line);
		line = newline + 1;
	}
	return err;
}

static int write_bytes(FILE *out, void *context, struct error *e)
{
	const struct bytes *bytes = context;

	(void)e;
	fwrite(bytes->data, 1, bytes->size, out); /* file_write() checks for errors */
	return 0;
}

static int write_samples(const struct samples *samples, const char *path)
{
	char executable[4096] = "", exe[PROC_PATH_SIZE];
	struct bytes out = { 0 };
	struct error e = { 0 };
	int err = add_counts(&out, word_width(samples->pid), samples);

	profil__proc_path(exe, samples->pid, "exe");
	if (readlink(exe, executable, sizeof(executable) - 1) < 0)
		*executable = '\0';
	/* The executable's code comes first: readers take the first mapping for the program. */
	err = err ?: add_lines(&out, &samples->maps, executable, true);
	err = err ?: add_lines(&out, &samples->maps, executable, false);
	if (!err) {
		err = file_write(path, FILE_IN_PLACE, write_bytes, &out, &e);
		if (err)
			profil__error(-err, "%s", e.what);
	}
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
