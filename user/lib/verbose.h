/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * All that libprofil prints: lines on standard error if PROFIL_VERBOSE is 1, but none to a file
 * that the program has opened in the place of standard error.
 */
#ifndef PROFIL_LIB_VERBOSE_H
#define PROFIL_LIB_VERBOSE_H

#include <stdbool.h>
#include <stdint.h>

bool profil__is_verbose(void);

/* In a forked child. */
void profil__verbose_forked(void);

/* Which back end counts, and why those before it do not. name NULL: none does. */
void profil__print_backend(const char *name, const char *skipped);

/* That profil() or sprofil() has failed, by profil__error_text(): the first time only. */
void profil__print_failure(void);

/* What all sessions of this process about itself have counted. */
struct profil_sum {
	const char *backend;  /* the latest; NULL: there was no session */
	bool no_ticks;	      /* it does not say how many ticks it counts */
	uint64_t ticks, lost; /* lost: of the ticks */
	uint64_t cpu_ns;      /* of the process, while a session was on */
	uint64_t tick_ns;     /* the latest */
};

/*
 * At the end of the process: this sum. If there is nothing in it, why, in the process that
 * PROFIL_RUN names; `used`: some function of the library was called. Makes only the system calls
 * that any program with output makes.
 */
void profil__print_sum(const struct profil_sum *sum, bool used);

#endif
