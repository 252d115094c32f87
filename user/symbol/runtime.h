/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_RUNTIME_H
#define PROFIL_SYMBOL_RUNTIME_H

#include <stdint.h>

#include "profile/profile.h"

/*
 * Runtimes that compile code at run time (JIT) or interpret it. They are recognized by the images
 * of a profile, which may have been recorded on another machine. Each has its own way to give a
 * profiler the names of functions.
 */

struct runtimes;

/* Finds the runtimes of each process in the samples. Returns NULL if out of memory. */
struct runtimes *runtimes_new(const struct profile *p);
void runtimes_free(struct runtimes *r);

/*
 * Appends to `why` a hint for each runtime that has generated much of an image's unnamed code.
 * image: [anon], [jit PID], or other memory without a file; one with less than 1 % of the samples
 * gets no hint. Returns a string to be free()d, or NULL if out of memory.
 */
char *runtimes_hints(struct runtimes *r, uint32_t image, const char *why);

/*
 * A hint for samples in an interpreter, which show its own functions instead of those of the
 * program that it runs; perhaps in `text`. NULL: the image is not an interpreter, or the profile
 * has the program's functions.
 */
#define RUNTIME_HINT_SIZE 256
const char *runtime_interpreter(const struct profile *p, uint32_t image,
				char text[static RUNTIME_HINT_SIZE]);

/*
 * A hint for call stacks that end in an image of code made at run time: the option of a runtime in
 * the profile that keeps frame pointers. NULL: none is known.
 */
const char *runtime_frame_hint(const struct profile *p, const char *image);

#endif
