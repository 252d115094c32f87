/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_PANE_H
#define PROFIL_TOOL_TOP_PANE_H

#include <stddef.h>
#include <stdint.h>

#include "report/live/live.h"
#include "util/error.h"

/* Lines of text that are shown instead of the table. */
struct pane {
	enum pane_kind {
		PANE_NONE,
		PANE_HELP,
		PANE_CODE,    /* a function's instructions with their samples */
		PANE_CALLERS, /* what calls it */
		PANE_STATES,  /* what threads did since the last update */
	} kind;
	const struct row_view *view; /* of states: threads or processes */
	char *function, *image;	     /* image: NULL: any */
	char *text;
	size_t *lines; /* where each begins in the text; one more at its end */
	size_t count, room;
	size_t fixed; /* of them, those at the top that do not scroll */
	size_t top;   /* the first of the others that is shown */
	unsigned int width;
	uint64_t due_ns; /* when the text may be made again */
};

/* Shows a text about the function of a row; row: NULL for help. Returns 0 or -errno with e set. */
int pane_open(struct pane *pane, enum pane_kind kind, struct live *l, const struct row *row,
	      unsigned int width, struct error *e);

/*
 * Makes the text again from the present counts: at once for another width, else only after a pause
 * in proportion to the time that it takes.
 */
int pane_update(struct pane *pane, struct live *l, unsigned int width, struct error *e);
void pane_close(struct pane *pane);

/* The next hot line after `line`, wrapping around at the end; SIZE_MAX: none. */
size_t pane_next_hot(const struct pane *pane, size_t line);

#endif
