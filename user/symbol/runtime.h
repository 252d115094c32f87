/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_RUNTIME_H
#define PROFIL_SYMBOL_RUNTIME_H

#include <stdint.h>

#include "profile/profile.h"

/*
 * The runtimes whose programs are not, or not all, machine code in a file: they compile at run
 * time, or interpret. They are recognized by the images in a profile, which may have been recorded
 * elsewhere. Each has its own way to let a profiler know the names of its functions.
 */

struct runtimes;

/* Finds those of each process, by all samples. Returns NULL when memory has run out. */
struct runtimes *runtimes_new(const struct profile *p);
void runtimes_free(struct runtimes *r);

/*
 * `why`, with a hint behind it for each runtime that has made a good part of an image's code
 * without names: [anon], [jit PID] and what else is memory without a file. An image with less than
 * 1 % of the samples has none. Returns a string to be free()d, or NULL when memory has run out.
 */
char *runtimes_hints(struct runtimes *r, uint32_t image, const char *why);

/*
 * What to know of samples in an interpreter, whose functions have names, but not those of the
 * program that it runs; NULL: the image is none, or the profile has the program's names.
 */
const char *runtime_interpreter(const struct profile *p, uint32_t image);

#endif
