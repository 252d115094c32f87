/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the walks of one process's stacks may take: 1 / WALK_BUDGET_PART of its CPU time, for a
 * process can make its stacks as expensive to walk as it likes. A walk that takes less than that of
 * a tick's period needs no budget. Included by the BPF program, and by tests.
 */
#ifndef PROFIL_BPF_WALK_BUDGET_H
#define PROFIL_BPF_WALK_BUDGET_H

/*
 * Bound: users: the part of its CPU time that walks of a process's stacks may take; then: its
 * stacks have one frame; again: as its CPU time goes on; share: the process's own; seen: stack end
 * walk_too_long.
 */
#define WALK_BUDGET_PART 10

/*
 * How far a process may be ahead of what it has paid: a machine may be slow for a while.
 * Bound: as WALK_BUDGET_PART.
 */
#define WALK_BURST_NS 2000000000ULL

/*
 * The most that one walk counts: a host may have paused the CPU meanwhile.
 * Bound: users: time that a single walk is charged; then: the rest is not charged; again: at the
 * next walk; share: the process's own; seen: not seen.
 */
#define WALK_NS_MAX 2000000ULL

/*
 * Returns the time until which a process's walks are paid for, which was paid_ns, after a tick with
 * a walk that began at now_ns and took walk_ns.
 */
static inline unsigned long long walk_charge(unsigned long long paid_ns, unsigned long long now_ns,
					     unsigned long long walk_ns,
					     unsigned long long period_ns)
{
	if (walk_ns > WALK_NS_MAX)
		walk_ns = WALK_NS_MAX;
	if (paid_ns < now_ns)
		paid_ns = now_ns;
	return walk_ns * WALK_BUDGET_PART > period_ns ? paid_ns + walk_ns * WALK_BUDGET_PART
						      : paid_ns;
}

static inline int walk_is_over_budget(unsigned long long paid_ns, unsigned long long now_ns)
{
	return paid_ns > now_ns + WALK_BURST_NS;
}

#endif
