// SPDX-License-Identifier: GPL-2.0-only
#include "capture/cpus.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "util/file.h"

int cpus_each(const char *list, int (*visit)(int cpu, void *context), void *context)
{
	const char *at = list;

	while (*at && *at != '\n') {
		char *end;
		long first = strtol(at, &end, 10), last = first;

		if (end == at || first < 0)
			return -EINVAL;
		if (*end == '-') {
			at = end + 1;
			last = strtol(at, &end, 10);
			if (end == at || last < first)
				return -EINVAL;
		}
		if (last > INT_MAX - 1 || (*end && *end != ',' && *end != '\n'))
			return -EINVAL;
		for (long cpu = first; cpu <= last; cpu++) {
			int stop = visit(cpu, context);

			if (stop)
				return stop;
		}
		at = *end == ',' ? end + 1 : end;
	}
	return 0;
}

int cpus_each_online(int (*visit)(int cpu, void *context), void *context, struct error *e)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	char list[4096];
	int err = file_read_line(path, list, sizeof(list));

	if (err)
		return error_set(e, -err, "cannot read the list of online CPUs, %s", path);
	err = cpus_each(list, visit, context);
	if (err == -EINVAL)
		return error_set(e, 0, "%s holds no list of CPUs: \"%s\"", path, list);
	return err;
}
