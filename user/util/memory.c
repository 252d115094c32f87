// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"
#include "util/number.h"

static uint64_t free_memory(const char *root)
{
	char path[PATH_MAX], line[256];
	uint64_t kilobytes = 0;
	FILE *info;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	info = fopen(path, "re");
	if (!info)
		return 0;
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) == 1)
			break;
	fclose(info);
	return kilobytes * 1024;
}

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

static bool has_memory(const char *controllers)
{
	char copy[256], *rest, *name;

	snprintf(copy, sizeof(copy), "%s", controllers);
	for (name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (strcmp(name, "memory") == 0)
			return true;
	return false;
}

/* A line of /proc/PID/cgroup: "NUMBER:CONTROLLERS:PATH", of cgroup v2 "0::PATH". */
static uint64_t limit_of_line(const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *group, directory[PATH_MAX];

	group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return UINT64_MAX;
	*controllers++ = *group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	if (*controllers && !has_memory(controllers))
		return UINT64_MAX;
	snprintf(directory, sizeof(directory), "%s/sys/fs/cgroup%s", root,
		 *controllers ? "/memory" : "");
	return lowest_limit(directory, group,
			    *controllers ? "memory.limit_in_bytes" : "memory.max");
}

uint64_t memory_available_below(const char *root)
{
	uint64_t lowest = free_memory(root), limit;
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	FILE *groups;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	groups = fopen(path, "re");
	while (groups && getline(&line, &size, groups) > 0) {
		limit = limit_of_line(root, line);
		if (limit < lowest)
			lowest = limit;
	}
	free(line);
	if (groups)
		fclose(groups);
	return lowest;
}

uint64_t memory_available(void)
{
	return memory_available_below("");
}

void memory_offer(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (!file)
		return;
	fputs("1000", file);
	fclose(file);
}
