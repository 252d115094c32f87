/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_OPENER_H
#define PROFIL_CAPTURE_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "capture/refusal.h"
#include "util/child.h"

/*
 * Opens files and reads memory that other users control, in a process of its own. Both may wait for
 * ever: for a FUSE server of the user's, for a dead server's network file system, for a page that
 * userfaultfd(2) is to fill; not even SIGKILL ends some of these waits. An opener that does not
 * answer is left behind, and another one goes on without the one for whom it waits: a user, or for
 * root's processes a device. That one is asked for again when the opener which was left has ended,
 * and not at once: what it had us wait for is a small part of the time.
 */

/* One for whom we waited too long. */
struct opener_stall {
	uint64_t who;
	int pid_fd;	  /* of the opener that was left behind; -1: it is gone */
	uint64_t next_ns; /* when to ask again */
	uint64_t wait_ns; /* how much later it is after the next time */
};

/*
 * Each is of another user, or of another device of root's; beyond that, users have no opener.
 * Bound: users: users and devices that did not answer; half of it users; then: nothing of any other
 * user is asked for; of root's devices the one that is next to be asked makes room; again: when one
 * of them answers; share: none: 32 users take it from all others; root is apart; seen: refusals,
 * no_answer.
 */
#define OPENER_STALLS_MAX 64

/* Zero-initialised is fine. */
struct opener {
	struct child child;
	struct opener_stall stalls[OPENER_STALLS_MAX];
	size_t stall_count;
	struct refusals *refusals; /* counts what is not read; or NULL */
};

/* Whose file or memory it is. */
struct opener_target {
	pid_t pid;
	uid_t uid;	 /* the effective user of the process; 0: root, the caller, or unknown */
	uint64_t device; /* of the file; 0: unknown */
};

struct opened_file {
	struct stat status;
	uint8_t build_id[20];
	unsigned int build_id_size; /* 0: none, or unknown */
	unsigned int bits;	    /* 32 or 64 of an ELF file, else 0 */
	bool is_copy;		    /* the descriptor is of a copy in memory */
	uid_t opened_for;	    /* whose share a copy is in: the caller's, for itself */
};

struct sideband_record;

/*
 * Bytes of a file in a FUSE file system, of which the opener returns a copy in memory: to close
 * such a file, as to read it, waits for its server.
 * Bound: users: bytes of a file on FUSE; then: it is not read, with -EFBIG; again: when the file is
 * smaller; share: a file's own; seen: in the reason why its code has no names.
 */
#define OPENER_COPY_MAX ((size_t)16 * 1024 * 1024)

/*
 * Opens the file of a mapping for reading: through /proc/PID/map_files, which works for deleted
 * files and in other mount namespaces; else the program's by /proc/PID/exe, and others' by their
 * path below /proc/PID/root. Returns a descriptor, which the caller owns, or a negative errno:
 * -ESRCH: the process has ended; -ETIMEDOUT: no answer, or there was none before.
 */
int opener_open_mapped(struct opener *o, const struct opener_target *target,
		       const struct sideband_record *record, struct opened_file *file);

/*
 * Opens a file for reading by its path in a root directory; -1: ours. links: whether a last
 * component that is a link is followed. Returns as above; with -EINVAL, it is no regular file, and
 * file->status is what it is.
 */
int opener_open_path(struct opener *o, const struct opener_target *target, int root,
		     const char *path, bool links, struct opened_file *file);

/* Bound: size. */
#define OPENER_MEMORY_MAX 65536

/* A process's memory. */
struct opener_memory {
	struct opener *opener;
	struct opener_target target;
};

/* Reads up to `size` bytes, at most OPENER_MEMORY_MAX. Returns how many, or as above. */
ssize_t opener_read_memory(const struct opener_memory *m, uint64_t from, void *to, size_t size);

/*
 * Reads the beginning of the process's command line, with its NULs, which is memory of its own; and
 * ends it with another. Returns how many bytes, or as above.
 */
ssize_t opener_read_command(struct opener *o, const struct opener_target *target, char *text,
			    size_t size);

/* Ends the opener. Those that were left behind end by themselves, at the latest with us. */
void opener_end(struct opener *o);

/* As stat(2) follows links, but by what is known without asking the file system's server. */
int opener_stat_known(int directory, const char *path, struct stat *status);

#endif
