/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_TERMINAL_H
#define PROFIL_TOOL_TOP_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

#include "util/error.h"

/* The terminal while the whole of it is used. It is left as it was found. */
struct terminal {
	int signals; /* readable when one about the terminal has come */

	/* private */
	sigset_t before;
	bool open;
};

/* Whether standard input and output are a terminal on which text can be put anywhere. */
bool terminal_is_fit(void);

/* terminal_close() is due in any case. */
int terminal_open(struct terminal *t, struct error *e);
void terminal_close(struct terminal *t);

/* Stops this program, goes on and takes another size, as the signals say that came. */
void terminal_take_signals(struct terminal *t);

#endif
