/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_FILE_OPEN_H
#define PROFIL_UTIL_FILE_OPEN_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Rules for the whole path of a file, its links included. Each component is opened, and checked by
 * its descriptor, so that nothing is looked up twice.
 */
enum file_rule {
	FILE_NO_FOREIGN_LINKS = 1, /* root or the caller made its symbolic links; else -ELOOP */
	FILE_PUBLIC = 2,	   /* all users may search its directories, and read it */
	FILE_OWN_PATH = 4,	   /* only root and the caller can change any part of it; ... */
};				   /* ... else, for both, -EACCES */

/*
 * Opens a regular file for reading. Does not open devices and FIFOs, which may react to open(2)
 * alone, nor files that are the kernel's answers (/proc, /sys and the like). root: the descriptor
 * of a directory to resolve the path and its links in, as after chroot(2), or -1. status may be
 * NULL. Returns a descriptor or a negative errno (-EINVAL: no such file).
 */
int file_open_regular(int root, const char *path, struct stat *status);

/* The same for a path that follows all of these rules. */
int file_open_regular_by_rules(int root, const char *path, unsigned int rules, struct stat *status);

/* The same for a file opened with O_PATH, whose descriptor is closed in any case. */
int file_reopen_regular(int fd, struct stat *status);

/*
 * Opens any file with open(2)'s flags, but O_CREAT, root as above: neither "..", links, nor links
 * of /proc to what processes have open lead out of it, whatever others rename meanwhile. Returns a
 * descriptor or a negative errno.
 */
int file_open_in(int root, const char *path, int flags);
int file_open_by_rules(int root, const char *path, int flags, unsigned int rules);

/*
 * Whether root, the caller or this user owns a file, and root's or the caller's is not writable by
 * everyone: nobody else can choose what it holds for code of that user.
 */
bool file_is_of(const struct stat *status, uid_t user);

/* Closes a descriptor; a negative one is none. */
static inline void file_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

#endif
