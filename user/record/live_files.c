// SPDX-License-Identifier: GPL-2.0-only
#include "record/live_files.h"

#include <fcntl.h>
#include <string.h>

#include "capture/snapshot.h"
#include "symbol/elf_file.h"
#include "util/proc_maps.h"

static int duplicate_fd(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/*
 * Whether it is the file that was recorded, as far as is known of that: its path, without the
 * " (deleted)" that the kernel appends, and not another of this path.
 */
static bool is_same_file(const struct profile_image *recorded, const struct capture_image *image)
{
	size_t size = proc_path_size(image->path);
	int fd = recorded->build_id_size ? duplicate_fd(image->fd) : -1;
	struct elf_file file;
	struct error ignored;
	bool same;

	if (proc_path_size(recorded->path) != size ||
	    strncmp(recorded->path, image->path, size) != 0)
		return false;
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

int live_files_open(struct profile *p)
{
	struct process_table table = { 0 };
	int err = 0;

	for (size_t i = 0; i < p->label_count && !err; i++)
		if (p->labels[i].pid && !process_find(&table, p->labels[i].pid))
			err = snapshot_process(&table, p->labels[i].pid, 0);
	for (size_t i = 0; i < table.count && !err; i++) {
		const struct address_space *space = process_space(&table.processes[i]);

		/*
		 * Takes the file behind a mapping for those of the profile that are the same. The
		 * number of a process may mean another one here; that has no such file at such an
		 * address.
		 */
		for (size_t k = 0; k < space->count * p->mapping_count; k++) {
			const struct capture_mapping *m = &space->mappings[k / p->mapping_count];
			const struct capture_image *image = &table.images[m->image];
			const struct profile_mapping *at = &p->mappings[k % p->mapping_count];
			struct profile_image *to = &p->images[at->image];

			if (image->fd < 0 || to->fd >= 0 || at->start >= m->limit ||
			    m->start >= at->limit ||
			    at->start - at->offset != m->start - m->offset ||
			    !is_same_file(to, image))
				continue;
			to->fd = duplicate_fd(image->fd);
			if (to->root < 0)
				to->root = duplicate_fd(image->root);
		}
	}
	process_table_free(&table);
	return err;
}
