/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PID_NUMBERS_H
#define PROFIL_CAPTURE_PID_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The numbers of a thread, from our pid namespace to its own: how many they are, and the last. 0:
 * there is no such thread.
 */
size_t pid_numbers(pid_t pid, pid_t tid, uint64_t *innermost);

#endif
