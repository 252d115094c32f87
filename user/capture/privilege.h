/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PRIVILEGE_H
#define PROFIL_CAPTURE_PRIVILEGE_H

#include "util/error.h"

/* Sets *e, with a hint: `what`, refused with errno `code` for lack of privileges. Returns -code. */
int privilege_error(struct error *e, int code, const char *what);

#endif
