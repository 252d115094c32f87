// SPDX-License-Identifier: GPL-2.0-only
#include "capture/perf_event.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/program.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"

int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int perf_event_try(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.sample_period = NS_PER_MS,
		.disabled = 1,
	};
	int fd = perf_event_open(&attr, -1, sched_getcpu());

	return fd < 0 ? fd : close(fd);
}

bool perf_event_is_dead(int fd, uint64_t *enabled_ns)
{
	uint64_t values[2], before_ns = *enabled_ns; /* values: the count, the time enabled */

	if (read(fd, values, sizeof(values)) != sizeof(values))
		return true;
	*enabled_ns = values[1];
	return before_ns && *enabled_ns == before_ns;
}

bool perf_event_needs_root(void)
{
	char text[32];
	uint64_t level;

	return file_read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) == 0 &&
	       number_parse(text, 3, UINT64_MAX, &level) == 0;
}

#define UPROBE "/sys/bus/event_source/devices/uprobe/"

int perf_event_uprobe(struct perf_event_attr *attr, uint64_t offset, struct error *e)
{
	char text[32] = "";
	uint64_t type = 0;

	if (file_read_line(UPROBE "type", text, sizeof(text)) ||
	    number_parse(text, 0, UINT32_MAX, &type)) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "this kernel has no uprobes: there is no " UPROBE);
		error_hint(e, "it requires CONFIG_UPROBE_EVENTS, and /sys");
		return -EOPNOTSUPP;
	}
	attr->type = type;
	attr->probe_offset = offset;
	return 0;
}

int perf_event_error(struct error *e, int code, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot open a perf event for %s", what);
	if (code == EACCES || code == EPERM) {
		program_not_permitted(e, code, text);
		if (perf_event_needs_root())
			error_hint(e, "run it as root, or: sysctl kernel.perf_event_paranoid=2 "
				      "(above that, capabilities are not enough on this kernel)");
		return -code;
	}
	if (code == ENOENT || code == EOPNOTSUPP || code == EINVAL || code == ENOSYS)
		return error_set_kind(e, ERROR_KERNEL_LACKS, code, "%s", text);
	error_set(e, code, "%s", text);
	if (code == EMFILE)
		error_hint(e, "raise the limit of open files: ulimit -n 65536");
	return -code;
}
