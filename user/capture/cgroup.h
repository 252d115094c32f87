/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CGROUP_H
#define PROFIL_CAPTURE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* A control group: a directory in a cgroup file system. */
struct cgroup {
	const char *path; /* as given by the user */
	int fd;
	uint64_t id; /* as in the kernel: the inode */
	bool is_v1;  /* in a cgroup v1 hierarchy */
};

/*
 * Opens group->path: a directory, if it begins with "/" or ".", or else a path below the mount
 * point of the hierarchy, as systemd shows it, with or without the leading slash
 * ("/system.slice/x.service"). Sets the rest of *group; the caller closes its fd. Returns 0 or
 * -errno.
 */
int cgroup_open(struct cgroup *group, struct error *e);

/* Whether it is the root group, which contains all processes. */
bool cgroup_has_all(const struct cgroup *group);

/*
 * Sets *ns to the CPU time of the group and those below it since its creation. Returns 0 or a
 * negative errno; -ENOENT: not reported, as in cgroup v1.
 */
int cgroup_cpu_ns(const struct cgroup *group, uint64_t *ns);

/* Whether it has been removed, so that no process will ever be in it again. */
bool cgroup_is_gone(const struct cgroup *group);

/*
 * Sets *tids to the *count threads that are now in the groups with these paths and in those below
 * them; the caller frees it. A thread outside of our PID namespace has the number 0. Returns 0 or
 * -errno.
 */
int cgroup_list_threads(const char *const *paths, size_t path_count, pid_t **tids, size_t *count);

/*
 * Calls visit for each group, those above others first, of the hierarchy of cgroup v2, or of v1
 * with perf_event: with its directory, of which the part from `below` on is its path in the
 * hierarchy. If visit returns 1, those below it are left out; a negative errno ends the walk.
 * Returns that, or 0.
 */
int cgroup_each(bool v1, int (*visit)(const char *path, size_t below, void *context),
		void *context);

#endif
