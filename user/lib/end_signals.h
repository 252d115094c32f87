/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The signals of libc's profil(). */
#ifndef PROFIL_LIB_END_SIGNALS_H
#define PROFIL_LIB_END_SIGNALS_H

#include <signal.h>
#include <sys/time.h>

/*
 * Stops the timer, and has the kernel drop a pending SIGPROF, which would end the program once libc
 * has removed its handler.
 */
static inline void profil__end_signals(void)
{
	static const struct itimerval never;
	static const struct sigaction ignore = { .sa_handler = SIG_IGN };

	setitimer(ITIMER_PROF, &never, NULL);
	sigaction(SIGPROF, &ignore, NULL);
}

#endif
