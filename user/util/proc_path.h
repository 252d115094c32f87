/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_PROC_PATH_H
#define PROFIL_UTIL_PROC_PATH_H

#include <stddef.h>

/* Paths of mapped files as the kernel shows them: proc(5), and the records of perf events. */

/* The length of the path without the " (deleted)" that the kernel appends. */
size_t proc_path_size(const char *path);

/* Restores newlines, which /proc/PID/maps has as \012; it escapes nothing else. In place. */
void proc_path_unescape(char *path);

#endif
