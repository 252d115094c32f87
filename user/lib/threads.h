/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_THREADS_H
#define PROFIL_LIB_THREADS_H

#include <stdbool.h>

/* Whether it called pthread_exit(3) and others go on. */
bool profil__first_thread_ended(void);

/*
 * What the first thread tells of itself, for to ask the kernel takes a system call that a filter
 * of seccomp(2) may forbid a thread of the program. UNWATCHED: it is going to tell nothing.
 */
enum first_thread {
	FIRST_THREAD_UNWATCHED,
	FIRST_THREAD_RUNS,
	FIRST_THREAD_ENDS,
};
void profil__first_thread_tells(enum first_thread first);

/*
 * A process ends with the last of its threads, but the live thread would go on for ever. So all of
 * the program's threads have ended when these `own` of the library are left, and what remains of
 * the first thread, which is there until the process ends. Where /proc is not there to tell, they
 * are taken to end with the first.
 */
bool profil__program_ended(unsigned int own);

#endif
