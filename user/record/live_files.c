// SPDX-License-Identifier: GPL-2.0-only
#include "record/live_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "capture/snapshot.h"
#include "symbol/elf_file.h"
#include "util/proc_maps.h"

static int duplicate_fd(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* Without the " (deleted)" that the kernel appends. */
static bool is_same_path(const char *a, const char *b)
{
	return proc_path_size(a) == proc_path_size(b) && strncmp(a, b, proc_path_size(a)) == 0;
}

/* Whether it is the file that was recorded, as far as is known of that: not another of its path. */
static bool is_same_file(const struct profile_image *recorded, const struct capture_image *image)
{
	int fd = recorded->build_id_size ? duplicate_fd(image->fd) : -1;
	struct elf_file file;
	struct error ignored;
	bool same;

	if (!recorded->build_id_size)
		return !recorded->file_id ||
		       recorded->file_id == profile_file_id(image->device, image->inode,
							    image->size, image->modified);
	if (fd < 0 || elf_file_open(&file, fd, NULL, &ignored))
		return false;
	same = elf_has_build_id(&file, recorded->build_id, recorded->build_id_size);
	elf_file_close(&file);
	return same;
}

/*
 * Takes the file behind a mapping of a process for those of the profile that are the same. The
 * number of a process may mean another one here; that has no such file at such an address.
 */
static void take_file(struct profile *p, const struct capture_image *image,
		      const struct capture_mapping *m)
{
	for (size_t i = 0; i < p->mapping_count && image->fd >= 0; i++) {
		const struct profile_mapping *at = &p->mappings[i];
		struct profile_image *to = &p->images[at->image];

		if (to->fd >= 0 || at->start >= m->limit || m->start >= at->limit ||
		    at->start - at->offset != m->start - m->offset ||
		    !is_same_path(to->path, image->path) || !is_same_file(to, image))
			continue;
		to->fd = duplicate_fd(image->fd);
		if (to->root < 0)
			to->root = duplicate_fd(image->root);
	}
}

int live_files_open(struct profile *p)
{
	struct process_table table = { 0 };
	int err = 0;

	for (size_t i = 0; i < p->label_count && !err; i++)
		if (p->labels[i].pid && !process_find(&table, p->labels[i].pid))
			err = snapshot_process(&table, p->labels[i].pid, 0);
	for (size_t i = 0; i < table.count && !err; i++) {
		const struct address_space *space = process_space(&table.processes[i]);

		for (size_t k = 0; k < space->count; k++)
			take_file(p, &table.images[space->mappings[k].image], &space->mappings[k]);
	}
	process_table_free(&table);
	return err;
}
