// SPDX-License-Identifier: GPL-2.0-only
/*
 * empty PID PERIOD_NS: attaches the shortest BPF program there is to a task-clock event of a
 * process's first thread, until a signal ends it. What a tick costs that counts nothing.
 */
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int load(void)
{
	static const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (uintptr_t)program,
		.insn_cnt = sizeof(program) / sizeof(*program),
		.license = (uintptr_t) "GPL",
		.prog_name = "empty",
	};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* The same kind of event as profiltool's; see user/capture/events.c. */
static int open_event(pid_t tid, uint64_t sample_period)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = sample_period,
		.disabled = 1,
		.inherit = 1,
		.exclude_idle = 1,
	};

	return syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	int program, event;

	if (argc != 3) {
		fprintf(stderr, "usage: empty PID PERIOD_NS\n");
		return 2;
	}
	program = load();
	event = open_event(atoi(argv[1]), strtoull(argv[2], NULL, 10));
	if (program < 0 || event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, program) ||
	    ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		perror("empty");
		return 1;
	}
	pause();
	return 0;
}
