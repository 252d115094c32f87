/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROGRAM_H
#define PROFIL_CAPTURE_PROGRAM_H

#include "util/error.h"

/*
 * Calls load(object), which has libbpf load a BPF object and returns 0 or a negative errno;
 * explains why it failed.
 */
int program_load(int (*load)(void *object), void *object, struct error *e);

/* Sets e for what failed with this errno, with a hint if a limit of this process is why. -code. */
int program_out_of(struct error *e, int code, const char *what);

struct bpf_program;

/*
 * Attaches a program to the tracepoint that it is for. Returns a descriptor, the caller's, which
 * keeps it attached, or a negative errno.
 */
int program_attach(const struct bpf_program *program);

#endif
