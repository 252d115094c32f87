/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_SIGNALS_H
#define PROFIL_UTIL_SIGNALS_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <time.h>

#include "util/error.h"

/*
 * Blocks these signals, a list that ends with 0. Returns a descriptor that they can be read from,
 * or -errno with e set.
 */
static inline int signals_open(const int *signals, struct error *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	while (*signals)
		sigaddset(&set, *signals++);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_set(e, errno, "cannot watch for signals") : fd;
}

/*
 * Blocks all signals of this thread while a file has a temporary name: a signal that ends the
 * process is delivered when the file has its own name or is removed. A SIGXFSZ caused meanwhile is
 * discarded, since write(2) reports it: EFBIG.
 */
struct held_signals {
	sigset_t before;
	bool had_file_size; /* a SIGXFSZ was pending before, and stays */
};

static inline void signals_hold(struct held_signals *held)
{
	sigset_t all, pending;

	sigemptyset(&pending);
	sigpending(&pending);
	held->had_file_size = sigismember(&pending, SIGXFSZ);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &held->before);
}

static inline void signals_release(const struct held_signals *held)
{
	const struct timespec at_once = { 0 };
	sigset_t file_size;

	sigemptyset(&file_size);
	sigaddset(&file_size, SIGXFSZ);
	if (!held->had_file_size)
		sigtimedwait(&file_size, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

#endif
