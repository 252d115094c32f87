// SPDX-License-Identifier: GPL-2.0-only
#include "capture/cells.h"

#include <errno.h>
#include <inttypes.h>

#include "bpf/cell.h"
#include "bpf/profil.h"

/* Sets [*start, *limit) to the program's own executable mappings. Returns 0 or -ENOENT. */
static int find_text(const struct address_space *space, uint64_t *start, uint64_t *limit)
{
	*start = UINT64_MAX;
	*limit = 0;
	for (size_t i = 0; space && i < space->count; i++) {
		const struct capture_mapping *mapping = &space->mappings[i];

		if (!mapping->executable)
			continue;
		if (mapping->start < *start)
			*start = mapping->start;
		if (mapping->limit > *limit)
			*limit = mapping->limit;
	}
	return *start < *limit ? 0 : -ENOENT;
}

static int check_size(uint64_t cells, uint64_t bufsiz, struct error *e)
{
	if (cells <= PROFIL_CELLS)
		return 0;
	error_set_kind(e, ERROR_USAGE, 0,
		       "a histogram of %" PRIu64 " cells is too large: the limit is %u", cells,
		       PROFIL_CELLS);
	if (bufsiz)
		error_hint(e, "use a smaller --bufsiz, and with it a smaller --scale");
	else
		error_hint(e, "use a smaller --scale, or --offset and --bufsiz for a part");
	return -EINVAL;
}

int cells_find(const struct address_space *space, uint64_t offset, uint64_t bufsiz,
	       struct sample_cells *range, struct error *e)
{
	uint64_t cells = bufsiz / 2, limit, last;
	uint32_t scale = range->scale;

	if (!bufsiz) {
		if (find_text(space, &offset, &limit)) {
			error_set(e, 0, "cannot find the mappings of the process's executable");
			error_hint(e, "give the addresses with --offset and --bufsiz");
			return -ENOENT;
		}
		cells = cell_index(limit - 1 - offset, scale) + 1;
	}
	if (check_size(cells, bufsiz, e))
		return -EINVAL;
	last = cell_last_delta(cells, scale);
	if (last > UINT64_MAX - offset)
		last = UINT64_MAX - offset; /* the end of the address space */
	range->first = range->offset = offset;
	range->last = offset + last;
	return 0;
}
