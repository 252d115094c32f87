/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_IMAGE_H
#define PROFIL_CAPTURE_IMAGE_H

#include "capture/process.h"

/*
 * Finds or adds the image behind a mapping of a process and opens it while it can be opened:
 * through /proc/PID/map_files, which reaches deleted files and other mount namespaces, else
 * through /proc/PID/root. The vDSO is copied. record->name is its path as the kernel tells it.
 * A file that cannot be opened is an image all the same. Returns 0 or -ENOMEM.
 */
int image_of_mapping(struct process_table *table, const struct sideband_record *record,
		     uint32_t *image);

/*
 * The root folder of a process: *root is its descriptor, which the table owns; -1: it is ours.
 * Returns 0, or a negative errno: it is not to be had.
 */
int image_root(struct process_table *table, pid_t tid, int *root);

/*
 * Keeps a descriptor, or closes it when they run short: some must be left for the threads' events,
 * and for the result. Returns it, or -1.
 */
int image_keep(int fd);

/* Whether it is shared memory (memfd_create(2)) that holds no program: a JIT compiler's. */
bool image_is_plain_memory(const struct capture_image *image);

/* 32 or 64: of an ELF file; 0: not known. */
unsigned int image_bits(const struct capture_image *image);

#endif
