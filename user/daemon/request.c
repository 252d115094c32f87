// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/request.h"

#include "bpf/cell.h"

static int check_range(const struct profild_request *request, uint32_t number, struct error *e)
{
	const struct profil_range *range = &request->ranges[number];
	uint64_t last_cell;

	if (range->first > range->last || range->first < range->offset)
		return error_set(e, 0, "range %u: its addresses are not in order", number);
	if (number && range->first <= range[-1].last)
		return error_set(e, 0, "range %u is not after range %u", number, number - 1);
	if (range->wide > 1 || range->unused)
		return error_set(e, 0, "range %u: invalid width, or an unused field is not 0",
				 number);
	last_cell = cell_index(range->last - range->offset, range->scale) >> range->wide;
	if (last_cell >= request->cell_count || range->base >= request->cell_count - last_cell)
		return error_set(e, 0, "range %u: its last cell is beyond all cells", number);
	return 0;
}

static int check_start(const struct profild_request *request, size_t size, struct error *e)
{
	int err = 0;

	if (request->frequency < 1 || request->frequency > PROFILD_MOST_HZ)
		return error_set(e, 0, "the frequency is %u Hz, but may be 1 to %d",
				 request->frequency, PROFILD_MOST_HZ);
	if (request->except > INT32_MAX)
		return error_set(e, 0, "no thread has the number %u", request->except);
	if (request->range_count < 1 || request->range_count > PROFIL_RANGES)
		return error_set(e, 0, "there are %u ranges, but may be 1 to %d",
				 request->range_count, PROFIL_RANGES);
	if (size != sizeof(*request) + request->range_count * sizeof(*request->ranges))
		return error_set(e, 0, "%zu bytes are not a request of %u ranges", size,
				 request->range_count);
	if (request->cell_count < 1 || request->cell_count > PROFIL_CELLS)
		return error_set(e, 0, "there are %llu cells, but may be 1 to %u",
				 (unsigned long long)request->cell_count, PROFIL_CELLS);
	if (request->unused)
		return error_set(e, 0, "an unused field is not 0");
	for (uint32_t i = 0; i < request->range_count && !err; i++)
		err = check_range(request, i, e);
	return err;
}

int request_check(const struct profild_request *request, size_t size, struct error *e)
{
	if (size < sizeof(*request))
		return error_set(e, 0, "%zu bytes are no request", size);
	if (request->version < PROFILD_OLDEST || request->version > PROFILD_NEWEST)
		return error_set(e, 0, "unsupported protocol version %u: profild speaks %d to %d",
				 request->version, PROFILD_OLDEST, PROFILD_NEWEST);
	switch (request->type) {
	case PROFILD_START:
		return check_start(request, size, e);
	case PROFILD_STOP:
		if (size != sizeof(*request) || request->frequency || request->except ||
		    request->range_count || request->unused || request->cell_count)
			return error_set(e, 0, "a STOP request has other fields");
		return 0;
	default:
		return error_set(e, 0, "unknown request type %u", request->type);
	}
}
