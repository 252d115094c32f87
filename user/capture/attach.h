/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_ATTACH_H
#define PROFIL_CAPTURE_ATTACH_H

#include "capture/events.h"
#include "capture/sideband.h"

struct attach_request {
	const pid_t *pids; /* processes */
	size_t pid_count;
	pid_t except;	    /* a thread that gets no event; 0: none */
	size_t most_events; /* -EDQUOT when it takes more; 0: no limit */
	uint64_t most_ns;   /* -EAGAIN when it takes longer; 0: no limit */
	/* Receives the records that come meanwhile, unless it is NULL; returns 0 or -ENOMEM. */
	int (*take)(const struct sideband_record *record, void *context);
	void *context;
};

/*
 * Gives every thread of the processes its event while they go on making and ending threads.
 *
 * Threads to come inherit the events of the thread that makes them, so a new one must get an event
 * of its own if, and only if, its maker had none when it made it. The kernel's records of births
 * tell makers and times. Where a birth and the opening of its maker's event overlap, nobody can
 * tell. Such a thread gets an event of the next generation of the program; when it turns out to
 * have ticks of several generations, only those of the lowest count (counts_drop_doubles(), and
 * is_double() in bpf/profil.bpf.c).
 */
int attach_processes(struct event_set *set, struct program *program, struct sideband *sideband,
		     const struct attach_request *request, struct error *e);

/* The threads of a process, at *tids, which is the caller's to free(): -ESRCH when it has ended. */
int attach_list_threads(pid_t pid, pid_t **tids, size_t *count, struct error *e);

#endif
