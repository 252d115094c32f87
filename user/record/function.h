/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_FUNCTION_H
#define PROFIL_RECORD_FUNCTION_H

#include "capture/capture.h"

#define FUNCTION_EVENT "uprobe:" /* before it, as an event: perf's word */

/*
 * Finds "[IMAGE:]FUNCTION", as a user gave it: symbol/entry.h has the names of functions. IMAGE is
 * the path of a program or library or, of what the process has mapped, the file's name, with or
 * without what follows ".so"; without it, the program. pid: the process; 0: none, but `program`,
 * the path of one that is to start; or NULL. returns: what ends the function, too. Returns 0, and
 * the caller closes function->file; or a negative errno with e set.
 */
int function_find(const char *text, pid_t pid, const char *program, bool returns,
		  struct capture_function *function, struct error *e);

#endif
