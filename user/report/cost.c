// SPDX-License-Identifier: GPL-2.0-only
#include "report/cost.h"

bool cost_cpu_percent(const struct profile *p, double *percent)
{
	const struct profile_totals *t = &p->totals;

	if (!t->known || !t->bpf_ns_per_tick || !t->interrupt_ns || !t->cpu_ns)
		return false;
	*percent = (double)t->ticks * ((double)t->bpf_ns_per_tick + (double)t->interrupt_ns) /
		   (double)t->cpu_ns * 100;
	return true;
}
