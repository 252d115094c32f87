/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_UTIL_MEMORY_H
#define PROFIL_UTIL_MEMORY_H

#include <stdint.h>

/*
 * How many bytes a process could use now without swapping: what the machine has, but not more than
 * the limits of the control groups that we are in. 0: not known.
 */
uint64_t memory_available(void);

/* The same of what stands in the files below this directory, for tests; "": the machine's own. */
uint64_t memory_available_below(const char *root);

#endif
