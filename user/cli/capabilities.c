// SPDX-License-Identifier: GPL-2.0-only
#include "cli/capabilities.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/proc.h"

/*
 * To read what all processes have mapped, whoever may read the files, and the kernel's symbols.
 * Debian's kernels want CAP_SYS_ADMIN for perf events, by default.
 */
static const cap_value_t of_recorder[] = {
	CAP_BPF,    CAP_PERFMON,   CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE,
	CAP_SYSLOG, CAP_SYS_ADMIN,
};

/* Of what records on behalf of users, and of one of these: CAP_BPF and CAP_PERFMON. */
static const cap_value_t of_users[] = { CAP_BPF, CAP_PERFMON, CAP_SETUID, CAP_SETGID,
					CAP_SYS_PTRACE };

/* What profild keeps. */
static const struct kept {
	const cap_value_t *values;
	int count;
	int needed;	   /* how many of them, the first */
	const char *names; /* of these */
} all_kept[] = {
	[CAPABILITIES_NONE] = { 0 },
	[CAPABILITIES_SERVING] = { of_recorder, 3, 3, "cap_bpf,cap_perfmon,cap_sys_ptrace" },
	[CAPABILITIES_RECORDING] = { of_recorder, sizeof(of_recorder) / sizeof(*of_recorder), 3,
				     "cap_bpf,cap_perfmon,cap_sys_ptrace" },
	[CAPABILITIES_USERS] = { of_users, 5, 5,
				 "cap_bpf,cap_perfmon,cap_setuid,cap_setgid,cap_sys_ptrace" },
};

/* Enough for several users at their limits, and the most that systemd allows. */
#define ENOUGH_DESCRIPTORS (512 * 1024)

/*
 * Adds the kept capabilities that the process has to `keep`. Returns 0, or a negative errno with e
 * set: -EPERM if it lacks a needed one.
 */
static int check_permitted(const struct kept *kept, cap_t has, cap_t keep, struct error *e)
{
	cap_flag_value_t value;

	for (int i = 0; i < kept->count; i++) {
		const cap_value_t *capability = &kept->values[i];
		char *name;

		if (cap_get_flag(has, *capability, CAP_PERMITTED, &value) == 0 &&
		    value == CAP_SET) {
			if (cap_set_flag(keep, CAP_PERMITTED, 1, capability, CAP_SET) ||
			    cap_set_flag(keep, CAP_EFFECTIVE, 1, capability, CAP_SET))
				return error_set(e, errno, "cannot give up privileges");
			continue;
		}
		if (i >= kept->needed)
			continue;
		name = cap_to_name(*capability);
		error_set_kind(e, ERROR_NOT_PERMITTED, 0, "profild needs %s, and does not have it",
			       name ?: "a capability");
		error_hint(e, "run it as root, or give it the capabilities: setcap %s=p PROFILD",
			   kept->names);
		cap_free(name);
		return -EPERM;
	}
	return 0;
}

