/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_THREADS_H
#define PROFIL_LIB_THREADS_H

#include <stdbool.h>

/* Whether the first thread has called pthread_exit(3) while others run. */
bool profil__first_thread_ended(void);

/*
 * The state of the first thread, which it reports itself: asking the kernel takes a system call
 * that a seccomp(2) filter may forbid to the program's threads.
 */
enum first_thread {
	FIRST_THREAD_UNWATCHED, /* it does not report; the kernel must be asked */
	FIRST_THREAD_RUNS,
	FIRST_THREAD_ENDS,
};
void profil__set_first_thread(enum first_thread first);

/*
 * Whether all threads of the program have ended: a process ends with its last thread, but the
 * library's would run forever. `own` is how many threads of the library run. The first thread stays
 * in /proc until the process ends, even if it has ended itself. Without /proc, the program is taken
 * to end with its first thread.
 */
bool profil__program_ended(unsigned int own);

#endif
