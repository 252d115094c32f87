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

#endif
