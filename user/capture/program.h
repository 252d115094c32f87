/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROGRAM_H
#define PROFIL_CAPTURE_PROGRAM_H

#include "util/error.h"

/* How many generations of a program attach.h may ask for. */
#define PROGRAM_GENERATIONS 8

/*
 * A BPF program for perf events, whichever it is. It is loaded once for each generation
 * (attach.h): the same program on the same maps, but it knows its generation.
 */
struct program {
	/* Loads it; returns a descriptor, which stays the program's, or a negative errno. */
	int (*load)(struct program *program, unsigned int generation);
	int fds[PROGRAM_GENERATIONS]; /* 0: not loaded yet; libbpf never hands out 0 */
};

struct bpf_object;

/*
 * Has an object that is not loaded yet take over the maps of another, but for its settings: those
 * of the same name. What the other has not made of them is not made here either.
 */
int program_share_maps(struct bpf_object *object, struct bpf_object *first);

/* The descriptor of a generation, loaded when it is asked for first; or a negative errno. */
int program_fd(struct program *program, unsigned int generation, struct error *e);

#endif
