/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_OWNER_H
#define PROFIL_CAPTURE_OWNER_H

#include "bpf/member.h"
#include "capture/program.h"
#include "util/error.h"

/*
 * Sets *owner to the calling process's real user and group, and to where this kernel has what
 * bpf/owner.h reads. Returns 0, or a negative errno with e set: without one of them nobody could
 * tell whose a process is.
 */
int owner_find(struct member_owner *owner, struct kernel_types *types, struct error *e);

#endif
