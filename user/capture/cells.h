/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CELLS_H
#define PROFIL_CAPTURE_CELLS_H

#include "capture/counts.h"
#include "capture/profil_program.h"
#include "capture/process.h"

/*
 * Recording profil(2)'s histogram: each cell of its one range becomes a sample at the first address
 * of the cell.
 */

/*
 * Sets *range and *cell_count as for profil(buffer, bufsiz, offset, scale). With bufsiz 0, the
 * range is the text of the program in this address space. Returns 0 or a negative errno.
 */
int cells_range(const struct address_space *space, uint64_t offset, uint64_t bufsiz, uint32_t scale,
		struct profil_range *range, size_t *cell_count, struct error *e);

/*
 * Adds each cell that is not 0 as a sample of the process. The thread is unknown: 0. Returns 0 or
 * -ENOMEM.
 */
int cells_add(const struct profil_client *client, const struct profil_range *range, pid_t pid,
	      uint64_t time_ns, struct counts *counts);

#endif
