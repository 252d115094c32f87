/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_WHOM_H
#define PROFIL_CAPTURE_WHOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/cgroup.h"

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
