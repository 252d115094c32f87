/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UPROBE_H
#define PROFIL_CAPTURE_UPROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

/*
 * Runs a BPF program of type kprobe whenever a thread of the machine comes to the code at this
 * offset of an open file, or returns from the function that begins there; the program chooses whose
 * it wants. Returns a descriptor that the caller closes, which ends it; or a negative errno with e
 * set.
 */
int uprobe_attach(int file, uint64_t offset, bool at_return, int program, struct error *e);

#endif
