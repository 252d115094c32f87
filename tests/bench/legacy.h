/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs share that know profil(2) from the C library's headers alone, like any old
 * program, and run with libprofil preloaded or with the C library's own profil().
 */
#ifndef TESTS_BENCH_LEGACY_H
#define TESTS_BENCH_LEGACY_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/profil.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

#define CODE_PER_CELL 4	     /* bytes, as gcc -pg has it */
#define SCALE	      0x8000 /* and what that is to profil() */

/* Of the whole program, by the linker. */
extern char __executable_start[], etext[];

static inline void require(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* A library that could not be preloaded is left out by the dynamic linker: not in silence here. */
static inline void require_backend(void)
{
	bool there = dlsym(RTLD_DEFAULT, "profil_backend");

	if (there == (getenv("PROFIL_BACKEND") != NULL))
		return;
	fprintf(stderr, "libprofil is %s\n", there ? "here, but no back end is named" : "not here");
	exit(1);
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Runs on through the signals by which the C library counts. */
static inline void sleep_until(uint64_t ns)
{
	struct timespec time = { ns / NS_PER_S, ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}

static inline void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* The bytes of the cells that so much code takes. */
static inline size_t cells_size(size_t code_size)
{
	return (code_size + CODE_PER_CELL - 1) / CODE_PER_CELL * sizeof(unsigned short);
}

/* Cells for all of this program. */
static inline unsigned short *make_cells(size_t *size)
{
	unsigned short *cells;

	*size = cells_size(etext - __executable_start);
	cells = calloc(1, *size);
	require(cells, "calloc");
	return cells;
}

static inline void profil_on(unsigned short *cells, size_t size)
{
	require(profil(cells, size, (size_t)__executable_start, SCALE) == 0, "profil");
}

static inline void profil_off(void)
{
	/* The C library declares it nonnull, but NULL turns it off. */
	unsigned short *volatile none = NULL;

	require(profil(none, 0, 0, 0) == 0, "profil off");
}

#endif
