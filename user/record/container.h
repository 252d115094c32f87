/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_CONTAINER_H
#define PROFIL_RECORD_CONTAINER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* Containers, as the tag `container` of samples has them. Zero-initialised is none. */
struct container_list {
	char **texts;
	size_t count, room;
	char unreadable[64]; /* a directory of state files that we may not read; "": none */
};

/*
 * Finds containers by a name or a shell pattern, in the state files of docker, podman, CRI-O,
 * containerd and kubernetes; no daemon is asked. One of kubernetes has the name
 * NAMESPACE/POD/CONTAINER: POD/CONTAINER, POD and CONTAINER find it, too. Adds to *found, which the
 * caller frees with container_list_free() in any case. Returns 0 or -ENOMEM with e set; what cannot
 * be read, or is not as expected, is left out.
 */
int containers_find(const char *pattern, struct container_list *found, struct error *e);
void container_list_free(struct container_list *list);

/* The names of containers that were looked for, by ID. Zero-initialised: none was. */
struct container_names {
	struct container_entry {
		char *id, *name;   /* name: NULL: unknown */
		uint64_t first_ns; /* when it was looked for first */
		uint64_t next_ns;  /* when it is looked for next, if it has no name */
	} * entries;		   /* ordered by ID */
	size_t count, room;
	struct container_user {
		uid_t uid;
		uint64_t paid_ns; /* when what reading this user's files took is paid for */
	} * users;
	size_t user_count, user_room;
};

/*
 * Returns the name of a container, of kubernetes with namespace and pod; NULL: none is known, or
 * memory ran out. id: as the tag `container` of samples has it. Looks for it in the state files
 * until it has a name, so that a recording has one name of it; without one, after 5 seconds, and
 * then less and less often. A user's files are not read if those that were have taken more than a
 * hundredth of the time. The name is valid until the next call.
 */
const char *container_name(struct container_names *names, const char *id);
void container_names_free(struct container_names *names);

#endif
