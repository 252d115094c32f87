/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_JIT_H
#define PROFIL_SYMBOL_JIT_H

#include "symbol/batch.h"

/*
 * Names of code generated at run time, from the file that the process writes them to. The file is
 * untrusted: it is read, never mapped, and memory is O(addresses). Time is O(file size), with
 * budgets for the bytes and entries read: the rest is not read, and the profile gets a warning. The
 * file may be growing: an incomplete line or record at its end is not read.
 */

#define JIT_WINDOW ((size_t)64 * 1024) /* longer names are truncated */

/* Why such code has no names if there is no such file */
extern const char jit_no_names[];

/* The reader (batch.h) of images of kind IMAGE_JIT. */
batch_reader jit_resolve;

/* The same for an open file. Returns 0 or -ENOMEM. */
int jit_resolve_from(struct batch *b, int fd);

#endif
