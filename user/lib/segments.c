// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Reads of ELF files what DCPI files describe; without an ELF library, as libprofil links libc
 * alone. */
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

/* More than any real file has. */
#define HEADERS_MAX 1024
#define NOTES_MAX   65536

/* Where an ELF file is read from: a file, or the memory of a process. */
struct source {
	int fd; /* -1: from memory */
	pid_t pid;
	uint64_t base, size; /* of the mapping in memory */
};

/* A program header of 32 or 64 bits. */
struct header {
	uint32_t type, flags;
	uint64_t offset, address, size, align;
};

/* --- Bytes --- */

static bool read_memory(const struct source *s, uint64_t offset, void *to, size_t size)
{
	struct iovec local = { to, size };
	struct iovec remote = { (void *)(uintptr_t)(s->base + offset), size };

	if (offset > s->size || size > s->size - offset || s->base + offset > UINTPTR_MAX)
		return false;
	return process_vm_readv(s->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* Not by mapping the file: it may be truncated meanwhile, and reading it would raise SIGBUS. */
static bool read_at(const struct source *s, uint64_t offset, void *to, size_t size)
{
	if (s->fd < 0)
		return read_memory(s, offset, to, size);
	return offset <= INT64_MAX && pread(s->fd, to, size, offset) == (ssize_t)size;
}

/* --- ELF --- */

static bool is_elf(const unsigned char ident[EI_NIDENT])
{
	const unsigned char order = BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;

	return memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_DATA] == order &&
	       (ident[EI_CLASS] == ELFCLASS32 || ident[EI_CLASS] == ELFCLASS64);
}

static struct header header_of(bool wide, const void *bytes)
{
	const Elf32_Phdr *p32 = bytes;
	const Elf64_Phdr *p64 = bytes;

	if (wide)
		return (struct header){ p64->p_type,  p64->p_flags,  p64->p_offset,
					p64->p_vaddr, p64->p_filesz, p64->p_align };
	return (struct header){ p32->p_type,  p32->p_flags,  p32->p_offset,
				p32->p_vaddr, p32->p_filesz, p32->p_align };
}

/* Finds the offset and the number of the program headers. False: no ELF file, or an invalid one. */
static bool find_headers(const struct source *s, bool *wide, uint64_t *offset, size_t *count)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} e;

	if (!read_at(s, 0, &e.e32, sizeof(e.e32)) || !is_elf(e.ident))
		return false;
	*wide = e.ident[EI_CLASS] == ELFCLASS64;
	if (*wide && !read_at(s, 0, &e.e64, sizeof(e.e64)))
		return false;
	*offset = *wide ? e.e64.e_phoff : e.e32.e_phoff;
	*count = *wide ? e.e64.e_phnum : e.e32.e_phnum;
	if ((*wide ? e.e64.e_phentsize : e.e32.e_phentsize) !=
	    (*wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return false;
	return *count && *count <= HEADERS_MAX;
}

/* Returns the program headers, which the caller releases by free(); NULL: none. */
static struct header *read_headers(const struct source *s, size_t *count)
{
	struct header *headers = NULL;
	uint64_t offset;
	size_t size;
	char *bytes;
	bool wide;

	if (!find_headers(s, &wide, &offset, count))
		return NULL;
	size = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	bytes = malloc(*count * size);
	if (bytes && read_at(s, offset, bytes, *count * size))
		headers = calloc(*count, sizeof(*headers));
	for (size_t i = 0; headers && i < *count; i++)
		headers[i] = header_of(wide, bytes + i * size);
	free(bytes);
	return headers;
}

static void add_segments(struct image *image, const struct header *headers, size_t count,
			 bool executable)
{
	for (size_t i = 0; i < count; i++) {
		const struct header *h = &headers[i];

		if (h->type == PT_LOAD && !!(h->flags & PF_X) == executable)
			image->segments[image->segment_count++] =
				(struct image_segment){ h->offset, h->size, h->address };
	}
}

static void note_text(struct image *image)
{
	uint64_t start = UINT64_MAX, limit = 0;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *s = &image->segments[i];

		if (s->address < start)
			start = s->address;
		if (s->address + s->size > limit)
			limit = s->address + s->size;
	}
	if (start >= limit)
		return;
	image->text_start = start;
	image->text_size = limit - start;
}

static void set_id(struct image *image, const unsigned char *bytes, size_t size)
{
	if (size > IMAGE_ID_MAX)
		size = IMAGE_ID_MAX;
	for (size_t i = 0; i < size; i++)
		sprintf(image->id + 2 * i, "%02x", bytes[i]);
}

