/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SIDEBAND_H
#define PROFIL_CAPTURE_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * Sideband records: the kernel reports mappings, execs and new thread names of all processes
 * through a dummy perf event on each CPU; the reader picks its own processes. Fork and exit records
 * of all processes come the same way, those of members alone from the BPF program that follows
 * them.
 */

enum sideband_type {
	SIDEBAND_MMAP, /* executable memory was mapped, or made executable */
	SIDEBAND_COMM, /* a thread was renamed */
	SIDEBAND_EXEC, /* a process runs a new program: its mappings are gone */
	SIDEBAND_FORK, /* a process or thread was created; a process has its parent's mappings */
	SIDEBAND_EXIT, /* a thread ended */
};

struct sideband_record {
	enum sideband_type type;
	uint64_t maybe_ns; /* not 0: the record was lost; it was after this and before time_ns */
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	pid_t pid, tid;
	pid_t parent, parent_tid;      /* FORK */
	uint64_t start, limit, offset; /* MMAP */
	uint64_t device, inode;	       /* MMAP; inode 0: no file */
	uint8_t build_id[20];	    /* MMAP: not of the kernel, but for those who open the file */
	unsigned int build_id_size; /* MMAP; 0: unknown, or none */
	const char *name;	    /* MMAP: path; COMM, EXEC: the new name */
};

struct sideband;

/*
 * Starts to collect records. `forks`: also fork and exit records of all processes; else the caller
 * adds those it has with sideband_add(). The caller owns *s: see sideband_free().
 */
int sideband_open(bool forks, struct sideband **s, struct error *e);
void sideband_free(struct sideband *s);

/* Starts to collect on CPUs that have come online since; to be called from time to time. */
int sideband_open_cpus(struct sideband *s, struct error *e);

/* Adds a copy of a fork or exit record for sideband_read(). Returns 0 or -ENOMEM. */
int sideband_add(struct sideband *s, const struct sideband_record *record);

/*
 * Visits the records up to until_ns, ordered by time; the caller has added all of its own up to
 * then. A record and what it points to are valid until visit returns. Stops when visit returns
 * non-zero, and returns that, or -ENOMEM.
 */
int sideband_read(struct sideband *s, uint64_t until_ns,
		  int (*visit)(const struct sideband_record *, void *context), void *context);

/* How many records the kernel has reported as dropped, because a buffer was full. */
uint64_t sideband_lost(const struct sideband *s);

/*
 * Up to when the last sideband_read() has had all records but those lost; until_ns, or less if a
 * buffer was full and the kernel may have dropped some that it has not reported yet.
 */
uint64_t sideband_complete_ns(const struct sideband *s);

/* Returns *count descriptors to poll: readable when a buffer fills up. Owned by s. */
const int *sideband_fds(const struct sideband *s, size_t *count);

#endif
