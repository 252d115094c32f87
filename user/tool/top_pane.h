/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_PANE_H
#define PROFIL_TOOL_TOP_PANE_H

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

#include "report/live/live.h"
#include "report/live/live_time.h"
#include "report/live/live_tree.h"
#include "util/error.h"

/* What is shown instead of the table: lines of text, or a list with a cursor. */
struct pane {
	enum pane_kind {
		PANE_HELP,
		PANE_CODE,   /* a function's instructions with their samples */
		PANE_CALLS,  /* what calls it, or what it calls, by recorded calls */
		PANE_STATES, /* what threads did since the last update, or in all */
		PANE_TREE,   /* of all calls; of a function's callers or callees */
		PANE_TIME,   /* how many CPUs were busy over time */
	} kind;
	const struct row_view *view; /* of states: threads or processes */
	char *function, *image;	     /* image: NULL: any */
	bool callees;		     /* of CALLS: those, not callers */
	size_t zooms;		     /* how many there were when it was opened */
	struct live_tree tree;
	struct live_time time;

	/* The text, of all others. */
	char *text;
	size_t *lines; /* where each begins in the text; one more at its end */
	size_t count, room;
	size_t fixed; /* of them, those at the top that do not scroll */
	size_t top;   /* the first that is shown: of the others, or of the list's */
	unsigned int width;
	uint64_t due_ns; /* when the text may be made again */
	regex_t regex;	 /* what is searched for in it */
	bool has_regex;
};

/*
 * Shows a text about a function, or its callers; function: NULL: help, states or all calls. pane is
 * overwritten, and may not be moved while it is open. Returns 0 or -errno with e set.
 */
int pane_open(struct pane *pane, enum pane_kind kind, struct live *l, const char *function,
	      const char *image, unsigned int width, struct error *e);

/*
 * Makes the text again from the present counts: at once for another width, else only after a pause
 * in proportion to the time that it takes. Makes a tree again that pane_suspend() has freed.
 */
int pane_update(struct pane *pane, struct live *l, unsigned int width, struct error *e);

/* Is due before the profile, or what is shown of it, changes. Returns 0 or -ENOMEM. */
int pane_suspend(struct pane *pane);
void pane_close(struct pane *pane);

/* The next hot line after `line`, wrapping around at the end; SIZE_MAX: none. */
size_t pane_next_hot(const struct pane *pane, size_t line);

/* Searches the text for an extended regular expression. Returns 0 or -EINVAL with e set. */
int pane_search(struct pane *pane, const char *pattern, struct error *e);

/* The next line that matches, or the last before; the same. */
size_t pane_next_match(const struct pane *pane, size_t line, bool backwards);

#endif
