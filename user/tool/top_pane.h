/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_PANE_H
#define PROFIL_TOOL_TOP_PANE_H

#include <stddef.h>
#include <stdint.h>

#include "report/live/live.h"
#include "util/error.h"

/* Lines of text that are looked at in place of the table. */
struct pane {
	enum pane_kind {
		PANE_NONE,
		PANE_HELP,
		PANE_CODE,    /* a function's instructions with their samples */
		PANE_CALLERS, /* what calls it */
	} kind;
	char *function, *image; /* image: NULL: any */
	char *text;
	size_t *lines; /* where each begins in the text; one more at its end */
	size_t count, room;
	size_t fixed; /* of them, those at the top that do not scroll */
	size_t top;   /* the first of the others that is shown */
	unsigned int width;
	uint64_t due_ns; /* when it may be made anew */
};

/* row: of which function; NULL for help. Fails with e set when there is nothing to be shown. */
int pane_open(struct pane *pane, enum pane_kind kind, struct live *l, const struct row *row,
	      unsigned int width, struct error *e);

/*
 * Makes the text anew, with what was counted meanwhile, unless that took long just before; at once
 * for another width.
 */
int pane_update(struct pane *pane, struct live *l, unsigned int width, struct error *e);
void pane_close(struct pane *pane);

/* The next hot line behind `line`, from the beginning again at the end; SIZE_MAX: there is none. */
size_t pane_next_hot(const struct pane *pane, size_t line);

#endif
