/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CELLS_H
#define PROFIL_CAPTURE_CELLS_H

#include "bpf/sample.h"
#include "capture/process.h"

/*
 * Sets the range of cells, whose scale is set, as for profil(buffer, bufsiz, offset, scale). With
 * bufsiz 0, it is the text of the program in this address space. Returns 0 or a negative errno.
 */
int cells_find(const struct address_space *space, uint64_t offset, uint64_t bufsiz,
	       struct sample_cells *cells, struct error *e);

#endif
