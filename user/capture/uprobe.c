// SPDX-License-Identifier: GPL-2.0-only
#include "capture/uprobe.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "capture/perf_event.h"
#include "util/file.h"
#include "util/number.h"

#define UPROBE "/sys/bus/event_source/devices/uprobe/"

int uprobe_attach(int file, uint64_t offset, int program, struct error *e)
{
	char path[64], text[32] = "";
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.probe_offset = offset,
		.uprobe_path = (uintptr_t)path,
	};
	uint64_t type = 0;
	int fd;

	if (file_read_line(UPROBE "type", text, sizeof(text)) ||
	    number_parse(text, 0, UINT32_MAX, &type)) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "this kernel has no uprobes: there is no " UPROBE);
		error_hint(e, "it requires CONFIG_UPROBE_EVENTS, and /sys");
		return -EOPNOTSUPP;
	}
	attr.type = type;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	/* On whatever CPU it is opened, the program runs on all. */
	fd = perf_event_open(&attr, -1, 0);
	if (fd < 0)
		return perf_event_error(e, -fd, "calls of a function (uprobe)");
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		int code = errno;

		close(fd);
		return perf_event_error(e, code, "calls of a function (uprobe)");
	}
	return fd;
}