int capabilities_keep(enum capabilities_kept which, struct error *e)
{
	const struct kept *kept = &all_kept[which];
	cap_t has = cap_get_proc(), keep = cap_init();
	int err = has && keep ? 0 : error_set(e, errno, "cannot get profild's capabilities");

	err = err ?: check_permitted(kept, has, keep, e);
	for (cap_value_t i = 0; !err && i < cap_max_bits(); i++) {
		bool is_kept = false;

		for (int j = 0; j < kept->count; j++)
			is_kept |= kept->values[j] == i;
		if (is_kept || cap_get_bound(i) != 1 || cap_drop_bound(i) == 0)
			continue;
		/* Without CAP_SETPCAP, which this needs, no_new_privs alone must do. */
		if (errno == EPERM)
			break;
		err = error_set(e, errno, "cannot give up privileges");
	}
	/* This clears the ambient set, too: the kernel keeps it within the inheritable set. */
	if (!err && (cap_set_proc(keep) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		err = error_set(e, errno, "cannot give up privileges");
	cap_free(has);
	cap_free(keep);
	return err;
}

int capabilities_keep_for_user(uid_t uid, gid_t gid, const gid_t *groups, size_t count,
			       struct error *e)
{
	cap_t keep = cap_init();
	uid_t uids[3];
	gid_t gids[3];
	int err = 0;

	/* Groups first: they take CAP_SETGID, which goes with the user. */
	if (!keep || setgroups(count, groups) || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) ||
	    setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ||
	    cap_set_flag(keep, CAP_PERMITTED, 2, of_users, CAP_SET) || cap_set_proc(keep) ||
	    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		err = error_set(e, errno, "cannot become user %u", uid);
	else if (getresuid(&uids[0], &uids[1], &uids[2]) || getresgid(&gids[0], &gids[1], &gids[2]))
		err = error_set(e, errno, "cannot get the user");
	for (int i = 0; i < 3 && !err; i++)
		if (uids[i] != uid || gids[i] != gid)
			err = error_set(e, 0, "cannot become user %u", uid);
	cap_free(keep);
	return err;
}

int capabilities_use_for_user(bool on, struct error *e)
{
	cap_t caps = cap_get_proc();
	int err = 0;

	if (!caps || cap_set_flag(caps, CAP_EFFECTIVE, 2, of_users, on ? CAP_SET : CAP_CLEAR) ||
	    cap_set_proc(caps))
		err = error_set(e, errno, "cannot change the effective capabilities");
	cap_free(caps);
	return err;
}

/* Whether this process has rights that its caller lacks. */
static bool is_privileged_file(void)
{
	return getauxval(AT_SECURE);
}

int capabilities_hold_back(bool keep, struct error *e)
{
	cap_t has, held;
	int err = 0;

	if (!is_privileged_file())
		return 0;
	if (getuid() != geteuid() || getgid() != getegid()) {
		error_set_kind(e, ERROR_NOT_PERMITTED, 0,
			       "the program's file is set-user-ID or set-group-ID");
		error_hint(e, "chmod ug-s it, and see profiltool check for what to do instead");
		return -EPERM;
	}
	has = cap_get_proc();
	held = cap_init();
	for (size_t i = 0; has && held && keep && i < sizeof(of_recorder) / sizeof(*of_recorder);
	     i++) {
		cap_flag_value_t value;

		if (of_recorder[i] != CAP_DAC_READ_SEARCH &&
		    cap_get_flag(has, of_recorder[i], CAP_PERMITTED, &value) == 0 &&
		    value == CAP_SET)
			cap_set_flag(held, CAP_PERMITTED, 1, &of_recorder[i], CAP_SET);
	}
	/* This clears the inheritable set and, with it, the ambient one. */
	if (!has || !held || cap_set_proc(held))
		err = error_set(e, errno, "cannot give up privileges");
	cap_free(has);
	cap_free(held);
	return err;
}

bool capabilities_can_record(void)
{
	cap_flag_value_t admin = CAP_CLEAR, bpf = CAP_CLEAR, perfmon = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	if (caps) {
		cap_get_flag(caps, CAP_SYS_ADMIN, CAP_PERMITTED, &admin);
		cap_get_flag(caps, CAP_BPF, CAP_PERMITTED, &bpf);
		cap_get_flag(caps, CAP_PERFMON, CAP_PERMITTED, &perfmon);
	}
	cap_free(caps);
	/* Those of another user namespace are of no use. */
	if (proc_own_namespace("ns/user"))
		return false;
	return admin == CAP_SET || (bpf == CAP_SET && perfmon == CAP_SET);
}

/* Makes one capability effective; -1: all that are permitted; -2: none. */
static void set_effective(cap_value_t only)
{
	int code = errno;
	cap_t caps;
	bool done;

	if (!is_privileged_file())
		return;
	caps = cap_get_proc();
	done = caps && cap_clear_flag(caps, CAP_EFFECTIVE) == 0;
	for (cap_value_t i = 0; done && only != -2 && i <= CAP_LAST_CAP; i++) {
		cap_flag_value_t value;

		if ((only == -1 || only == i) &&
		    cap_get_flag(caps, i, CAP_PERMITTED, &value) == 0 && value == CAP_SET)
			done = cap_set_flag(caps, CAP_EFFECTIVE, 1, &i, CAP_SET) == 0;
	}
	done = done && cap_set_proc(caps) == 0;
	cap_free(caps);
	/* To go on with them would break the promise; without them, calls report it themselves. */
	if (!done && only == -2)
		abort();
	errno = code;
}

void capabilities_raise(void)
{
	set_effective(-1);
}

void capabilities_raise_for_names(void)
{
	set_effective(CAP_SYSLOG);
}

void capabilities_lower(void)
{
	set_effective(-2);
}

int descriptor_limit_raise(struct error *e)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return error_set(e, errno, "cannot get the limit of descriptors");
	if (limit.rlim_max < ENOUGH_DESCRIPTORS) {
		const struct rlimit enough = { ENOUGH_DESCRIPTORS, ENOUGH_DESCRIPTORS };

		if (setrlimit(RLIMIT_NOFILE, &enough) == 0)
			return 0;
	}
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return error_set(e, errno, "cannot raise the limit of descriptors");
	return 0;
}
