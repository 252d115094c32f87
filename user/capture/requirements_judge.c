// SPDX-License-Identifier: GPL-2.0-only
#include "capture/requirements.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/capture.h"
#include "capture/program.h"

#define BIT(capability) (UINT64_C(1) << (capability))

#define USUAL_HZ     99 /* record's default frequency */
#define ENOUGH_FILES 4096

/*
 * The capabilities that the manual recommends, and those for deleted files as well. Never
 * cap_dac_read_search: whoever may run the program could read every file.
 */
#define CAPABILITIES	 "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog"
#define ALL_CAPABILITIES CAPABILITIES ",cap_checkpoint_restore"

struct requirement *requirement_add(struct requirements *r, const char *name,
				    enum requirement_state state, const char *cause, ...)
{
	struct requirement *requirement =
		&r->list[r->count < REQUIREMENTS_MAX ? r->count++ : REQUIREMENTS_MAX - 1];
	char text[sizeof(requirement->finding.what)];
	va_list arguments;

	va_start(arguments, cause);
	vsnprintf(text, sizeof(text), cause, arguments);
	va_end(arguments);
	*requirement = (struct requirement){ .name = name, .state = state };
	error_set(&requirement->finding, 0, "%s", text);
	return requirement;
}

/* Whether the process has one of these capabilities in the initial user namespace. */
static bool has(const struct requirement_facts *f, uint64_t capabilities)
{
	return !f->user_namespace && f->effective & capabilities;
}

static bool has_or_admin(const struct requirement_facts *f, unsigned int capability)
{
	return has(f, BIT(capability) | BIT(CAP_SYS_ADMIN));
}

/*
 * Only a group gets the program, before it gets the capabilities: chown(2) removes them. names: of
 * the capabilities; NULL: only root can. besides: what else is needed, or "".
 */
static void hint_capabilities(struct error *e, const struct requirement_facts *f, uint64_t wanted,
			      const char *names, const char *besides)
{
	if (f->user_namespace)
		error_hint(e, "run it as root, outside of the container or user namespace");
	else if ((f->bounding & wanted) != wanted)
		error_hint(e,
			   "run it as root, outside of the container, or start the container with: "
			   "docker run --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE "
			   "--cap-add SYSLOG");
	else if (names)
		error_hint(e,
			   "run it as root, or give it to a group, which then sees what every "
			   "process executes: (p=%s; groupadd -f profil && chgrp profil $p && "
			   "chmod 750 $p && setcap %s=ep $p)%s",
			   f->program, names, besides);
	else
		error_hint(e, "run it as root");
}

void requirement_hint(struct error *e, const struct requirement_facts *f, unsigned int capability)
{
	if (has(f, BIT(capability)))
		error_hint(e, "see why the kernel refuses: journalctl -k --grep=denied");
	else
		hint_capabilities(e, f, BIT(capability), CAPABILITIES, "");
}

/* Appended to the names of missing capabilities. */
static const char *whose(const struct requirement_facts *f)
{
	return f->user_namespace ? "; those of a user namespace do not count" : "";
}

static struct requirement *add_missing(struct requirements *r, const char *name,
				       enum error_kind kind, const char *cause)
{
	struct requirement *q = requirement_add(r, name, REQUIREMENT_NO, "%s", cause);

	q->finding.kind = kind;
	return q;
}

/* The machines that are tested, and what Debian calls them. */
static const struct machine {
	const char *name, *debian;
} machines[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };

static void judge_kernel(const struct requirement_facts *f, struct requirements *r)
{
	const struct machine *machine = NULL;
	unsigned int major = 0, minor = 0;
	struct requirement *q;

	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines) && !machine; i++)
		if (strcmp(machines[i].name, f->machine) == 0)
			machine = &machines[i];
	sscanf(f->release, "%u.%u", &major, &minor);
	if (major < 5 || (major == 5 && minor < 15)) {
		q = requirement_add(r, "kernel", REQUIREMENT_LIMITED,
				    "Linux %s is older than 5.15: it may not work", f->release);
		error_hint(
			&q->finding,
			"install a newer kernel and boot it (Debian: apt install linux-image-%s)",
			machine ? machine->debian : f->machine);
	} else if (!machine) {
		requirement_add(r, "kernel", REQUIREMENT_LIMITED,
				"Linux %s on %s: only x86_64 and aarch64 are tested", f->release,
				f->machine);
	} else {
		requirement_add(r, "kernel", REQUIREMENT_OK, "Linux %s on %s", f->release,
				f->machine);
	}
}

/* A system call was refused, although the process has the required capabilities. */
static void blame_policy(struct requirement *q, const struct requirement_facts *f, const char *call)
{
	if (f->seccomp) {
		error_set_kind(&q->finding, q->finding.kind, 0, "a seccomp filter refuses %s",
			       call);
		error_hint(&q->finding, "run it without the filter; docker run --security-opt "
					"seccomp=unconfined; in systemd, SystemCallFilter=bpf "
					"perf_event_open");
		return;
	}
	error_set_kind(&q->finding, q->finding.kind, 0,
		       "a security module of the kernel refuses %s", call);
	error_hint(&q->finding, "see why: journalctl -k --grep=denied");
}

