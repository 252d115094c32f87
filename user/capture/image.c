// SPDX-License-Identifier: GPL-2.0-only
#include "capture/image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/file_open.h"
#include "util/proc.h"
#include "util/proc_maps.h"

int image_keep(int fd)
{
	if (fd <= sysconf(_SC_OPEN_MAX) / 4 * 3)
		return fd < 0 ? -1 : fd;
	close(fd);
	return -1;
}

static bool same_root(const struct root *a, const struct root *b)
{
	return a->namespace == b->namespace && a->device == b->device && a->inode == b->inode;
}

static int identify_root(pid_t pid, struct root *root)
{
	struct stat status;

	if (stat(proc_path(pid, 0, "ns/mnt").text, &status))
		return -errno;
	root->namespace = status.st_ino;
	if (opener_stat_known(-1, proc_path(pid, 0, "root").text, &status))
		return -errno;
	root->device = status.st_dev;
	root->inode = status.st_ino;
	return 0;
}

int image_root(struct process_table *table, pid_t tid, int *root)
{
	struct root ours, its = { .fd = -1 };

	*root = -1;
	if (identify_root(PROC_SELF, &ours) || identify_root(tid, &its))
		return -ENOENT;
	if (same_root(&ours, &its))
		return 0;
	for (size_t i = 0; i < table->root_count && *root < 0; i++)
		if (same_root(&table->roots[i], &its)) {
			table->roots[i].pid = tid;
			*root = table->roots[i].fd;
		}
	if (*root >= 0)
		return 0;
	its.pid = tid;
	its.fd = image_keep(open(proc_path(tid, 0, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (its.fd < 0)
		return -ENOENT;
	if (array_add(table->roots, table->root_count, table->root_room, its)) {
		close(its.fd);
		return -ENOMEM;
	}
	*root = its.fd;
	return 0;
}

bool image_has_root(pid_t pid, const struct root *root)
{
	struct root its;

	return identify_root(pid, &its) == 0 && same_root(&its, root);
}

static const char *image_name(const struct sideband_record *record)
{
	/* 32-bit programs have another vDSO. */
	if (strcmp(record->name, "[vdso]") == 0 && record->limit <= UINT32_MAX)
		return "[vdso32]";
	return record->name;
}

static uint64_t hash_path(const char *path)
{
	return hash_bytes(path, proc_path_size(path), 0);
}

/* The user who made the mount namespace of a process; 0: root, or unknown. */
static uid_t namespace_owner(pid_t tid)
{
	int mounts = open(proc_path(tid, 0, "ns/mnt").text, O_RDONLY | O_CLOEXEC);
	int users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	uid_t owner = 0;

	if (users >= 0 && ioctl(users, NS_GET_OWNER_UID, &owner))
		owner = 0;
	file_close(users);
	file_close(mounts);
	return owner == geteuid() ? 0 : owner;
}

/*
 * The user who chose what the open file of a mapping holds, whose build ID and symbols may be
 * forged; 0: root or the caller. Only a build ID shows which of root's files it is, where a user
 * can mount any of them on a path.
 */
static uid_t provider_of(const struct process *process, const struct sideband_record *record,
			 const struct opened_file *file)
{
	const struct stat *status = &file->status;

	if (record->name[0] != '/')
		return 0; /* a vDSO of root's process */
	/* Whoever serves a FUSE file system may give a file any owner. */
	if (file->is_copy)
		return process_user(process) ?: namespace_owner(record->tid);
	if (status->st_uid && status->st_uid != geteuid())
		return status->st_uid;
	if (status->st_mode & S_IWOTH)
		return process_user(process);
	return record->build_id_size ? 0 : namespace_owner(record->tid);
}

struct wanted_image {
	const char *name;
	const struct sideband_record *record;
	uid_t provider;
};

static bool is_wanted_image(const void *images, uint32_t id, const void *key)
{
	const struct capture_image *image = &((const struct capture_image *)images)[id];
	const struct wanted_image *wanted = key;
	const struct sideband_record *record = wanted->record;
	size_t path_size = proc_path_size(image->path);
	struct stat status;

	if (image->provider != wanted->provider || path_size != proc_path_size(wanted->name) ||
	    strncmp(image->path, wanted->name, path_size) != 0)
		return false;
	if (wanted->name[0] == '[')
		return true;
	if (!record->inode || image->inode != record->inode || image->device != record->device)
		return false;
	/* Not one that was written since it was opened, without a new inode, as by cp(1). */
	return image->fd < 0 || opener_stat_known(image->fd, "", &status) ||
	       (status.st_size == image->size && status.st_mtim.tv_sec == image->modified.tv_sec &&
		status.st_mtim.tv_nsec == image->modified.tv_nsec);
}

static uint32_t find_image(const struct process_table *table, const char *name,
			   const struct sideband_record *record, uid_t provider)
{
	const struct wanted_image wanted = { name, record, provider };

	return index_find(&table->by_path, hash_path(name), is_wanted_image, table->images,
			  &wanted);
}

/* Why a file could not be opened, by open_mapped()'s result. Returns 0 or -ENOMEM. */
static int explain_unopened(struct capture_image *image, int err)
{
	char *why;

	if (err == -ESRCH)
		why = strdup(
			"its process ended before its file could be opened, and its path leads "
			"to none or to another");
	else if (err == -EMFILE)
		why = strdup("too many files are open");
	else if (err == -EINVAL)
		why = strdup("it is not a regular file");
	else if (err == -EFBIG)
		why = strdup("it is larger than is read of files in FUSE file systems");
	else if (err == -EDQUOT)
		why = strdup("its user has too many files in FUSE file systems");
	else if (err == -ETIMEDOUT)
		why = strdup("its file system does not answer, or did not shortly before");
	else if (err == -EPERM)
		why = strdup("it is of another user, who could forge its names");
	else if (err == -ESTALE)
		why = strdup("its path names another file, and /proc/PID/map_files was of no use");
	else if (asprintf(&why, "not found through /proc/PID/map_files and /proc/PID/root: %s",
			  strerror(-err)) < 0)
		why = NULL;
	free(image->why);
	image->why = why;
	return why ? 0 : -ENOMEM;
}

int image_add(struct process_table *table, const struct capture_image *image, uint32_t *number)
{
	size_t slot = table->next_image;

	while (slot < table->image_count && table->images[slot].path)
		slot++;
	if (array_reserve(&table->images, &table->image_room, slot + 1, sizeof(*image)))
		return -ENOMEM;
	table->images[slot] = *image;
	table->images[slot].serial = table->serials++;
	if (image->is_unread)
		table->open_left = table->count;
	table->image_bytes += IMAGE_BYTES + strlen(image->path);
	table->next_image = slot + 1;
	if (slot == table->image_count)
		table->image_count++;
	*number = slot;
	return 0;
}

void image_remove(struct process_table *table, uint32_t number)
{
	struct capture_image *image = &table->images[number];

	index_remove(&table->by_path, hash_path(image->path), number);
	table->image_bytes -= IMAGE_BYTES + strlen(image->path);
	free(image->path);
	free(image->why);
	file_close(image->fd);
	*image = (struct capture_image){ .fd = -1, .root = -1 };
	table->next_image = MIN(table->next_image, number);
}

/* Sets what is known of the image's file: by a record, and once it is open, by that. */
static void describe_file(struct capture_image *image, const struct sideband_record *record,
			  const struct opened_file *file)
{
	image->device = record->device;
	image->inode = record->inode;
	image->build_id_size = record->build_id_size;
	memcpy(image->build_id, record->build_id, sizeof(image->build_id));
	image->size = file->status.st_size;
	image->modified = file->status.st_mtim;
	image->changed = file->status.st_ctim;
	image->bits = file->bits;
	image->copied = file->is_copy;
	image->copied_for = file->opened_for;
}

/*
 * fd: a descriptor of the file, which the table owns from now on; or a negative errno. Returns 0 or
 * -ENOMEM.
 */
static int add_file(struct process_table *table, const struct process *process, const char *name,
		    const struct sideband_record *record, int fd, const struct opened_file *file,
		    uid_t provider, uint32_t *number)
{
	const char *group =
		process->group < table->group_count ? table->groups[process->group] : "";
	struct capture_image image = {
		/* Deleted or not, the open file is the one that had this name. */
		.path = strndup(name, fd < 0 ? strlen(name) : proc_path_size(name)),
		.fd = fd < 0 ? -1 : fd,
		.root = -1,
		.is_unread = fd < 0 && fd != -EINVAL && fd != -ENODATA,
		.provider = provider,
		.group = hash_bytes(group, strlen(group), 0),
		.user = process_user(process),
	};

	describe_file(&image, record, file);
	if (name[0] == '/')
		image_root(table, record->tid, &image.root);
	if (!image.path || (fd < 0 && fd != -ENODATA && explain_unopened(&image, fd)) ||
	    image_add(table, &image, number)) {
		free(image.path);
		free(image.why);
		file_close(fd);
		return -ENOMEM;
	}
	return index_add(&table->by_path, hash_path(name), *number);
}

/*
 * Of files in FUSE file systems we have copies.
 * Bound: users: bytes of these copies, of one user and of all; then: the file is not read; again:
 * when it is mapped again, or tried again, and others were forgotten; share: half; seen: in the
 * reason why its code has no names.
 */
#define COPIES_OF_USER (OPENER_COPY_MAX)

/*
 * Returns a descriptor of the image's file, or a negative errno; -ENODATA: it has none. Sets the
 * record's device and inode, and its build ID where the file can be opened, even if too many are
 * open (-EMFILE).
 */
static int open_image(struct process_table *table, const struct process *process, const char *name,
		      struct sideband_record *record, struct opened_file *file)
{
	const struct opener_target target = {
		.pid = process->pid,
		.uid = process_user(process),
		.device = record->device,
	};
	size_t of_user, of_all;
	char page[4096];
	int fd, memory;

	*file = (struct opened_file){ 0 };
	if (strcmp(name, "[vdso32]") == 0) {
		/*
		 * A user may have changed it, or mapped a file in its place that a FUSE server of
		 * the user's never answers for.
		 */
		if (process->uid == UINT32_MAX || target.uid)
			return -EPERM;
		/* A small ELF file. */
		memory = open(proc_path(record->tid, 0, "mem").text, O_RDONLY | O_CLOEXEC);
		fd = memory < 0 ? -1 : memfd_create("vdso", MFD_CLOEXEC);
		for (uint64_t at = record->start; fd >= 0 && at < record->limit; at += sizeof(page))
			if (pread(memory, page, sizeof(page), at) != sizeof(page) ||
			    write(fd, page, sizeof(page)) != sizeof(page)) {
				close(fd);
				fd = -1;
			}
		file_close(memory);
		file->bits = 32;
		return fd < 0 ? -ESRCH : fd;
	}
	/* Readers take their own vDSO: a process can write to its copy. */
	if (name[0] != '/')
		return -ENODATA;
	fd = opener_open_mapped(&table->opener, &target, record, file);
	if (fd < 0)
		return fd;
	file->opened_for = target.uid;
	if (!record->inode) {
		record->device = file->status.st_dev;
		record->inode = file->status.st_ino;
	}
	record->build_id_size = file->build_id_size;
	memcpy(record->build_id, file->build_id, sizeof(file->build_id));
	of_user = of_all = file->status.st_size;
	for (size_t i = 0; file->is_copy && i < table->image_count; i++) {
		const struct capture_image *image = &table->images[i];

		if (!image->path || !image->copied)
			continue;
		of_all += image->size;
		of_user += image->copied_for == target.uid ? image->size : 0;
	}
	if (file->is_copy && (of_user > COPIES_OF_USER || of_all > IMAGE_COPIES_BYTES)) {
		close(fd);
		return -EDQUOT;
	}
	return image_keep(fd) < 0 ? -EMFILE : fd;
}

/*
 * Failed attempts to open the files of images may take 1 / this of the time: those by the records
 * of one image, and those of image_open_again().
 * Bound: users: the part of the time in which files that could not be opened are tried again; then:
 * they are tried later; again: as time goes on; share: none; seen: as images without symbols, with
 * the reason.
 */
#define AGAIN_PART 200
/* Most time for one image_open_again(), which the next one continues. Bound: as AGAIN_PART. */
#define AGAIN_NS_MAX (10 * NS_PER_MS)

/*
 * Uses the file that another process has mapped: an earlier one may have ended too soon, or not
 * have it in its root directory. fd: the result of open_image(); begin_ns: when that was called.
 * Returns 0 or -ENOMEM.
 */
static int reopen_image(struct process_table *table, struct capture_image *image,
			const struct sideband_record *record, int fd,
			const struct opened_file *file, uint64_t begin_ns)
{
	uint64_t end_ns = now_ns();
	int root = -1;

	image->next_try_ns = end_ns + AGAIN_PART * (end_ns - begin_ns);
	if (image->is_left && fd < 0) { /* until the next window */
		image->is_left = false;
		return 0;
	}
	if (fd < 0)
		return explain_unopened(image, fd);
	if (image->path[0] == '/' && image_root(table, record->tid, &root) == 0)
		image->root = root;
	table->image_bytes -= strlen(image->path) - proc_path_size(image->path);
	image->path[proc_path_size(image->path)] = '\0';
	file_close(image->fd);
	image->fd = fd;
	describe_file(image, record, file);
	image->is_reopened |= image->is_unread;
	image->is_unread = image->is_left = false;
	free(image->why);
	image->why = NULL;
	return 0;
}

void image_reject(struct process_table *table, struct capture_image *image)
{
	file_close(image->fd);
	image->fd = -1;
	image->is_unread = true;
	table->open_left = table->count;
	/* While it was read, processes of any user may have mapped it. */
	image->user = 0;
}

/*
 * The same for all that a living process maps, of its own or from its parents, and for what was
 * opened through a process that has ended.
 */
static int open_again_for(struct process_table *table, const struct process *process)
{
	const struct address_space *space = process->spaces[process->count - 1];
	struct space_walk walk = { space, space->count };
	const struct capture_mapping *mapping;

	while ((mapping = space_next(&walk))) {
		struct capture_image *image = &table->images[mapping->image];
		struct sideband_record record = {
			.pid = process->pid,
			.tid = process->pid,
			.start = mapping->start,
			.limit = mapping->limit,
			.inode = image->inode,
			.device = image->device,
			.name = image->path,
		};
		struct opened_file file;
		uint64_t begin_ns;
		uid_t provider;
		int fd;

		if (!image->is_unread && !image->is_left)
			continue;
		table->open_left = table->count;
		begin_ns = now_ns();
		fd = open_image(table, process, image_name(&record), &record, &file);
		provider = fd < 0 ? 0 : provider_of(process, &record, &file);
		if (image->is_left ? provider != image->provider
				   : provider && provider != image->user) {
			file_close(fd);
			fd = -EPERM;
		}
		if (fd >= 0)
			image->provider = provider;
		if (reopen_image(table, image, &record, fd, &file, begin_ns))
			return -ENOMEM;
	}
	return 0;
}

int image_open_again(struct process_table *table)
{
	uint64_t begin_ns = now_ns(), end_ns = begin_ns;
	int err = 0;

	if (!table->open_left || begin_ns < table->next_open_ns)
		return 0;
	for (size_t left = table->count; left && table->open_left && !err; left--) {
		const struct process *process =
			&table->processes[table->next_open++ % table->count];

		table->open_left--;
		if (process->ended || process->next_with_pid != INDEX_NONE)
			continue;
		err = open_again_for(table, process);
		end_ns = now_ns();
		if (end_ns >= begin_ns + AGAIN_NS_MAX)
			break;
	}
	table->next_open_ns = end_ns + AGAIN_PART * (end_ns - begin_ns);
	return err;
}

int image_of_mapping(struct process_table *table, const struct process *process,
		     const struct sideband_record *record, uint32_t *image)
{
	const char *name = image_name(record);
	/* What root provides names the code of all: most files need not be opened to find it. */
	uint32_t roots = find_image(table, name, record, 0);
	struct capture_image *unread = roots == INDEX_NONE ? NULL : &table->images[roots];
	struct sideband_record opened = *record;
	struct opened_file file = { 0 };
	uid_t user = process_user(process);
	uid_t provider;
	uint64_t begin_ns = now_ns();
	int fd = -EAGAIN;

	*image = roots;
	if (unread && !unread->is_unread)
		return 0;
	if (!unread || begin_ns >= unread->next_try_ns)
		fd = open_image(table, process, name, &opened, &file);
	else
		table->open_left = table->count;
	/* Without the file, its user's is likely: programs of root have root's. */
	provider = fd < 0 ? user : provider_of(process, &opened, &file);
	if (provider) {
		*image = find_image(table, name, record, provider);
		if (*image == INDEX_NONE)
			*image = find_image(table, name, &opened, provider);
	}
	/* It may be the file of one that was not read, if only this user's processes map that. */
	if (*image == INDEX_NONE && unread && (fd < 0 || provider == unread->user)) {
		*image = roots;
		if (unread->user != user)
			unread->user = 0;
	}
	if (*image == INDEX_NONE)
		return add_file(table, process, name, &opened, fd, &file, fd < 0 ? 0 : provider,
				image);
	if (table->images[*image].is_unread && fd != -EAGAIN) {
		if (fd >= 0)
			table->images[*image].provider = provider;
		return reopen_image(table, &table->images[*image], &opened, fd, &file, begin_ns);
	}
	file_close(fd);
	return 0;
}

bool image_is_plain_memory(const struct capture_image *image)
{
	return strncmp(image->path, "/memfd:", strlen("/memfd:")) == 0 && image->fd >= 0 &&
	       !image->bits;
}
