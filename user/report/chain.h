/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CHAIN_H
#define PROFIL_REPORT_CHAIN_H

#include "report/segments.h"
#include "util/index.h"

/*
 * Why an interval took a thread so long: a tree. Below the time in which a thread was blocked is
 * what the thread that ended that did meanwhile, and so on. What a node took is the sum of what its
 * children took, if it has any.
 *
 * - A thread that was idle meanwhile began to work for the other only when that ended: before, the
 *   thread that woke it counts. Not if the other waits for what this one holds, or for its end.
 * - One that woke another thread in the same state meanwhile worked for that one first.
 * - Who waited for a lock when another began to, and then got it before, had no part in that: the
 *   one before it counts, up to the holder.
 * - A timer that ends a wait which then goes on at the same place (poll with a time limit) is not
 *   the cause.
 */

enum chain_kind {
	CHAIN_WHOLE, /* the first node */
	CHAIN_RAN,
	CHAIN_FUNCTION,	  /* below it, by ticks: the location `what` */
	CHAIN_RUNNABLE,	  /* no free CPU */
	CHAIN_OTHER,	  /* below it: the thread ran there */
	CHAIN_UNRECORDED, /* below it: nobody who was recorded did */
	CHAIN_SLEPT,	  /* blocked or idle */
	CHAIN_EARLIER,	  /* the thread was busy with something else before */
	CHAIN_UNKNOWN,	  /* `what`: enum chain_unknown */
};

enum chain_unknown {
	CHAIN_NO_WAKER,	 /* it is unknown who ended the wait, or it had not ended */
	CHAIN_NOT_SEEN,	 /* that thread was not recorded */
	CHAIN_NOT_ALIVE, /* the thread had not begun, or was exiting */
	CHAIN_LOST,	 /* times of waits were lost */
	CHAIN_NO_CPU,	 /* on which CPU it was to run */
	CHAIN_CIRCLE,	 /* threads that wait for each other: the file is wrong */
	CHAIN_TOO_LONG,	 /* more than is followed */
	CHAIN_UNKNOWNS,
};

#define CHAIN_NONE UINT32_MAX

/* Two sums: of all turns, and of those that are compared with them; or the first alone. */
#define CHAIN_SUMS 2

struct chain_node {
	enum chain_kind kind;
	uint32_t thread; /* number of one of the threads that it stands for */
	uint32_t what;	 /* by its kind; of CHAIN_SLEPT a sample with its state, reason and waker */
	uint64_t ns[CHAIN_SUMS];
	uint64_t ticks[CHAIN_SUMS];
	/* Of these, those whose stack chain.within has: of ns, where it waited; of ticks. */
	uint64_t within_ns[CHAIN_SUMS], within_ticks[CHAIN_SUMS];
	uint32_t parent, first_child, next;
	uint32_t children;
};

struct chain {
	const struct segments *s;
	bool by_name;	    /* threads of one name are one */
	unsigned int sums;  /* bits: to which of them what follows is added */
	const bool *within; /* of each sample: its stack has a function; or NULL */
	struct chain_node *nodes;
	size_t count, room;
	struct index index;
	uint64_t steps; /* so far */
	bool cut;	/* there were too many */
};

/* Returns 0 or -ENOMEM; chain_free() in any case. It has one node, number 0, without a time. */
int chain_begin(struct chain *c, const struct segments *s, bool by_name);

/* Adds what a thread did in an interval below the first node. Returns 0 or -ENOMEM. */
int chain_add(struct chain *c, uint32_t thread, const struct time_interval *interval);

/*
 * Adds each part of an interval in which a thread was blocked below the first node. Returns 0 or
 * -ENOMEM.
 */
int chain_add_blocked(struct chain *c, uint32_t thread, const struct time_interval *interval);

/*
 * When all has been added: splits what ran among functions by their ticks, and sorts children, most
 * of the given sum first.
 */
int chain_end(struct chain *c, int sum);

/*
 * Whom a sample's waits are for, where nodes show it: who has the lock, unless threads of one name
 * are one; the disk. NULL: none, or unknown.
 */
const char *chain_peer(const struct chain *c, uint32_t sample);
void chain_free(struct chain *c);

#endif
