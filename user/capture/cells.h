/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CELLS_H
#define PROFIL_CAPTURE_CELLS_H

#include "capture/counts.h"
#include "capture/profil_program.h"
#include "capture/process.h"

/*
 * profil(2)'s histogram as a recording: one range, whose cells become samples at the address that
 * each begins with.
 */

/*
 * The range of a call profil(buffer, bufsiz, offset, scale). With bufsiz 0: from where the program
 * itself begins to be executable to where it ends, as this address space has it.
 */
int cells_range(const struct address_space *space, uint64_t offset, uint64_t bufsiz, uint32_t scale,
		struct profil_range *range, size_t *cell_count, struct error *e);

/*
 * Adds each cell that is not 0, as a sample of this process: of which thread is not known, so that
 * the thread is 0. Returns 0 or -ENOMEM.
 */
int cells_add(const struct profil_client *client, const struct profil_range *range, pid_t pid,
	      uint64_t time_ns, struct counts *counts);

#endif
