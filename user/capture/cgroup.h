/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CGROUP_H
#define PROFIL_CAPTURE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

/* A control group, by the directory that it is in a cgroup file system. */
struct cgroup {
	const char *path; /* as the user has given it */
	int fd;
	uint64_t id; /* the kernel's own */
	bool is_v1;  /* of cgroup v1 */
};

/*
 * Opens group->path: a directory as it stands, when it begins with a slash or a dot, or else one
 * below the place where the hierarchy is mounted, as systemd shows it: "/system.slice/x.service",
 * with the slash or without. Sets all of *group; its fd is the caller's. Returns 0 or -errno.
 */
int cgroup_open(struct cgroup *group, struct error *e);

/* Whether all processes of the machine are in it or in the groups below it. */
bool cgroup_has_all(const struct cgroup *group);

/*
 * The CPU time of its processes and of those below it, since it was made, as the kernel accounts
 * it. -ENOENT when the kernel does not tell: of a hierarchy of cgroup v1.
 */
int cgroup_cpu_ns(const struct cgroup *group, uint64_t *ns);

/* Whether it has been removed: then no process will ever be in it again. */
bool cgroup_is_gone(const struct cgroup *group);

#endif
