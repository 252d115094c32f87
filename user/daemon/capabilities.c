// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/capabilities.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static const cap_value_t kept[] = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE };

#define KEPT ((int)(sizeof(kept) / sizeof(*kept)))

/* Enough for several users at their limits, and the most that systemd allows. */
#define ENOUGH_DESCRIPTORS (512 * 1024)

static bool is_kept(cap_value_t capability)
{
	for (int i = 0; i < KEPT; i++)
		if (kept[i] == capability)
			return true;
	return false;
}

static int check_permitted(struct error *e)
{
	cap_t has = cap_get_proc();
	cap_flag_value_t value;

	if (!has)
		return error_set(e, errno, "cannot get profild's capabilities");
	for (int i = 0; i < KEPT; i++) {
		char *name;

		if (cap_get_flag(has, kept[i], CAP_PERMITTED, &value) == 0 && value == CAP_SET)
			continue;
		name = cap_to_name(kept[i]);
		error_set_kind(e, ERROR_NOT_PERMITTED, 0, "profild needs %s, and does not have it",
			       name ?: "a capability");
		error_hint(e, "run it as root, or give it the capabilities: "
			      "setcap cap_bpf,cap_perfmon,cap_sys_ptrace=p PROFILD");
		cap_free(name);
		cap_free(has);
		return -EPERM;
	}
	cap_free(has);
	return 0;
}

/* Needs CAP_SETPCAP. Without it, no_new_privs alone must do. */
static int reduce_bounding_set(struct error *e)
{
	for (cap_value_t i = 0; i < cap_max_bits(); i++)
		if (!is_kept(i) && cap_get_bound(i) == 1 && cap_drop_bound(i))
			return errno == EPERM ? 0
					      : error_set(e, errno, "cannot give up privileges");
	return 0;
}

/* This clears the ambient set, too: the kernel keeps it within the inheritable set. */
static int reduce_sets(struct error *e)
{
	cap_t all = cap_init();
	int code = 0;

	if (!all || cap_set_flag(all, CAP_PERMITTED, KEPT, kept, CAP_SET) ||
	    cap_set_flag(all, CAP_EFFECTIVE, KEPT, kept, CAP_SET) || cap_set_proc(all) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		code = errno;
	cap_free(all);
	return code ? error_set(e, code, "cannot give up privileges") : 0;
}

int capabilities_reduce(struct error *e)
{
	int err = check_permitted(e);

	err = err ?: reduce_bounding_set(e);
	return err ?: reduce_sets(e);
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
