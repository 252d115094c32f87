// SPDX-License-Identifier: GPL-2.0-only
#include "capture/pid_numbers.h"

#include <stdio.h>
#include <string.h>

#include "util/number.h"

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
