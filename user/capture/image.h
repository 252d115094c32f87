/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_IMAGE_H
#define PROFIL_CAPTURE_IMAGE_H

#include "capture/process.h"

/* Bound: as COPIES_OF_USER. */
#define IMAGE_COPIES_BYTES ((size_t)32 << 20)

/*
 * Finds the image behind a mapping, or adds it to the table and opens its file: through
 * /proc/PID/map_files, which works for deleted files and in other mount namespaces; else the
 * program's by /proc/PID/exe, and others' by their path (record->name) below /proc/PID/root. A
 * vDSO of 32 bits is copied, from a process of root or the caller. A file that cannot be opened is
 * an image, too: `why` has the reason, and it is tried again through the next process that maps it.
 *
 * A file that a user other than root provides is a separate image, even with the build ID and path
 * of another: with a forged build ID, a user could name the code of other users.
 *
 * *image: its number. Returns 0 or -ENOMEM.
 */
int image_of_mapping(struct process_table *table, const struct process *process,
		     const struct sideband_record *record, uint32_t *image);

/*
 * Tries again to open the files that could not be opened, through all processes that map them now.
 * Takes half a percent of the time at most, and none after it has found no process that maps one,
 * until another file cannot be opened. Returns 0 or -ENOMEM.
 */
int image_open_again(struct process_table *table);

/* Closes an image's file, which is another build than was mapped: to be opened again. */
void image_reject(struct process_table *table, struct capture_image *image);

/*
 * Adds an image as it is, in a free slot, and sets *number. Returns 0, with which the table owns
 * its path, `why` and descriptor; or -ENOMEM.
 */
int image_add(struct process_table *table, const struct capture_image *image, uint32_t *number);

/* Frees the slot of an image. */
void image_remove(struct process_table *table, uint32_t number);

/*
 * Sets *root to a descriptor of a process's root directory, owned by the table; -1: it is the same
 * as ours. Returns 0, or a negative errno: it cannot be opened.
 */
int image_root(struct process_table *table, pid_t tid, int *root);

/* Whether a process has this root directory now. */
bool image_has_root(pid_t pid, const struct root *root);

/*
 * Returns the descriptor, or closes it and returns -1 when descriptors run short: some must remain
 * for the events of CPUs and for the output.
 */
int image_keep(int fd);

/* Whether it is a memfd_create(2) file that is not ELF: memory of a JIT compiler. */
bool image_is_plain_memory(const struct capture_image *image);

#endif
