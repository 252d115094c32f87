/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CAPABILITIES_H
#define PROFIL_DAEMON_CAPABILITIES_H

#include "util/error.h"

/*
 * These give up every capability but those named. Programs that profild executes would get none.
 * Return 0, or a negative errno with e set: -EPERM if one of the first three is missing.
 *
 * For serving: CAP_BPF and CAP_PERFMON, which the eBPF program needs, and CAP_SYS_PTRACE, which
 * shows the clients where /proc hides processes (hidepid, proc(5)).
 */
int capabilities_keep_for_serving(struct error *e);

/* These, and what it takes to read the code of all processes, and the kernel's symbols. */
int capabilities_keep_for_recording(struct error *e);

/* None. */
int capabilities_drop(struct error *e);

/*
 * Raises the limit of descriptors as far as possible: each client takes several. Before
 * capabilities_reduce() it can exceed the hard limit. Returns 0, or a negative errno with e set.
 */
int descriptor_limit_raise(struct error *e);

#endif
