/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_PROC_H
#define PROFIL_UTIL_PROC_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the kernel shows of processes: proc(5). Mappings: util/proc_maps.h. */

struct proc_path {
	char text[128];
};

/* The caller, which may have another PID in a /proc of another PID namespace. */
#define PROC_SELF INT32_MIN

/* The path of a file of a process, "/proc/PID/NAME", or of one of its threads; tid 0: of it. */
struct proc_path proc_path(pid_t pid, pid_t tid, const char *name);

/* The numbers in a directory of processes or threads, one at each call; 0: no more. */
pid_t proc_next(DIR *directory);

struct proc_stat {
	char comm[32];
	char state;
	pid_t parent;
	unsigned int flags, threads;
	uint64_t start_ns; /* CLOCK_BOOTTIME, rounded down to a clock tick */
};

/* Reads the file stat, also by a TID. Returns 0 or a negative errno: -ESRCH: it has ended. */
int proc_read_stat(pid_t pid, struct proc_stat *stat);

struct proc_status {
	char state;
	pid_t process;
	uid_t uid; /* effective; -1: unknown */
	gid_t gid;
	/* How many PIDs it has: in our PID namespace, and in each below it down to its own. */
	size_t pid_count;
	pid_t own_pid, own_process; /* in its own namespace */
	uint64_t resident_kib, resident_most_kib;
	uint64_t caught;	      /* signals */
	uint64_t effective, bounding; /* capabilities */
	unsigned int seccomp;
};

/* Reads a file status; directory: of the path, or AT_FDCWD. Returns as above. */
int proc_read_status(int directory, const char *path, struct proc_status *status);

/* The inode of the caller's "ns/user" or "ns/pid"; 0: it is the machine's own, or unknown. */
uint32_t proc_own_namespace(const char *name);

#endif
