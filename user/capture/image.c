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
#include "util/file.h"
#include "util/proc_path.h"

int image_keep(int fd)
{
	if (fd <= sysconf(_SC_OPEN_MAX) / 4 * 3)
		return fd < 0 ? -1 : fd;
	close(fd);
	return -1;
}

static int open_root(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", tid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int open_mapped(const struct sideband_record *record, struct stat *status)
{
	char path[128];
	int fd, root;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, record->tid,
		 record->start, record->limit);
	fd = file_open_regular(-1, path, status);
	if (fd < 0 && record->name[0] == '/') {
		root = open_root(record->tid);
		if (root < 0)
			return -1;
		fd = file_open_regular(root, record->name, status);
		close(root);
	}
	return image_keep(fd);
}

static bool same_root(const struct root *a, const struct root *b)
{
	return a->namespace == b->namespace && a->device == b->device && a->inode == b->inode;
}

/* proc: a process's directory in /proc */
static int identify_root(const char *proc, struct root *root)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "%s/ns/mnt", proc);
	if (stat(path, &status))
		return -errno;
	root->namespace = status.st_ino;
	snprintf(path, sizeof(path), "%s/root", proc);
	if (stat(path, &status))
		return -errno;
	root->device = status.st_dev;
	root->inode = status.st_ino;
	return 0;
}

int image_root(struct process_table *table, pid_t tid, int *root)
{
	struct root ours, its = { .fd = -1 };
	char proc[32];

	*root = -1;
	snprintf(proc, sizeof(proc), "/proc/%d", tid);
	if (identify_root("/proc/self", &ours) || identify_root(proc, &its))
		return -ENOENT;
	if (same_root(&ours, &its))
		return 0;
	for (size_t i = 0; i < table->root_count && *root < 0; i++)
		if (same_root(&table->roots[i], &its))
			*root = table->roots[i].fd;
	if (*root >= 0)
		return 0;
	its.fd = image_keep(open_root(tid));
	if (its.fd < 0)
		return -ENOENT;
	if (array_reserve(&table->roots, &table->root_room, table->root_count + 1, sizeof(its))) {
		close(its.fd);
		return -ENOMEM;
	}
	table->roots[table->root_count++] = its;
	*root = its.fd;
	return 0;
}

/* Returns a memfd with a copy of the process's vDSO, an ELF file of a few pages; -1: failed. */
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

static const char *image_name(const struct sideband_record *record)
{
	/* 32-bit programs have another vDSO. */
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

static bool same_path(const char *a, const char *b)
{
	size_t size = proc_path_size(a);

	return size == proc_path_size(b) && strncmp(a, b, size) == 0;
}

static uint64_t hash_path(const char *path)
{
	return hash_bytes(path, proc_path_size(path), 0);
}

struct wanted_image {
	const char *name;
	const struct sideband_record *record;
};

static bool is_wanted_image(const void *images, uint32_t id, const void *key)
{
	const struct capture_image *image = &((const struct capture_image *)images)[id];
	const struct wanted_image *wanted = key;

	return (wanted->name[0] == '[' || is_same_file(image, wanted->record)) &&
	       same_path(image->path, wanted->name);
}

static uint32_t find_image(const struct process_table *table, const char *name,
			   const struct sideband_record *record)
{
	const struct wanted_image wanted = { name, record };

	return index_find(&table->by_path, hash_path(name), is_wanted_image, table->images,
			  &wanted);
}

static int add_image(struct process_table *table, const char *name,
		     const struct sideband_record *record, int fd)
{
	struct capture_image image = {
		/* Deleted or not, the open file is the one that had this name. */
		.path = strndup(name, fd < 0 ? strlen(name) : proc_path_size(name)),
		.build_id_size = record->build_id_size,
		.fd = fd,
		.root = -1,
		.device = record->device,
		.inode = record->inode,
	};

	if (name[0] == '/')
		image_root(table, record->tid, &image.root);
	if (!image.path ||
	    array_reserve(&table->images, &table->image_room, table->image_count + 1,
			  sizeof(image)) ||
	    index_add(&table->by_path, hash_path(name), table->image_count)) {
		free(image.path);
		return -ENOMEM;
	}
	if (image.build_id_size)
		memcpy(image.build_id, record->build_id, image.build_id_size);
	table->images[table->image_count++] = image;
	table->path_bytes += strlen(image.path);
	return 0;
}

/* Returns a descriptor of the image's file, or -1. Sets the record's device and inode. */
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

int image_index(struct process_table *table)
{
	int err = 0;

	index_free(&table->by_path);
	for (size_t i = 0; i < table->image_count && !err; i++)
		err = index_add(&table->by_path, hash_path(table->images[i].path), i);
	return err;
}

bool image_is_plain_memory(const struct capture_image *image)
{
	char magic[4];

	return strncmp(image->path, "/memfd:", strlen("/memfd:")) == 0 && image->fd >= 0 &&
	       (pread(image->fd, magic, sizeof(magic), 0) != sizeof(magic) ||
		memcmp(magic, "\177ELF", sizeof(magic)) != 0);
}

unsigned int image_bits(const struct capture_image *image)
{
	enum {
		EI_CLASS_OFFSET = 4,
		CLASS_32 = 1
	}; /* elf(5) */
	char class;

	if (image->fd < 0 || pread(image->fd, &class, 1, EI_CLASS_OFFSET) != 1)
		return 0;
	return class == CLASS_32 ? 32 : 64;
}
