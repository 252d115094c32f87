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

struct bpf_map;

/* Whose threads are recorded where no processes are named: bpf/whom.h. Zero-initialised: all. */
struct whom {
	bool by_user; /* those whose effective user this is: */
	uid_t uid;
	/* Those in these groups and in those below them, all of one version; none: all. */
	struct cgroup *groups;
	size_t group_count;
};

/* Chooses the size of a program's map whom_groups, before the load. Returns 0 or -errno. */
int whom_choose_map(const struct whom *whom, struct bpf_map *map);

/* Writes the groups to it, before the program is attached. Returns 0 or -errno. */
int whom_fill_map(const struct whom *whom, struct bpf_map *map);

/*
 * Opens control groups by their paths: see cgroup_open(). One that has all processes makes *whom
 * all. The caller calls whom_close() in any case. Returns 0 or -errno.
 */
int whom_open_groups(struct whom *whom, const char *const *paths, size_t count, struct error *e);
void whom_close(struct whom *whom);

/*
 * Sets *ns to the CPU time of the groups and those below them since their creation. Returns 0 or a
 * negative errno: one does not report it, or is removed.
 */
int whom_cpu_ns(const struct whom *whom, uint64_t *ns);

/* Whether all of the groups have been removed. */
bool whom_is_gone(const struct whom *whom);

#endif
