/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CLI_CAPABILITIES_H
#define PROFIL_CLI_CAPABILITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/error.h"

enum capabilities_kept {
	CAPABILITIES_NONE,
	/*
	 * For serving: CAP_BPF and CAP_PERFMON, which the eBPF program needs, and CAP_SYS_PTRACE,
	 * which shows the clients where /proc hides processes (hidepid, proc(5)).
	 */
	CAPABILITIES_SERVING,
	/* The same, and those for reading the code of all processes and the kernel's symbols. */
	CAPABILITIES_RECORDING,
	/*
	 * For profild --record: CAP_BPF and CAP_PERFMON; CAP_SETUID and CAP_SETGID, with which it
	 * becomes the user of a recording; and CAP_SYS_PTRACE, to see in whose user namespace a
	 * client is.
	 */
	CAPABILITIES_USERS,
};

/*
 * Gives up all other capabilities. Programs that profild executes would get none. Returns 0, or a
 * negative errno with e set: -EPERM if one of the first three, or for users of any, is missing.
 */
int capabilities_keep(enum capabilities_kept which, struct error *e);

/*
 * Becomes a user without a way back, who keeps CAP_BPF and CAP_PERFMON, not effective yet. Nobody
 * without these can trace the process then, nor can a program that it executes get any. Returns 0,
 * or a negative errno with e set.
 */
int capabilities_keep_for_user(uid_t uid, gid_t gid, const gid_t *groups, size_t count,
			       struct error *e);

/* Makes them effective, or no longer. Returns 0, or a negative errno with e set. */
int capabilities_use_for_user(bool on, struct error *e);

/*
 * For a program whose file has capabilities (setcap(8)), and which users without any run. Nothing
 * that they name, nor what a file names that they have, is opened with more than their own rights:
 * the capabilities are held back, and raised only while the kernel is asked to record.
 *
 * capabilities_hold_back() is called before anything else. keep: those for recording are only held
 * back; CAP_DAC_READ_SEARCH, with which every file could be read, is given up in any case, and so
 * are all without `keep`. Programs that are executed get none. Where the capabilities are not the
 * file's, but the caller's, this does nothing, and neither do the others. Returns 0, or a negative
 * errno with e set.
 */
int capabilities_hold_back(bool keep, struct error *e);

/* Whether the process has those that recording takes, effective or held back. */
bool capabilities_can_record(void);

/* For calls of user/capture, by this thread. */
void capabilities_raise(void);

/* Only CAP_SYSLOG, with which the kernel's symbols have addresses. */
void capabilities_raise_for_names(void);

/* Holds them back again. errno is kept. */
void capabilities_lower(void);

/*
 * Raises the limit of descriptors as far as possible: each client takes several. Before
 * capabilities are given up it can exceed the hard limit. Returns 0, or a negative errno with e
 * set.
 */
int descriptor_limit_raise(struct error *e);

#endif
