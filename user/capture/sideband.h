/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SIDEBAND_H
#define PROFIL_CAPTURE_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * The kernel's own records of what processes do to their address spaces, from one dummy perf
 * event on each CPU. They come for every process of the machine; the reader picks its own.
 * Births and ends come from the program that follows them, where it does so: of members alone.
 */

enum sideband_type {
	SIDEBAND_MMAP, /* executable memory was mapped, or made executable */
	SIDEBAND_COMM, /* a thread was renamed */
	SIDEBAND_EXEC, /* a process runs a new program: its mappings are gone */
	SIDEBAND_FORK, /* a process was born, with its parent's mappings */
	SIDEBAND_EXIT, /* a thread ended */
};

struct sideband_record {
	enum sideband_type type;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	pid_t pid, tid;
	pid_t parent, parent_tid;      /* FORK: whose child it is */
	uint64_t start, limit, offset; /* MMAP */
	const uint8_t *build_id;       /* MMAP */
	unsigned int build_id_size;    /* MMAP; 0: the kernel told none */
	uint64_t device, inode;	       /* MMAP; inode 0: not told */
	const char *name;	       /* MMAP: path; COMM, EXEC: the new name */
};

struct sideband;

/*
 * Begins to collect. `forks`: fork and exit records of all processes; else only those that
 * sideband_add() brings. *s is the caller's, to sideband_free().
 */
int sideband_open(bool forks, struct sideband **s, struct error *e);
void sideband_free(struct sideband *s);

/* To be called now and then: also on CPUs that came online since. */
int sideband_open_cpus(struct sideband *s, struct error *e);

/* Adds a fork or exit record, which sideband_read() visits in the order of time. Returns 0 or
 * -ENOMEM. */
int sideband_add(struct sideband *s, const struct sideband_record *record);

/*
 * Hands on, in the order of time, the records that came before until_ns: all of them must have been
 * added by then. Later calls bring none that is older. The record and what it points to live until
 * visit returns.
 */
int sideband_read(struct sideband *s, uint64_t until_ns,
		  int (*visit)(const struct sideband_record *, void *context), void *context);

/* Records that the kernel had no room for. */
uint64_t sideband_lost(const struct sideband *s);

/* The descriptors to poll: *count of them; readable when a buffer fills up. */
const int *sideband_fds(const struct sideband *s, size_t *count);

#endif
