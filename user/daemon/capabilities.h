/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CAPABILITIES_H
#define PROFIL_DAEMON_CAPABILITIES_H

#include "util/error.h"

/*
 * Gives up every capability but CAP_BPF and CAP_PERFMON, which the eBPF program needs, and
 * CAP_SYS_PTRACE, which shows the clients where /proc hides processes (hidepid, proc(5)). Programs
 * that profild executes would get none. Returns 0, or a negative errno with e set: -EPERM if one of
 * the three is missing.
 */
int capabilities_reduce(struct error *e);

/*
 * Raises the limit of descriptors as far as possible: each client takes several. Before
 * capabilities_reduce() it can exceed the hard limit. Returns 0, or a negative errno with e set.
 */
int descriptor_limit_raise(struct error *e);

#endif
