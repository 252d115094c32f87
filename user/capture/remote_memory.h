/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_REMOTE_MEMORY_H
#define PROFIL_CAPTURE_REMOTE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REMOTE_MEMORY_MAX 65536

/*
 * The memory of another process. To read it may wait for its user, for ever: for a page of a file
 * on the user's own FUSE server, where not even SIGKILL ends the wait, or one that userfaultfd(2)
 * is to fill. So a child of ours reads the memory of users' processes, and is left behind if it
 * does not answer. Zero-initialised, but for the first two.
 */
struct remote_memory {
	pid_t pid;
	uid_t uid; /* its effective user */

	/* private */
	pid_t reader; /* 0: none */
	int fd;	      /* of the socket to it */
	uid_t stuck[8];
	size_t stuck_count;
};

/*
 * Reads up to `size` bytes, at most REMOTE_MEMORY_MAX. Returns how many, or a negative errno;
 * -ETIMEDOUT: this, or earlier reading of this user's memory, took more than a second.
 */
ssize_t remote_memory_read(struct remote_memory *m, uint64_t from, void *to, size_t size);

void remote_memory_end(struct remote_memory *m);

#endif
