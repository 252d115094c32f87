// SPDX-License-Identifier: GPL-2.0-only
#include "capture/pid_numbers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/number.h"

#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */

size_t pid_numbers(pid_t pid, pid_t tid, uint64_t *innermost)
{
	char path[64], line[512], *rest, *word;
	size_t count = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (!count && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
			continue;
		rest = line + strlen("NSpid:");
		while ((word = strsep(&rest, "\t\n")))
			count += number_parse(word, 1, INT32_MAX, innermost) == 0;
	}
	fclose(status);
	return count;
}

bool pid_has_thread(pid_t pid, pid_t tid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return stat(path, &status) == 0; /* access(2) would not use our capabilities */
}

int pid_identity_read(pid_t pid, struct pid_identity *identity, struct error *e)
{
	char path[64] = "/proc/self/ns/pid"; /* readable without rights about the process */
	struct stat namespace;
	uint64_t innermost;
	size_t count = pid_numbers(pid, pid, &innermost);

	if (!count)
		return error_set(e, ESRCH, "cannot profile process %d", pid);
	if (count > 1)
		snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	if (stat(path, &namespace))
		return error_set(e, errno == ENOENT ? ESRCH : errno,
				 "cannot read the pid namespace of process %d", pid);
	*identity = (struct pid_identity){
		.device = (uint64_t)major(namespace.st_dev) << KERNEL_MINOR_BITS |
			  minor(namespace.st_dev),
		.inode = namespace.st_ino,
		.tgid = innermost,
	};
	return 0;
}
