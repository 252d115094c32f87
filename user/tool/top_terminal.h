/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_TERMINAL_H
#define PROFIL_TOOL_TOP_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

#include "util/error.h"

/* The terminal in full-screen mode. terminal_close() restores it. */
struct terminal {
	int signals; /* readable when a signal about the terminal is pending */

	/* private */
	sigset_t before;
	bool open;
};

/* True if standard input and output are a terminal with cursor addressing. */
bool terminal_is_fit(void);

/* terminal_close() is due in any case. */
int terminal_open(struct terminal *t, struct error *e);
void terminal_close(struct terminal *t);

/* Handles the pending signals: stop, continue, change of size. */
void terminal_take_signals(struct terminal *t);

#endif
