/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_SHARE_OUT_H
#define PROFIL_UTIL_SHARE_OUT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Sorts sizes, and returns the most that each may have, so that all have `most` together when those
 * that have less leave the rest to the others; UINT64_MAX: they have no more now.
 */
uint64_t share_out(uint64_t *sizes, size_t count, uint64_t most);

#endif
