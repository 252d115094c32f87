/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_CHECK_MODULE_H
#define PROFIL_TOOL_CHECK_MODULE_H

#include "capture/requirements.h"

/* Adds whether the kernel module serves this process, and what stands before it if not. */
void check_module(const struct requirement_facts *f, struct requirements *r);

#endif
