// SPDX-License-Identifier: GPL-2.0-only
#include "report/cost.h"

#include <string.h>

bool cost_has_interrupt(const struct profile *p)
{
	return profile_has_clock(p) && strcmp(p->event, "tick") != 0;
}

bool cost_cpu_percent(const struct profile *p, double *percent)
{
	const struct profile_totals *t = &p->totals;
	double per_tick_ns;

	if (!t->known || !t->bpf_ns_per_tick || !t->cpu_ns ||
	    (!t->interrupt_ns && cost_has_interrupt(p)))
		return false;
	per_tick_ns =
		(double)t->bpf_ns_per_tick + (profile_has_clock(p) ? (double)t->interrupt_ns : 0);
	*percent = (double)t->ticks * per_tick_ns / (double)t->cpu_ns * 100;
	return true;
}

bool cost_own_percent(const struct profile *p, double *percent)
{
	const struct profile_totals *t = &p->totals;

	if (!t->known || !t->own_ns || !t->cpu_ns)
		return false;
	*percent = (double)t->own_ns / (double)t->cpu_ns * 100;
	return true;
}

bool cost_target_is_idle(const struct profile *p)
{
	uint64_t duration_ns = p->all_duration_ns ?: p->duration_ns;

	return p->totals.cpu_ns < duration_ns / 20;
}

bool cost_machine_percent(const struct profile *p, double *percent)
{
	const struct profile_totals *t = &p->totals;

	if (!t->known || !t->bpf_ns_per_tick || !t->machine_ns ||
	    (cost_has_interrupt(p) && (!t->interrupt_ns || !t->interrupts)))
		return false;
	*percent = ((double)t->ticks * (double)t->bpf_ns_per_tick +
		    (double)t->interrupts * (double)t->interrupt_ns + (double)t->own_ns) /
		   (double)t->machine_ns * 100;
	return true;
}
