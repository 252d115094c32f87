// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/share_out.h"

#include <stdlib.h>

#include "util/order.h"
#include "util/sum.h"

ORDER(compare_sizes, uint64_t, COMPARE(*a, *b))

uint64_t share_out(uint64_t *sizes, size_t count, uint64_t most)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		add_u64(&all, sizes[i]);
	if (all <= most)
		return UINT64_MAX;
	qsort(sizes, count, sizeof(*sizes), compare_sizes);
	for (size_t i = 0; i < count; i++) {
		if (sizes[i] > most / (count - i))
			return most / (count - i);
		most -= sizes[i];
	}
	return UINT64_MAX;
}
