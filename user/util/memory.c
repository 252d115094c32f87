// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "util/file.h"
#include "util/number.h"

/*
 * The lowest limit of a control group and its ancestors. In a container /proc may give the group's
 * path on the host: then only its ancestors exist, and the container's root is the group itself.
 */
static uint64_t lowest_limit(const char *directory, char *group, const char *file)
{
	uint64_t lowest = UINT64_MAX, limit;
	char path[2 * PATH_MAX], text[32], *end = group + strlen(group);

	for (;;) {
		*end = '\0';
		snprintf(path, sizeof(path), "%s%s/%s", directory, group, file);
		/* "max": there is none */
		if (file_read_line(path, text, sizeof(text)) == 0 &&
		    number_parse(text, 0, UINT64_MAX, &limit) == 0 && limit < lowest)
			lowest = limit;
		if (end == group)
			return lowest;
		while (end > group && *--end != '/')
			;
	}
}

uint64_t memory_available_below(const char *root)
{
	char path[PATH_MAX], *text = NULL;
	uint64_t kilobytes = 0, lowest, limit;
	size_t size = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	file_find_number(path, "MemAvailable:", &kilobytes);
	lowest = kilobytes * 1024;
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	in = fopen(path, "re");
	/* A line of /proc/PID/cgroup: "NUMBER:CONTROLLERS:PATH", of cgroup v2 "0::PATH". */
	while (in && getline(&text, &size, in) > 0) {
		char *controllers = strchr(text, ':'), *group, list[256];
		bool is_v2;

		group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		is_v2 = group == controllers + 1;
		snprintf(list, sizeof(list), ",%.*s,", (int)(group - controllers - 1),
			 controllers + 1);
		group++;
		group[strcspn(group, "\n")] = '\0';
		if (!is_v2 && !strstr(list, ",memory,"))
			continue;
		snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s", root, is_v2 ? "" : "/memory");
		limit = lowest_limit(path, group, is_v2 ? "memory.max" : "memory.limit_in_bytes");
		if (limit < lowest)
			lowest = limit;
	}
	free(text);
	file_close_stream(in);
	return lowest;
}

uint64_t memory_available(void)
{
	uint64_t available = memory_available_below("");
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur < available)
		available = space.rlim_cur; /* RLIM_INFINITY is the highest number */
	return available;
}

void memory_offer(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (!file)
		return;
	fputs("1000", file);
	fclose(file);
}
