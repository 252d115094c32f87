/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_CHECK_PROFIL_H
#define PROFIL_TOOL_CHECK_PROFIL_H

#include "capture/requirements.h"

/*
 * Adds what serves programs that call profil(2): profild, the kernel module, and what counts for
 * those of this user now; and, for what is missing, what would be better with it.
 */
void check_profil(const struct requirement_facts *f, struct requirements *r);

#endif
