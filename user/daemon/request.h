/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_REQUEST_H
#define PROFIL_DAEMON_REQUEST_H

#include <stddef.h>

#include "lib/protocol.h"
#include "util/error.h"

/* The longest request. */
#define REQUEST_SIZE (sizeof(struct profild_request) + PROFIL_RANGES * sizeof(struct profil_range))

/*
 * Whether the `size` bytes of a message make a request that means something, down to the last
 * range: -EINVAL with e set when not. A longer message than REQUEST_SIZE has its true size here.
 */
int request_check(const struct profild_request *request, size_t size, struct error *e);

#endif
