/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_HOTSPOT_H
#define PROFIL_RECORD_HOTSPOT_H

#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * HotSpot, the usual Java virtual machine, writes the names of the code that it has compiled to
 * /tmp/perf-PID.map when it gets the request Compiler.perfmap (Java 17 or later). Requests come
 * through its socket, /tmp/.java_pidPID, which it opens at the first SIGQUIT that finds a file
 * .attach_pidPID. PIDs and /tmp are the process's own.
 *
 * SIGQUIT ends a program that does not catch it, may end one that does, and makes a JVM without
 * such a file, or of another kind, print its state. So the signal is sent only to a process that
 * catches it and whose thread for signals is seen to wait for them in HotSpot's code, by a
 * descriptor of the process, which is no other's when the PID is. The process's user can change its
 * /tmp at any time: all there is done with this user's rights alone.
 */
struct hotspot {
	pid_t pid;
	pid_t own_pid; /* in its innermost PID namespace */
	uid_t uid;     /* the effective user and group */
	gid_t gid;
	int process;	       /* pidfd_open(2) */
	int proc;	       /* /proc/PID, of no later process */
	int root;	       /* its root directory */
	const char *no_signal; /* why it may not be sent SIGQUIT; NULL: it may */
};

/*
 * Looks whether a process is HotSpot and can be asked; may hang, if it is malicious. Returns 0,
 * -ENOENT if it is none, or another negative errno with e set. With 0, h's descriptors stay open:
 * its process ends soon.
 */
int hotspot_open(pid_t pid, struct hotspot *h, struct error *e);

/*
 * Makes the process write its map, until a time by CLOCK_MONOTONIC. The calling process becomes one
 * of the JVM's user and group without capabilities: call it in a child of its own. *cpu_ns: the CPU
 * time that the JVM has used for it; 0: unknown. Returns 0 or a negative errno with e set.
 */
int hotspot_write_map(const struct hotspot *h, uint64_t until_ns, uint64_t *cpu_ns,
		      struct error *e);

#endif
