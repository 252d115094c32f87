/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_WHY_H
#define PROFIL_REPORT_WHY_H

#include <stdio.h>

#include "report/chain.h"

/*
 * Why threads took so long: chain.h as text or JSON (profiltool-json(5)). A node of the tree is a
 * line, below it are its parts:
 *
 *           ms       %
 *      300.000  100.00  client (9951), 2026-11-29 14:03:02.150 UTC
 *      297.997   99.33    blocked: socket, woken by frontend (9952)
 *      254.987   85.00      frontend (9952) blocked: socket, woken by b-worker (9954)
 */
struct why_options {
	double percent; /* parts with less of the whole are one line */
	size_t limit;	/* of the slowest turns */
	/*
	 * Also say what is left at best without this: "runnable", a reason of waits, a thread or a
	 * function; or NULL.
	 */
	const char *without;
	const char *span; /* turns are calls of this function; NULL: what is between idle waits */
	/* Only turns whose label (segments.label) this shell pattern matches; NULL: all. */
	const char *pattern;
	bool by_label; /* turns with one label are a group, each with a tree of its own */
	unsigned int width;
	bool json;
};

/* Numbers of threads, as of struct segments. */
struct why_threads {
	uint32_t *list;
	size_t count;
};

/* A turn: the time of a thread from an idle wait, or its begin, to the next one, or its end. */
struct why_turn {
	struct time_interval when;
	uint32_t thread;
	const char *label; /* for whom, most of the time: segments.label; NULL: unknown */
};

#define WHY_QUANTILES 5
struct why_quantile {
	const char *name, *key;
	unsigned int per_mille;
};
extern const struct why_quantile why_quantiles[WHY_QUANTILES];

/*
 * Selects the threads with this TID or name, or those of the processes; text is a number or a name,
 * or NULL: all.
 * The caller free()s threads->list. Returns 0 or -ENOMEM.
 */
int why_select(const struct segments *s, const char *text, bool processes,
	       struct why_threads *threads);

/*
 * Prints what each thread did in an interval: those that were idle for the least of it first,
 * without those that were idle all the time, if there are others.
 */
int why_print_interval(const struct segments *s, const struct why_threads *threads,
		       const struct time_interval *interval, const struct why_options *o,
		       FILE *out);

/*
 * Sets *p to a profile of the time in which the threads were blocked in an interval, one value in
 * nanoseconds: each stack is a way down the tree, its root a thread that was blocked, its leaf what
 * it was blocked for in the end. Threads of one name are one. Returns 0 or -ENOMEM; the caller
 * calls profile_free().
 */
int why_sum(const struct segments *s, const struct why_threads *threads,
	    const struct time_interval *interval, struct profile **p);

/*
 * Prints how long turns took, when the slowest were, and of what the slowest 1 % consist beside all
 * of them, or of all calls of o->span, with or without the function's parameters; by label, a table
 * of them, those whose turns took most in all first, and then that of each. *count receives how
 * many turns there were; with 0, only JSON is printed.
 */
int why_print_turns(const struct segments *s, const struct why_threads *threads,
		    const struct why_options *o, size_t *count, FILE *out);

/*
 * Adds turns to a list that is empty, NULL, by thread and time. The caller free()s *turns, in any
 * case. Returns 0 or -ENOMEM.
 */
int why_list_turns(const struct segments *s, const struct why_threads *threads,
		   struct why_turn **turns, size_t *count);

/*
 * The label with which a thread spent most of an interval, a turn or a wait; NULL: it had none, or
 * s->label is NULL.
 */
const char *why_label(const struct segments *s, uint32_t thread, const struct time_interval *when);

/* The number of the turn that is this quantile, of `count` that are longest first; not of none. */
size_t why_quantile(size_t count, int quantile);

/* What a node is, as text that the caller free()s; NULL: there is no memory. */
char *why_node_text(const struct chain *c, const struct chain_node *n);

#endif