/* A system call returned ENOSYS: not built in, or a filter says so. */
static void blame_kernel(struct requirement *q, bool built, const char *call, const char *config)
{
	if (built) {
		error_set_kind(&q->finding, ERROR_KERNEL_LACKS, 0,
			       "a seccomp filter hides %s (it says ENOSYS)", call);
		error_hint(&q->finding, "run it without the filter; docker run --security-opt "
					"seccomp=unconfined");
		return;
	}
	error_set_kind(&q->finding, ERROR_KERNEL_LACKS, 0, "the kernel is built without %s",
		       config);
	error_hint(&q->finding, "boot a kernel of a distribution, or one built with %s=y", config);
}

static bool is_refusal(int code)
{
	return code == EPERM || code == EACCES;
}

static void judge_bpf(const struct requirement_facts *f, struct requirements *r)
{
	bool bpf = has_or_admin(f, CAP_BPF), perfmon = has_or_admin(f, CAP_PERFMON);
	struct requirement *q;

	if (!f->bpf_code) {
		requirement_add(r, "eBPF", REQUIREMENT_OK, "programs can be loaded");
		return;
	}
	q = add_missing(r, "eBPF", ERROR_KERNEL_LACKS, strerror(f->bpf_code));
	if (f->bpf_code == ENOSYS) {
		blame_kernel(q, f->unprivileged_bpf >= 0, "bpf(2)", "CONFIG_BPF_SYSCALL");
	} else if (!is_refusal(f->bpf_code)) {
		error_hint(&q->finding, "boot a kernel of a distribution, or one built with "
					"CONFIG_BPF_EVENTS=y");
	} else if (bpf && perfmon) {
		q->finding.kind = ERROR_NOT_PERMITTED;
		blame_policy(q, f, "bpf(2)");
	} else {
		error_set_kind(&q->finding, ERROR_NOT_PERMITTED, 0,
			       "programs cannot be loaded without %s%s%s%s", bpf ? "" : "cap_bpf",
			       bpf || perfmon ? "" : " and ", perfmon ? "" : "cap_perfmon",
			       whose(f));
		hint_capabilities(&q->finding, f, BIT(CAP_BPF) | BIT(CAP_PERFMON), CAPABILITIES,
				  "");
	}
}

static void judge_perf_events(const struct requirement_facts *f, struct requirements *r)
{
	struct requirement *q;
	char paranoid[32];

	if (!f->perf_code) {
		requirement_add(r, "perf events", REQUIREMENT_OK, "can be opened");
		return;
	}
	q = add_missing(r, "perf events", ERROR_NOT_PERMITTED, strerror(f->perf_code));
	if (f->perf_code == ENOSYS) {
		blame_kernel(q, f->paranoid != SYSCTL_UNKNOWN, "perf_event_open(2)",
			     "CONFIG_PERF_EVENTS");
	} else if (!is_refusal(f->perf_code)) {
		q->finding.kind = ERROR_KERNEL_LACKS;
	} else if (!has_or_admin(f, CAP_PERFMON)) {
		if (f->paranoid == SYSCTL_UNKNOWN)
			snprintf(paranoid, sizeof(paranoid), "cannot be read");
		else
			snprintf(paranoid, sizeof(paranoid), "is %d", f->paranoid);
		error_set_kind(
			&q->finding, ERROR_NOT_PERMITTED, 0,
			"cannot be opened without cap_perfmon (kernel.perf_event_paranoid %s)%s",
			paranoid, whose(f));
		hint_capabilities(&q->finding, f, BIT(CAP_PERFMON), CAPABILITIES,
				  f->paranoid > 2 ? "; sysctl -w kernel.perf_event_paranoid=2"
						  : "");
	} else if (f->paranoid > 2 && !has(f, BIT(CAP_SYS_ADMIN))) {
		error_set_kind(&q->finding, ERROR_NOT_PERMITTED, 0,
			       "kernel.perf_event_paranoid is %d: capabilities are not enough then",
			       f->paranoid);
		error_hint(&q->finding,
			   "run it as root, or: sysctl -w kernel.perf_event_paranoid=2");
	} else {
		blame_policy(q, f, "perf_event_open(2)");
	}
}

