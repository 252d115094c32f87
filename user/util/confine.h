/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_CONFINE_H
#define PROFIL_UTIL_CONFINE_H

#include <stddef.h>

/*
 * For a child process (util/child.h) that reads what others wrote: gives up all that it does not
 * need for that, without a way back. No capabilities, and none by exec; no memory that it shares
 * with its parent, such as the tables of eBPF programs; where the caller may change it, an empty
 * root directory; limits of its memory; and a filter of system calls, which are then those of
 * reading open descriptors, of its memory, and of messages: none takes a path, makes a process or
 * memory to execute, or reaches another process. Other calls fail with EPERM.
 *
 * memory: how much it may have of its own, in bytes. Returns 0 or a negative errno, with which the
 * caller must end.
 */
int confine(size_t memory);

#endif
