// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/capabilities.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* The first NEEDED are needed, the others useful. */
static const cap_value_t of_server[] = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE };

/*
 * To read what all processes have mapped, whoever may read the files, and the kernel's symbols.
 * Debian's kernels want CAP_SYS_ADMIN for perf events, by default.
 */
static const cap_value_t of_recorder[] = {
	CAP_BPF,    CAP_PERFMON,   CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE,
	CAP_SYSLOG, CAP_SYS_ADMIN,
};

#define NEEDED 3

/* Capabilities to keep. */
struct kept {
	const cap_value_t *values;
	int count;
};

/* Enough for several users at their limits, and the most that systemd allows. */
#define ENOUGH_DESCRIPTORS (512 * 1024)

static bool is_kept(const struct kept *kept, cap_value_t capability)
{
	for (int i = 0; i < kept->count; i++)
		if (kept->values[i] == capability)
			return true;
	return false;
}

/* Those that are not there are not kept. */
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
		if (i >= NEEDED)
			continue;
		name = cap_to_name(*capability);
		error_set_kind(e, ERROR_NOT_PERMITTED, 0, "profild needs %s, and does not have it",
			       name ?: "a capability");
		error_hint(e, "run it as root, or give it the capabilities: "
			      "setcap cap_bpf,cap_perfmon,cap_sys_ptrace=p PROFILD");
		cap_free(name);
		return -EPERM;
	}
	return 0;
}

/* Needs CAP_SETPCAP. Without it, no_new_privs alone must do. */
static int reduce_bounding_set(const struct kept *kept, struct error *e)
{
	for (cap_value_t i = 0; i < cap_max_bits(); i++)
		if (!is_kept(kept, i) && cap_get_bound(i) == 1 && cap_drop_bound(i))
			return errno == EPERM ? 0
					      : error_set(e, errno, "cannot give up privileges");
	return 0;
}

static int reduce(const struct kept *kept, struct error *e)
{
	cap_t has = cap_get_proc(), keep = cap_init();
	int err = has && keep ? 0 : error_set(e, errno, "cannot get profild's capabilities");

	err = err ?: check_permitted(kept, has, keep, e);
	err = err ?: reduce_bounding_set(kept, e);
	/* This clears the ambient set, too: the kernel keeps it within the inheritable set. */
	if (!err && (cap_set_proc(keep) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		err = error_set(e, errno, "cannot give up privileges");
	cap_free(has);
	cap_free(keep);
	return err;
}

int capabilities_keep_for_serving(struct error *e)
{
	return reduce(&(struct kept){ of_server, sizeof(of_server) / sizeof(*of_server) }, e);
}

int capabilities_keep_for_recording(struct error *e)
{
	return reduce(&(struct kept){ of_recorder, sizeof(of_recorder) / sizeof(*of_recorder) }, e);
}

int capabilities_drop(struct error *e)
{
	return reduce(&(struct kept){ NULL, 0 }, e);
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
