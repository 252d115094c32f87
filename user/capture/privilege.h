/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PRIVILEGE_H
#define PROFIL_CAPTURE_PRIVILEGE_H

#include "util/error.h"

/* An error for what the kernel refused for want of privileges, with the mend. Returns -code. */
int privilege_error(struct error *e, int code, const char *what);

#endif
