/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_TOKEN_H
#define PROFIL_PUSH_TOKEN_H

#include <stdbool.h>

#include "util/error.h"

#define TOKEN_MAX 8192

/*
 * Reads a bearer token (RFC 6750) from a file, which may end with newlines. *exposed: whether other
 * users may read the file. Returns 0 or -errno with e set.
 */
int token_read(const char *path, char token[static TOKEN_MAX + 1], bool *exposed, struct error *e);

#endif
