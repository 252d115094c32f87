// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/proc_maps.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "util/scan.h"

#define DELETED " (deleted)"
#define NEWLINE "\\012" /* the kernel escapes nothing else */

/* START-LIMIT MODE OFFSET MAJOR:MINOR INODE PATH */
bool proc_map_parse(char *line, struct proc_map *map)
{
	uint64_t device_major, device_minor;
	struct text t, mode;
	char *path;

	line[strcspn(line, "\n")] = '\0';
	t = text_of(line);
	if (!take_number(&t, 16, &map->start) || !take(&t, "-") ||
	    !take_number(&t, 16, &map->limit) || !take_blanks(&t))
		return false;
	mode = take_token(&t);
	map->executable = mode.end - mode.at > 2 && mode.at[2] == 'x';
	if (!take_blanks(&t) || !take_number(&t, 16, &map->offset) || !take_blanks(&t) ||
	    !take_number(&t, 16, &device_major) || !take(&t, ":") ||
	    !take_number(&t, 16, &device_minor) || !take_blanks(&t) ||
	    !take_number(&t, 10, &map->inode))
		return false;
	map->device = makedev(device_major, device_minor);
	take_blanks(&t);
	map->path = path = line + (t.at - line);
	while ((path = strstr(path, NEWLINE))) {
		*path++ = '\n';
		memmove(path, path + strlen(NEWLINE) - 1, strlen(path + strlen(NEWLINE) - 1) + 1);
	}
	return map->start < map->limit;
}

size_t proc_path_size(const char *path)
{
	size_t size = strlen(path), tail = strlen(DELETED);

	return size > tail && strcmp(path + size - tail, DELETED) == 0 ? size - tail : size;
}
