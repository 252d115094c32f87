// SPDX-License-Identifier: GPL-2.0-only
#include "capture/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"

/*
 * Opens a regular file and nothing else: to open a device may do something. The path is its
 * process's to change, so what was looked at is what is opened.
 */
static int open_regular(const char *path, struct stat *status)
{
	int fd = -1, place = open(path, O_PATH | O_CLOEXEC);
	char again[64];

	if (place < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	if (fstat(place, status) == 0 && S_ISREG(status->st_mode))
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(place);
	/* Some must be left for the threads' events, and for the result. */
	if (fd > sysconf(_SC_OPEN_MAX) / 4 * 3) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int open_mapped(const struct sideband_record *record, struct stat *status)
{
	char path[64 + 4096];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, record->tid,
		 record->start, record->limit);
	fd = open_regular(path, status);
	if (fd >= 0 || record->name[0] != '/')
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/root%s", record->tid, record->name);
	return open_regular(path, status);
}

/* A copy of the process's vDSO in a file of memory. It is an ELF file of a few pages. */
static int copy_vdso(const struct sideband_record *record)
{
	char path[64], page[4096];
	int memory, copy;

	snprintf(path, sizeof(path), "/proc/%d/mem", record->tid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return -1;
	copy = memfd_create("vdso", MFD_CLOEXEC);
	for (uint64_t at = record->start; copy >= 0 && at < record->limit; at += sizeof(page))
		if (pread(memory, page, sizeof(page), at) != sizeof(page) ||
		    write(copy, page, sizeof(page)) != sizeof(page)) {
			close(copy);
			copy = -1;
		}
	close(memory);
	return copy;
}

/* The name for what has no file: anonymous memory that holds code is most often a JIT's. */
static const char *image_name(const struct sideband_record *record)
{
	if (!record->name[0] || strcmp(record->name, "//anon") == 0)
		return "[anon]";
	/* Two kinds of programs have two kinds of vDSO. */
	if (strcmp(record->name, "[vdso]") == 0 && record->limit <= UINT32_MAX)
		return "[vdso32]";
	return record->name;
}

static bool is_same_file(const struct capture_image *image, const struct sideband_record *record)
{
	if (record->inode && image->inode)
		return image->inode == record->inode && image->device == record->device;
	return record->build_id_size && image->build_id_size == record->build_id_size &&
	       memcmp(image->build_id, record->build_id, image->build_id_size) == 0;
}

/* How long a path is without what /proc writes behind it when the file is gone. */
static size_t path_length(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t size = strlen(path), tail = strlen(deleted);

	return size > tail && strcmp(path + size - tail, deleted) == 0 ? size - tail : size;
}

static bool same_path(const char *a, const char *b)
{
	size_t size = path_length(a);

	return size == path_length(b) && strncmp(a, b, size) == 0;
}

static uint32_t find_image(const struct process_table *table, const char *name,
			   const struct sideband_record *record)
{
	for (uint32_t i = 0; i < table->image_count; i++) {
		const struct capture_image *image = &table->images[i];

		if ((name[0] == '[' || is_same_file(image, record)) && same_path(image->path, name))
			return i;
	}
	return INDEX_NONE;
}

static int add_image(struct process_table *table, const char *name,
		     const struct sideband_record *record, int fd)
{
	struct capture_image image = {
		/* Gone or not, the file that is held open is the one that had this name. */
		.path = strndup(name, fd < 0 ? strlen(name) : path_length(name)),
		.build_id_size = record->build_id_size,
		.fd = fd,
		.device = record->device,
		.inode = record->inode,
	};

	if (!image.path || array_reserve(&table->images, &table->image_room, table->image_count + 1,
					 sizeof(image))) {
		free(image.path);
		return -ENOMEM;
	}
	if (image.build_id_size)
		memcpy(image.build_id, record->build_id, image.build_id_size);
	table->images[table->image_count++] = image;
	return 0;
}

/* Opens what the image is made of. Tells in the record which file that is. */
static int open_image(const char *name, struct sideband_record *record)
{
	struct stat status;
	int fd;

	if (strncmp(name, "[vdso", 5) == 0)
		return copy_vdso(record);
	if (name[0] != '/')
		return -1;
	fd = open_mapped(record, &status);
	if (fd >= 0 && !record->inode) {
		record->device = status.st_dev;
		record->inode = status.st_ino;
	}
	return fd;
}

int image_of_mapping(struct process_table *table, const struct sideband_record *record,
		     uint32_t *image)
{
	const char *name = image_name(record);
	struct sideband_record found = *record;
	int fd;

	*image = find_image(table, name, record);
	if (*image != INDEX_NONE)
		return 0;
	fd = open_image(name, &found);
	*image = find_image(table, name, &found);
	if (*image == INDEX_NONE) {
		*image = table->image_count;
		if (add_image(table, name, &found, fd) == 0)
			return 0;
		*image = INDEX_NONE;
	}
	if (fd >= 0)
		close(fd);
	return *image == INDEX_NONE ? -ENOMEM : 0;
}
