// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/requirements.h"

#define BIT(capability) (UINT64_C(1) << (capability))

/* A machine that meets all requirements, as root. */
static struct requirement_facts complete_machine(void)
{
	return (struct requirement_facts){
		.release = "6.1.0-18-amd64",
		.machine = "x86_64",
		.program = "/usr/bin/profiltool",
		.btf = true,
		.kernel_addresses = true,
		.lockdown = "[none] integrity confidentiality",
		.paranoid = 2,
		.unprivileged_bpf = 2,
		.kptr_restrict = 1,
		.sample_rate = 100000,
		.stack_depth = 127,
		.effective = UINT64_MAX,
		.bounding = UINT64_MAX,
		.open_files = 1048576,
	};
}

static const struct requirement *judge(const struct requirement_facts *f, const char *name)
{
	static struct requirements r;

	r = (struct requirements){ 0 };
	requirements_judge(f, &r);
	for (size_t i = 0; i < r.count; i++)
		if (strcmp(r.list[i].name, name) == 0)
			return &r.list[i];
	fail_msg("no requirement %s", name);
	return NULL;
}

static void expect(const struct requirement_facts *f, const char *name,
		   enum requirement_state state, const char *cause, const char *hint)
{
	const struct requirement *q = judge(f, name);

	if (q->state != state || !strstr(q->finding.what, cause) || !strstr(q->finding.hint, hint))
		fail_msg("%s: state %d, %s, %s", name, q->state, q->finding.what, q->finding.hint);
	if (!*hint)
		assert_string_equal(q->finding.hint, "");
}

static void expect_kind(const struct requirement_facts *f, const char *name, enum error_kind kind)
{
	assert_int_equal(judge(f, name)->finding.kind, kind);
}

static void test_nothing_missing(void **state)
{
	struct requirement_facts f = complete_machine();
	struct requirements r = { 0 };

	(void)state;
	requirements_judge(&f, &r);
	assert_true(r.count >= 10);
	for (size_t i = 0; i < r.count; i++) {
		assert_int_equal(r.list[i].state, REQUIREMENT_OK);
		assert_true(r.list[i].finding.what[0]);
		assert_string_equal(r.list[i].finding.hint, "");
	}
}

static void test_kernel(void **state)
{
	struct requirement_facts f = complete_machine();

	(void)state;
	strcpy(f.release, "5.15.0");
	expect(&f, "kernel", REQUIREMENT_OK, "Linux 5.15.0", "");
	strcpy(f.release, "5.14.0-427.el9.x86_64");
	expect(&f, "kernel", REQUIREMENT_LIMITED, "older than 5.15", "newer kernel");
	strcpy(f.release, "4.19.0");
	expect(&f, "kernel", REQUIREMENT_LIMITED, "older than 5.15", "newer kernel");
	strcpy(f.release, "10.0");
	expect(&f, "kernel", REQUIREMENT_OK, "Linux 10.0", "");
	strcpy(f.machine, "aarch64");
	expect(&f, "kernel", REQUIREMENT_OK, "Linux 10.0 on aarch64", "");
	strcpy(f.release, "5.10.0");
	expect(&f, "kernel", REQUIREMENT_LIMITED, "older than 5.15", "linux-image-arm64");
	strcpy(f.machine, "riscv64");
	strcpy(f.release, "10.0");
	expect(&f, "kernel", REQUIREMENT_LIMITED, "riscv64", "");
	f.btf = false;
	expect(&f, "BTF", REQUIREMENT_NO, "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF");
	expect_kind(&f, "BTF", ERROR_KERNEL_LACKS);
}

static void test_lockdown(void **state)
{
	struct requirement_facts f = complete_machine();

	(void)state;
	strcpy(f.lockdown, "none [integrity] confidentiality");
	expect(&f, "lockdown", REQUIREMENT_OK, "integrity", "");
	strcpy(f.lockdown, "none integrity [confidentiality]");
	expect(&f, "lockdown", REQUIREMENT_NO, "confidentiality", "lockdown=integrity");
	strcpy(f.lockdown, "");
	expect(&f, "lockdown", REQUIREMENT_OK, "not locked down", "");
}

static void test_bpf(void **state)
{
	struct requirement_facts f = complete_machine();

	(void)state;
	f.bpf_code = ENOSYS;
	expect(&f, "eBPF", REQUIREMENT_NO, "a seccomp filter hides bpf(2)", "without the filter");
	f.unprivileged_bpf = -1;
	expect(&f, "eBPF", REQUIREMENT_NO, "built without CONFIG_BPF_SYSCALL", "CONFIG_BPF");
	expect_kind(&f, "eBPF", ERROR_KERNEL_LACKS);
	f.bpf_code = EINVAL;
	expect(&f, "eBPF", REQUIREMENT_NO, "Invalid argument", "CONFIG_BPF_EVENTS");
	expect_kind(&f, "eBPF", ERROR_KERNEL_LACKS);

	f.bpf_code = EPERM;
	expect(&f, "eBPF", REQUIREMENT_NO, "a security module", "journalctl");
	f.seccomp = true;
	expect(&f, "eBPF", REQUIREMENT_NO, "a seccomp filter refuses bpf(2)", "unconfined");
	f.effective = BIT(CAP_BPF);
	expect(&f, "eBPF", REQUIREMENT_NO, "without cap_perfmon", "setcap ");
	f.effective = BIT(CAP_PERFMON);
	expect(&f, "eBPF", REQUIREMENT_NO, "without cap_bpf", "(p=/usr/bin/profiltool; ");
	f.effective = 0;
	expect(&f, "eBPF", REQUIREMENT_NO, "cap_bpf and cap_perfmon", "setcap ");
	expect_kind(&f, "eBPF", ERROR_NOT_PERMITTED);
	f.bounding = ~BIT(CAP_BPF);
	expect(&f, "eBPF", REQUIREMENT_NO, "cap_bpf and cap_perfmon", "docker run --cap-add");
	f.effective = UINT64_MAX;
	f.user_namespace = true;
	expect(&f, "eBPF", REQUIREMENT_NO, "do not count", "outside of the container");
}

