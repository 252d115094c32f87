/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UPROBE_H
#define PROFIL_CAPTURE_UPROBE_H

#include <stdint.h>

#include "util/error.h"

/*
 * Runs a BPF program of type kprobe whenever a thread of the machine comes to the instruction at
 * this offset of an open file; the program chooses whose it wants. Returns a descriptor that the
 * caller closes, which ends it; or a negative errno with e set.
 *
 * There is nothing like it for returns: the kernel would replace the return address on the stack
 * (uretprobe), at which the unwinding of a C++ exception terminates the program.
 */
int uprobe_attach(int file, uint64_t offset, int program, struct error *e);

#endif
