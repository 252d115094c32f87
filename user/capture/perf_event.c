// SPDX-License-Identifier: GPL-2.0-only
#include "capture/perf_event.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/privilege.h"

int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int perf_event_error(struct error *e, int code, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot open a perf event for %s", what);
	if (code == EACCES || code == EPERM)
		return privilege_error(e, code, text);
	if (code == ENOENT || code == EOPNOTSUPP || code == EINVAL || code == ENOSYS)
		return error_set_kind(e, ERROR_KERNEL_LACKS, code, "%s", text);
	error_set(e, code, "%s", text);
	if (code == EMFILE)
		error_mend(e, "raise the limit of open files: ulimit -n 65536");
	return -code;
}
