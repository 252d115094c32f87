/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_CGROUP_NAME_H
#define PROFIL_RECORD_CGROUP_NAME_H

#include <stdbool.h>

/* What the path of a control group says about its processes: who made the group names it so. */

#define CGROUP_NAME_SIZE 256 /* as long as the name of a directory can be, with its NUL */

/*
 * The systemd unit: the deepest service or scope of the path, without those that only hold others
 * (the init.scope of a user's manager). Returns whether there is one.
 */
bool cgroup_unit(const char *path, char unit[static CGROUP_NAME_SIZE]);

/*
 * The container: the ID that Docker, Podman, containerd or CRI-O gave it, whole, or the name of an
 * LXC container or of a machine of systemd-machined. Returns whether there is one.
 */
bool cgroup_container(const char *path, char container[static CGROUP_NAME_SIZE]);

#endif
