// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Writes the counts of a session as a CPU profile of gperftools: words, then the mappings as text.
 */
#include "lib/profil.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/cell.h"
#include "lib/bytes.h"
#include "lib/error.h"
#include "lib/export.h"
#include "lib/fold.h"
#include "lib/process.h"
#include "lib/session.h"

#define US_PER_S 1000000

/* --- Words, of the width of the process's --- */

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

/* What is too much for one word makes several samples; readers add them up. */
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

/* The address that a cell begins with. Readers take address 0 for the end of the file. */
static uint64_t cell_address(const struct region *region, uint32_t cell)
{
	uint64_t address = region->offset;

	if (cell)
		address += cell_last_delta(cell, region->scale) + 1;
	return address ? address : 1;
}

static int add_region(struct bytes *out, size_t width, const struct region *region,
		      const uint64_t *counts)
{
	int err = 0;

	for (uint32_t i = 0; i < region->cell_count && !err; i++)
		if (counts[i])
			err = add_sample(out, width, cell_address(region, i), counts[i]);
	return err;
}

/* With the lock. */
static int add_counts(struct bytes *out, size_t width, struct profil_session *s)
{
	const uint64_t header[] = { 0, 3, 0, US_PER_S / s->hz, 0 };
	const uint64_t trailer[] = { 0, 1, 0 };
	int err = add_words(out, width, header, 5);

	profil__fold(s);
	for (size_t i = 0; i < s->plan.region_count && !err; i++) {
		const struct region *region = &s->plan.regions[i];

		err = add_region(out, width, region, s->counts + region->base);
	}
	return err ?: add_words(out, width, trailer, 3);
}

/* --- The process --- */

/* The name of a file in its folder in /proc. */
static void proc_path(char *path, size_t size, pid_t pid, const char *name)
{
	if (pid)
		snprintf(path, size, "/proc/%d/%s", pid, name);
	else
		snprintf(path, size, "/proc/thread-self/%s", name);
}

/* The bytes of an address of the process. */
static size_t word_width(pid_t pid)
{
	unsigned char ident[EI_NIDENT] = { 0 };
	char path[40];
	ssize_t size;
	int fd;

	if (!pid)
		return sizeof(void *);
	proc_path(path, sizeof(path), pid, "exe");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return sizeof(void *);
	size = read(fd, ident, sizeof(ident));
	close(fd);
	return size == sizeof(ident) && ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
}

/* Whether a line of /proc/PID/maps tells of code of the executable. */
static bool is_main_code(const char *line, size_t length, const char *executable)
{
	size_t name = strlen(executable);
	const char *mode = memchr(line, ' ', length);

	return name && length > name && line[length - name - 1] == ' ' &&
	       memcmp(line + length - name, executable, name) == 0 && mode && mode[3] == 'x';
}

/* Adds the lines that are the main executable's code, or those that are not. */
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

/*
 * The executable's code comes first: readers take the first mapping for the program. A process that
 * has ended has no mappings.
 */
static int add_maps(struct bytes *out, pid_t pid)
{
	struct bytes maps = { 0 };
	char executable[4096];
	char path[40];
	ssize_t length;
	int err = 0;

	proc_path(path, sizeof(path), pid, "exe");
	length = readlink(path, executable, sizeof(executable) - 1);
	executable[length < 0 ? 0 : length] = '\0';
	proc_path(path, sizeof(path), pid, "maps");
	if (profil__bytes_read(&maps, path) == 0) {
		err = add_lines(out, &maps, executable, true);
		err = err ?: add_lines(out, &maps, executable, false);
	}
	free(maps.data);
	return err;
}

EXPORT int profil_write_gperftools(struct profil_session *session, const char *path)
{
	struct bytes out = { 0 };
	struct guard guard;
	int code = errno;
	int err;

	profil__error_clear();
	err = profil__enter(&guard);
	if (err)
		return err;
	err = add_counts(&out, word_width(session->pid), session);
	profil__leave(&guard);
	err = err ?: add_maps(&out, session->pid);
	err = err ?: profil__bytes_write(&out, path);
	free(out.data);
	if (!err)
		profil__error_clear();
	errno = code;
	return err;
}
