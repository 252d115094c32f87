/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_PROC_MAPS_H
#define PROFIL_UTIL_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Mappings as the kernel shows them: /proc/PID/maps, proc(5); paths also in perf event records. */

struct proc_map {
	uint64_t start, limit;
	uint64_t offset; /* of `start` in the file */
	dev_t device;
	uint64_t inode; /* 0: no file */
	bool executable;
	char *path; /* in the line; "": none */
};

/*
 * Parses a line of /proc/PID/maps, up to a newline or NUL, and changes it in place: ends it with a
 * NUL, and restores newlines in the path, which keeps a " (deleted)". Returns false if the line is
 * no mapping.
 */
bool proc_map_parse(char *line, struct proc_map *map);

/* The length of the path without the " (deleted)" that the kernel appends. */
size_t proc_path_size(const char *path);

#endif