/* Looks for a build ID in a note segment, whose sizes are not trusted. */
static void find_id(struct image *image, const unsigned char *notes, size_t size, uint64_t align)
{
	const size_t unit = align == 8 ? 8 : 4;

	while (!*image->id && size >= sizeof(Elf32_Nhdr)) {
		size_t name_at = sizeof(Elf32_Nhdr), text_at, end;
		Elf32_Nhdr note;

		memcpy(&note, notes, sizeof(note));
		if (note.n_namesz > size || note.n_descsz > size)
			return;
		text_at = (name_at + note.n_namesz + unit - 1) & -unit;
		end = text_at + note.n_descsz;
		if (end > size)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0)
			set_id(image, notes + text_at, note.n_descsz);
		end = (end + unit - 1) & -unit;
		if (end > size)
			return;
		notes += end;
		size -= end;
	}
}

static int read_notes(struct image *image, const struct source *s, const struct header *headers,
		      size_t count)
{
	unsigned char *notes = malloc(NOTES_MAX);
	size_t left = NOTES_MAX; /* of all notes together */

	if (!notes)
		return -ENOMEM;
	for (size_t i = 0; i < count && !*image->id; i++) {
		const struct header *h = &headers[i];

		if (h->type != PT_NOTE || h->size > left)
			continue;
		left -= h->size;
		if (read_at(s, h->offset, notes, h->size))
			find_id(image, notes, h->size, h->align);
	}
	free(notes);
	return 0;
}

/* Returns 0, also for what is no ELF file, or -ENOMEM. */
static int read_elf(struct image *image, const struct source *s)
{
	size_t count;
	struct header *headers = read_headers(s, &count);
	int err;

	if (!headers)
		return 0;
	image->segments = calloc(count, sizeof(*image->segments));
	if (!image->segments) {
		free(headers);
		return -ENOMEM;
	}
	add_segments(image, headers, count, true);
	note_text(image);
	add_segments(image, headers, count, false);
	err = read_notes(image, s, headers, count);
	free(headers);
	return err;
}

/* --- Memory and file --- */

/* Returns the mapping of the ELF header; NULL: none. */
static const struct map *first_page(const struct maps *maps, uint32_t number)
{
	for (size_t i = number; i < maps->count; i++)
		if (maps->all[i].image == number && maps->all[i].offset == 0)
			return &maps->all[i];
	return NULL;
}

static int read_mapped(struct image *image, pid_t pid, const struct map *map)
{
	const struct source s = {
		.fd = -1,
		.pid = pid ? pid : syscall(SYS_gettid), /* the first thread may have ended */
		.base = map->start,
		.size = map->limit - map->start,
	};

	return read_elf(image, &s);
}

/* Makes the path of a mapping's file, in the process's own root directory if that can be accessed.
 */
static void root_path(char *path, size_t size, pid_t pid, const struct map *map)
{
	char root[PROC_PATH_SIZE];

	profil__proc_path(root, pid, "root");
	if (!pid || access(root, F_OK))
		*root = '\0';
	snprintf(path, size, "%s%s", root, map->path);
}

/* By the inode alone: some file systems have another device in stat(2) than in /proc/PID/maps. */
static bool is_same(const struct stat *status, const struct map *map)
{
	return S_ISREG(status->st_mode) && status->st_ino == map->inode;
}

static int read_file(struct image *image, pid_t pid, const struct map *map)
{
	struct source s = { .fd = -1 };
	struct stat status;
	char path[4200];
	int err = 0;

	root_path(path, sizeof(path), pid, map);
	/* A device must not even be opened. */
	if (stat(path, &status) || !is_same(&status, map))
		return 0;
	image->mtime = status.st_mtime;
	if (image->segment_count)
		return 0;
	s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (s.fd < 0)
		return 0;
	if (fstat(s.fd, &status) == 0 && is_same(&status, map))
		err = read_elf(image, &s);
	close(s.fd);
	return err;
}

int profil__image_read(struct image *image, pid_t pid, const struct maps *maps, uint32_t number)
{
	const struct map *map = &maps->all[number], *first = first_page(maps, number);
	bool vdso = strncmp(map->path, "[vdso", 5) == 0;
	int err = 0;

	*image = (struct image){ 0 };
	if (first && (map->inode || vdso))
		err = read_mapped(image, pid, first);
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
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *s = &image->segments[i];

		if (offset >= s->offset && offset - s->offset < s->size) {
			*address = offset - s->offset + s->address;
			return true;
		}
	}
	return false;
}
