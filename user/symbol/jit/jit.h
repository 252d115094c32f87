/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_JIT_H
#define PROFIL_SYMBOL_JIT_H

#include "symbol/batch.h"

/*
 * Names of code that a process has made at run time, from the file that it writes them to. Such a
 * file may be half written, wrong, or made to harm whoever reads it: it is read, never mapped, and
 * memory follows the addresses. Time follows the file's size and the number of its entries, of
 * which there are budgets: what is beyond them is not read, and the profile is warned. The file
 * goes on growing: what is behind its last whole line or record is not looked at.
 */

/* Why such code has no names when there is no such file, and how to get one */
extern const char jit_no_names[];

/* A reader, as in batch.h, of images of the kind IMAGE_JIT. */
batch_reader jit_resolve;

/* What jit_resolve() does with the open file. Returns 0 or -ENOMEM. */
int jit_resolve_from(struct batch *b, int fd);

#endif