/* Capabilities without which recording works, but less gets names. */
static const struct ability {
	const char *name, *can, *cannot;
	unsigned int capability;
	uint64_t instead;		      /* capabilities that include it */
	const char *capability_name, *setcap; /* NULL: only root has it */
} abilities[] = {
	{ "other users", "their processes get names, too", "code of their processes gets few names",
	  CAP_SYS_PTRACE, 0, "cap_sys_ptrace", CAPABILITIES },
	{ "deleted files", "get names while they are mapped",
	  "code of libraries that were deleted or replaced gets no names", CAP_CHECKPOINT_RESTORE,
	  BIT(CAP_SYS_ADMIN), "cap_checkpoint_restore", ALL_CAPABILITIES },
	{ "private files", "every file can be read for its names",
	  "code of files that this user may not read gets no names", CAP_DAC_READ_SEARCH,
	  BIT(CAP_DAC_OVERRIDE), NULL, NULL },
};

void requirements_judge(const struct requirement_facts *f, struct requirements *r)
{
	bool has_depth = f->stack_depth < 0 || f->stack_depth >= CAPTURE_DEPTH_MAX;
	bool has_files = f->open_files >= ENOUGH_FILES;
	struct requirement *q;

	judge_kernel(f, r);
	if (f->btf) {
		requirement_add(r, "BTF", REQUIREMENT_OK, KERNEL_BTF " is there");
	} else {
		q = add_missing(r, "BTF", ERROR_KERNEL_LACKS,
				"there is no " KERNEL_BTF
				": the kernel does not describe its types");
		error_hint(&q->finding, REQUIREMENT_BTF_HINT);
	}
	/* The current mode is in brackets. */
	if (strstr(f->lockdown, "[confidentiality]")) {
		q = add_missing(
			r, "lockdown", ERROR_NOT_PERMITTED,
			"the kernel is locked down for confidentiality: eBPF programs cannot "
			"read what they sample");
		error_hint(&q->finding,
			   "boot with lockdown=integrity on the kernel's command line");
	} else {
		requirement_add(r, "lockdown", REQUIREMENT_OK, "%s",
				strstr(f->lockdown, "[integrity]")
					? "integrity mode, which does not matter here"
					: "the kernel is not locked down");
	}
	judge_bpf(f, r);
	judge_perf_events(f, r);
	if (!f->perf_code)
		requirement_add(r, "clock", REQUIREMENT_OK,
				f->cycles ? "cycles: this machine has a PMU"
					  : "cpu-clock: this machine has no PMU to count cycles");
	if (f->sample_rate >= 0) {
		q = requirement_add(
			r, "frequency",
			f->sample_rate < USUAL_HZ ? REQUIREMENT_LIMITED : REQUIREMENT_OK,
			"up to %d Hz (kernel.perf_event_max_sample_rate)", f->sample_rate);
		if (f->sample_rate < USUAL_HZ)
			error_hint(&q->finding,
				   "sysctl -w kernel.perf_event_max_sample_rate=100000, or -F %d",
				   f->sample_rate);
	}
	q = requirement_add(r, "call stacks", has_depth ? REQUIREMENT_OK : REQUIREMENT_LIMITED,
			    "up to %d frames%s", has_depth ? CAPTURE_DEPTH_MAX : f->stack_depth,
			    has_depth ? "" : " (kernel.perf_event_max_stack)");
	if (!has_depth)
		error_hint(&q->finding, "sysctl -w kernel.perf_event_max_stack=%d",
			   CAPTURE_DEPTH_MAX);
	if (f->kernel_addresses) {
		requirement_add(r, "kernel names", REQUIREMENT_OK, "/proc/kallsyms has addresses");
	} else if (f->kptr_restrict > 1) {
		q = requirement_add(r, "kernel names", REQUIREMENT_LIMITED,
				    "functions of the kernel get no names: kernel.kptr_restrict "
				    "is %d, which hides their addresses from everyone",
				    f->kptr_restrict);
		error_hint(&q->finding, "sysctl -w kernel.kptr_restrict=1");
	} else {
		q = requirement_add(r, "kernel names", REQUIREMENT_LIMITED,
				    "functions of the kernel get no names without cap_syslog%s",
				    whose(f));
		requirement_hint(&q->finding, f, CAP_SYSLOG);
	}
	for (size_t i = 0; i < sizeof(abilities) / sizeof(*abilities); i++) {
		const struct ability *a = &abilities[i];
		const char *without = a->capability_name;

		if (has(f, BIT(a->capability) | a->instead)) {
			requirement_add(r, a->name, REQUIREMENT_OK, "%s", a->can);
			continue;
		}
		q = requirement_add(r, a->name, REQUIREMENT_LIMITED, "%s%s%s%s", a->cannot,
				    without ? " without " : "", without ?: "",
				    without ? whose(f) : "");
		hint_capabilities(&q->finding, f, BIT(a->capability), a->setcap, "");
	}
	q = requirement_add(r, "open files", has_files ? REQUIREMENT_OK : REQUIREMENT_LIMITED,
			    "up to %" PRIu64
			    ", of which each CPU and each file that a target maps take some",
			    f->open_files);
	if (!has_files)
		error_hint(&q->finding, "as root: ulimit -n 65536; in systemd, LimitNOFILE=65536");
}
