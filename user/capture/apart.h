/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_APART_H
#define PROFIL_CAPTURE_APART_H

#include <stddef.h>
#include <sys/types.h>

#include "util/index.h"

/*
 * When the CPU goes from a thread to one that inherited all its events, the kernel does not switch
 * the events but swaps the two threads' sets of them (context_equiv() in kernel/events/core.c). So
 * the progress of a thread towards its next tick goes to its child, and dies with it: a thread that
 * makes many short-lived ones would never be ticked. Sets that differ are not swapped. What makes
 * them differ is one event more, that is not inherited and counts nothing.
 */
struct apart {
	struct apart_event *events;
	size_t count, room;
	size_t open; /* how many of them hold a descriptor */
	struct index by_tid;
};

/* Keeps a thread's events apart from its children's, if it can: there may be no descriptor left. */
void apart_add(struct apart *apart, pid_t tid);

/* Does so for these threads, and takes those for ended that are not among them. */
void apart_update(struct apart *apart, const pid_t *tids, size_t count);

/* The thread has ended. */
void apart_remove(struct apart *apart, pid_t tid);

void apart_free(struct apart *apart);

#endif
