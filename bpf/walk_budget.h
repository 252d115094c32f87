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
 * How far a process may be in debt, in its CPU time: a machine may be slow for a while.
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
 * Returns the CPU time that a process owes after a tick, which is a period of its CPU time, and
 * whose walk took walk_ns (0: none), when it owed debt_ns before.
 */
static inline unsigned long long walk_charge(unsigned long long debt_ns, unsigned long long walk_ns,
					     unsigned long long tick_ns)
{
	if (walk_ns > WALK_NS_MAX)
		walk_ns = WALK_NS_MAX;
	debt_ns += walk_ns * WALK_BUDGET_PART;
	return debt_ns > tick_ns ? debt_ns - tick_ns : 0;
}

static inline int walk_is_over_budget(unsigned long long debt_ns)
{
	return debt_ns > WALK_BURST_NS;
}

#endif
