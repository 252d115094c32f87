/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_CONTAINER_H
#define PROFIL_TOOL_CONTAINER_H

#include <stddef.h>

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

#endif
