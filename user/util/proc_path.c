// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/proc_path.h"

#include <string.h>

#define DELETED " (deleted)"
#define NEWLINE "\\012"

size_t proc_path_size(const char *path)
{
	size_t size = strlen(path), tail = strlen(DELETED);

	return size > tail && strcmp(path + size - tail, DELETED) == 0 ? size - tail : size;
}

void proc_path_unescape(char *path)
{
	while ((path = strstr(path, NEWLINE))) {
		*path++ = '\n';
		memmove(path, path + strlen(NEWLINE) - 1, strlen(path + strlen(NEWLINE) - 1) + 1);
	}
}
