// SPDX-License-Identifier: GPL-2.0-only
/*
 * stackid OBJECT PID PERIOD_NS: attaches the program in OBJECT (stackid.bpf.c) to a task-clock
 * event of a process's first thread, until a signal ends it.
 */
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

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
	struct bpf_program *program;
	struct bpf_object *object;
	int event;

	if (argc != 4) {
		fprintf(stderr, "usage: stackid OBJECT PID PERIOD_NS\n");
		return 2;
	}
	object = bpf_object__open_file(argv[1], NULL);
	event = open_event(atoi(argv[2]), strtoull(argv[3], NULL, 10));
	if (!object || bpf_object__load(object) || event < 0) {
		perror("stackid");
		return 1;
	}
	program = bpf_object__find_program_by_name(object, "stackid");
	if (!bpf_program__attach_perf_event(program, event)) {
		perror("stackid: attach");
		return 1;
	}
	pause();
	return 0;
}
