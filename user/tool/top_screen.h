/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_SCREEN_H
#define PROFIL_TOOL_TOP_SCREEN_H

#include "tool/top_watch.h"

/*
 * Shows a watch on the whole screen until the user, or a signal that comes through `signals`, ends
 * it. first_key: opens the view that is shown first, as 'w' the states of threads; 0: the table.
 * The terminal is left as it was found. Returns 0 or a negative errno with e set.
 */
int screen_run(struct watch *w, int signals, uint64_t delay_ns, int first_key, struct error *e);

#endif
