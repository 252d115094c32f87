/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CAPABILITIES_H
#define PROFIL_DAEMON_CAPABILITIES_H

#include "util/error.h"

/*
 * Gives up every capability but CAP_BPF and CAP_PERFMON, which load the program and attach it, and
 * CAP_SYS_PTRACE, which sees the clients where /proc hides processes (hidepid, proc(5)). Nothing
 * that would be executed gets any. -EPERM with e set when one of the three is not there.
 */
int privilege_reduce(struct error *e);

/*
 * Raises the limit of descriptors, of which each client takes several, as far as it can: above the
 * hard limit only before privilege_reduce().
 */
int privilege_raise_descriptors(struct error *e);

#endif
