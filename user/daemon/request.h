/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_REQUEST_H
#define PROFIL_DAEMON_REQUEST_H

#include <stddef.h>

#include "lib/protocol.h"
#include "util/error.h"

/* Bytes of the longest request. */
#define REQUEST_SIZE (sizeof(struct profild_request) + PROFIL_RANGES * sizeof(struct profil_range))

/*
 * Checks all fields of a message of `size` bytes, which may be more than REQUEST_SIZE: then only
 * the first REQUEST_SIZE were received. Returns 0, or -EINVAL with e set.
 */
int request_check(const struct profild_request *request, size_t size, struct error *e);

#endif