static void test_perf_events(void **state)
{
	struct requirement_facts f = complete_machine();

	(void)state;
	f.perf_code = ENOSYS;
	expect(&f, "perf events", REQUIREMENT_NO, "a seccomp filter hides", "without the filter");
	f.paranoid = -1;
	expect(&f, "perf events", REQUIREMENT_NO, "a seccomp filter hides", "without the filter");
	f.paranoid = SYSCTL_UNKNOWN;
	expect(&f, "perf events", REQUIREMENT_NO, "built without CONFIG_PERF_EVENTS", "=y");
	expect_kind(&f, "perf events", ERROR_KERNEL_LACKS);
	f.perf_code = EACCES;
	f.paranoid = 3;
	expect(&f, "perf events", REQUIREMENT_NO, "a security module", "journalctl");
	f.effective = BIT(CAP_PERFMON);
	expect(&f, "perf events", REQUIREMENT_NO, "capabilities are not enough",
	       "sysctl -w kernel.perf_event_paranoid=2");
	f.effective = 0;
	expect(&f, "perf events", REQUIREMENT_NO, "paranoid is 3",
	       "; sysctl -w kernel.perf_event_paranoid=2");
	f.paranoid = -1;
	expect(&f, "perf events", REQUIREMENT_NO, "paranoid is -1)", "setcap ");
	f.paranoid = SYSCTL_UNKNOWN;
	expect(&f, "perf events", REQUIREMENT_NO, "paranoid cannot be read)", "setcap ");
	f.paranoid = 2;
	expect(&f, "perf events", REQUIREMENT_NO, "without cap_perfmon", "setcap ");
	assert_null(strstr(judge(&f, "perf events")->finding.hint, "sysctl"));
	expect_kind(&f, "perf events", ERROR_NOT_PERMITTED);
	f.effective = UINT64_MAX;
	f.seccomp = true;
	expect(&f, "perf events", REQUIREMENT_NO, "a seccomp filter refuses", "unconfined");
}

static void test_sysctls(void **state)
{
	struct requirement_facts f = complete_machine();

	(void)state;
	f.sample_rate = 99;
	expect(&f, "frequency", REQUIREMENT_OK, "99 Hz", "");
	f.sample_rate = 98;
	expect(&f, "frequency", REQUIREMENT_LIMITED, "98 Hz", "-F 98");
	f.stack_depth = 126;
	expect(&f, "call stacks", REQUIREMENT_LIMITED, "126 frames", "perf_event_max_stack=127");
	f.stack_depth = 500;
	expect(&f, "call stacks", REQUIREMENT_OK, "127 frames", "");
	f.kernel_addresses = false;
	expect(&f, "kernel names", REQUIREMENT_LIMITED, "cap_syslog", "journalctl");
	f.effective = 0;
	expect(&f, "kernel names", REQUIREMENT_LIMITED, "cap_syslog", "setcap ");
	f.kptr_restrict = 2;
	expect(&f, "kernel names", REQUIREMENT_LIMITED, "from everyone", "kptr_restrict=1");
	f.open_files = 1024;
	expect(&f, "open files", REQUIREMENT_LIMITED, "1024", "ulimit -n");
}

static void test_abilities(void **state)
{
	struct requirement_facts f = complete_machine();

	(void)state;
	f.effective = BIT(CAP_SYS_ADMIN) | BIT(CAP_DAC_OVERRIDE);
	expect(&f, "deleted files", REQUIREMENT_OK, "", "");
	expect(&f, "private files", REQUIREMENT_OK, "", "");
	expect(&f, "other users", REQUIREMENT_LIMITED, "cap_sys_ptrace", "setcap ");
	f.user_namespace = true;
	expect(&f, "deleted files", REQUIREMENT_LIMITED, "do not count", "outside");
}

static void test_full(void **state)
{
	struct requirements r = { 0 };

	(void)state;
	for (int i = 0; i < 2 * REQUIREMENTS_MAX; i++)
		requirement_add(&r, "one", REQUIREMENT_OK, "%d", i);
	assert_int_equal(r.count, REQUIREMENTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_missing), cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_lockdown),	cmocka_unit_test(test_bpf),
		cmocka_unit_test(test_perf_events),	cmocka_unit_test(test_sysctls),
		cmocka_unit_test(test_abilities),	cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
