// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/read_budget.h"

#include "util/clock.h"

bool read_budget_take(struct read_budget *budget, uint64_t bytes)
{
	if (!budget)
		return true;
	if (bytes > budget->bytes || clock_ns(CLOCK_THREAD_CPUTIME_ID) > budget->until_ns)
		budget->exceeded = true;
	if (budget->exceeded)
		return false;
	budget->bytes -= bytes;
	return true;
}

bool read_budget_has_memory(struct read_budget *budget, uint64_t size)
{
	if (budget && size > budget->memory)
		budget->exceeded = true;
	return !budget || !budget->exceeded;
}
