/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_CHECK_MODULE_H
#define PROFIL_TOOL_CHECK_MODULE_H

#include "capture/requirements.h"

/* Adds whether this process can use the kernel module, and what prevents it. */
void check_module(const struct requirement_facts *f, struct requirements *r);

#endif
