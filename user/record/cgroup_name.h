/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_CGROUP_NAME_H
#define PROFIL_RECORD_CGROUP_NAME_H

#include <stdbool.h>

/*
 * The systemd unit and the container of processes, by the path of their control group. Users and
 * containers choose the names of groups that are delegated to them: such names get the prefix
 * OWNER/, because no name of the system's contains a slash.
 */

#define CGROUP_NAME_SIZE 256 /* as long as the name of a directory can be, with its NUL */

/*
 * The systemd unit: the deepest service or scope of the path, without those that only hold others
 * (the init.scope of a user's manager). In another unit or a container: OUTERMOST/UNIT, as
 * user@1000.service/x.service; a session of a user: user-1000.slice/session-3.scope. Names that are
 * too long are cut. Returns false if there is none.
 */
bool cgroup_unit(const char *path, char unit[static CGROUP_NAME_SIZE]);

/*
 * The container: the ID that Docker, Podman, containerd or CRI-O gave it, whole, or the name of an
 * LXC container or of a machine of systemd-machined. A user's own: user-1000.slice/ID; in another
 * one: OUTERMOST/ID. Returns false if there is none.
 */
bool cgroup_container(const char *path, char container[static CGROUP_NAME_SIZE]);

#endif
