// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Reads of ELF files what DCPI files describe; without an ELF library, as libprofil links libc
 * alone.
 */
#include "lib/segments.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/proc.h"
#include "util/order.h"

/*
 * More than any real file has.
 * Bound: files: program headers of a mapped file; then: it has no build ID and no segments; seen:
 * not seen.
 */
#define HEADERS_MAX 1024
/* Bound: files: bytes of its notes; then: a build ID behind them is not found; seen: not seen. */
#define NOTES_MAX 65536

/* Where an ELF file is read from: a file, or the memory of a process. */
struct source {
	int fd; /* -1: from memory */
	pid_t pid;
	uint64_t base, size; /* of the mapping in memory */
};

/* Not by mapping the file: it may be truncated meanwhile, and reading it would raise SIGBUS. */
static bool read_at(const struct source *s, uint64_t offset, void *to, size_t size)
{
	if (s->fd < 0) {
		struct iovec local = { to, size };
		struct iovec remote = { (void *)(uintptr_t)(s->base + offset), size };

		if (offset > s->size || size > s->size - offset || s->base + offset > UINTPTR_MAX)
			return false;
		return process_vm_readv(s->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
	}
	return offset <= INT64_MAX && pread(s->fd, to, size, offset) == (ssize_t)size;
}

/*
 * Returns the program headers of an ELF file in this machine's byte order, which the caller
 * releases by free(). NULL: none.
 */
static struct elf_segment *read_headers(const struct source *s, struct elf_header *h)
{
	const uint8_t order = BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
	uint8_t head[sizeof(Elf64_Ehdr)];
	struct elf_segment *headers = NULL;
	uint8_t *bytes;
	size_t size;

	/* The header of 32 bits is smaller, but not with the program headers that follow. */
	if (!read_at(s, 0, head, sizeof(head)) || !elf_header_read(h, head, sizeof(head)))
		return NULL;
	size = elf_segment_size(h);
	if (h->data != order || (h->class != ELFCLASS32 && h->class != ELFCLASS64) ||
	    h->segment_size != size || !h->segment_count || h->segment_count > HEADERS_MAX)
		return NULL;
	bytes = malloc(h->segment_count * size);
	if (bytes && read_at(s, h->segments, bytes, h->segment_count * size))
		headers = calloc(h->segment_count, sizeof(*headers));
	for (size_t i = 0; headers && i < h->segment_count; i++)
		headers[i] = elf_segment_read(h, bytes + i * size, size);
	free(bytes);
	return headers;
}

/* Searches the note segments, whose sizes are not trusted, for the build ID. */
static int read_notes(struct image *image, const struct source *s, const struct elf_header *h,
		      const struct elf_segment *headers)
{
	uint8_t *notes = malloc(NOTES_MAX);
	size_t left = NOTES_MAX; /* of all notes together */

	if (!notes)
		return -ENOMEM;
	for (size_t i = 0; i < h->segment_count && !*image->id; i++) {
		const struct elf_segment *segment = &headers[i];
		const uint8_t *id = NULL;
		size_t size;

		if (segment->type != PT_NOTE || segment->size > left)
			continue;
		left -= segment->size;
		if (read_at(s, segment->offset, notes, segment->size))
			id = elf_find_build_id(h, notes, segment->size, segment->align, &size);
		for (size_t k = 0; id && k < size && k < IMAGE_ID_MAX; k++)
			sprintf(image->id + 2 * k, "%02x", id[k]);
	}
	free(notes);
	return 0;
}

/* Returns 0, also for what is no ELF file, or -ENOMEM. */
static int read_elf(struct image *image, const struct source *s)
{
	uint64_t start = UINT64_MAX, limit = 0;
	struct elf_header h;
	struct elf_segment *headers = read_headers(s, &h);
	int err;

	if (!headers)
		return 0;
	err = read_notes(image, s, &h, headers);
	for (size_t i = 0; i < h.segment_count; i++) {
		const struct elf_segment *segment = &headers[i];

		if (segment->type != PT_LOAD)
			continue;
		headers[image->segment_count++] = *segment;
		if (!(segment->flags & PF_X))
			continue;
		start = MIN(start, segment->address);
		limit = MAX(limit, segment->address + segment->size);
	}
	if (start < limit) {
		image->text_start = start;
		image->text_size = limit - start;
	}
	free(image->segments);
	image->segments = headers;
	return err;
}

/* By the inode alone: some file systems have another device in stat(2) than in /proc/PID/maps. */
static bool is_same_file(const struct stat *status, const struct proc_map *map)
{
	return S_ISREG(status->st_mode) && status->st_ino == map->inode;
}

static int read_file(struct image *image, pid_t pid, const struct proc_map *map)
{
	char path[4200], root[PROC_PATH_SIZE];
	struct source s = { .fd = -1 };
	struct stat status;
	int err = 0;

	/* In the process's own root directory, if that can be accessed. */
	profil__proc_path(root, pid, "root");
	if (!pid || access(root, F_OK))
		*root = '\0';
	snprintf(path, sizeof(path), "%s%s", root, map->path);
	/* A device must not even be opened. */
	if (stat(path, &status) || !is_same_file(&status, map))
		return 0;
	image->mtime = status.st_mtime;
	if (image->segment_count)
		return 0;
	s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (s.fd < 0)
		return 0;
	if (fstat(s.fd, &status) == 0 && is_same_file(&status, map))
		err = read_elf(image, &s);
	close(s.fd);
	return err;
}

int profil__image_read(struct image *image, pid_t pid, const struct maps *maps, uint32_t number)
{
	const struct proc_map *map = &maps->all[number];
	bool vdso = strncmp(map->path, "[vdso", 5) == 0;
	size_t first = number; /* the mapping of the ELF header */
	int err = 0;

	*image = (struct image){ 0 };
	while (first < maps->count && (maps->images[first] != number || maps->all[first].offset))
		first++;
	if (first < maps->count && (map->inode || vdso)) {
		const struct source s = {
			.fd = -1,
			/* The first thread may have ended. */
			.pid = pid ? pid : syscall(SYS_gettid),
			.base = maps->all[first].start,
			.size = maps->all[first].limit - maps->all[first].start,
		};

		err = read_elf(image, &s);
	}
	if (!err && map->inode && !*image->id)
		err = read_file(image, pid, map);
	return err;
}

void profil__image_free(struct image *image)
{
	free(image->segments);
	*image = (struct image){ 0 };
}

bool profil__image_address(const struct image *image, uint64_t offset, uint64_t *address)
{
	for (size_t i = 0; i < 2 * image->segment_count; i++) { /* executable ones first */
		const struct elf_segment *s = &image->segments[i % image->segment_count];

		if (!(s->flags & PF_X) == (i >= image->segment_count) && offset >= s->offset &&
		    offset - s->offset < s->size) {
			*address = offset - s->offset + s->address;
			return true;
		}
	}
	return false;
}
