/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_DIRECTORY_H
#define PROFIL_UTIL_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "util/error.h"

/*
 * The one way to write, rename and remove files below a directory that other users may own. They
 * can put links of any kind there, under any name, and rename directories at any time. So each
 * directory is opened once, below the one that it is in, and no symbolic link is followed; what is
 * written is a new file (O_EXCL), which is renamed when it is complete. `name` is always that of an
 * entry, without a slash.
 */

/*
 * Opens a directory that the user of the program has named. Of the symbolic links in its path only
 * those are followed that root or the caller's user owns. Returns a descriptor, or -errno (-ELOOP:
 * another user's link).
 */
int directory_open(const char *path);

/* The same; if there is none, makes it, durably, in its parent, which must exist. Mode 0700. */
int directory_make(const char *path);

/*
 * Opens a directory in another one, as above; make: makes it if there is none, durably. Returns a
 * descriptor, or -errno (-ELOOP or -ENOTDIR: it is no directory).
 */
int directory_open_in(int directory, const char *name, bool make);

/*
 * Opens a file for reading. Returns a descriptor, or -errno (-ELOOP: a symbolic link; -EINVAL: not
 * a regular file).
 */
int directory_open_file(int directory, const char *name);

enum directory_write_flag {
	DIRECTORY_DURABLE = 1, /* file and name are on the disk */
	DIRECTORY_NEW = 2,     /* -EEXIST if the name is taken; else the entry is replaced */
};

/*
 * Writes a complete file or nothing. write() fills a stream with its content; it returns 0, or
 * -errno and sets e. path is for messages. Mode 0600. All signals wait meanwhile. Returns 0, or
 * -errno with e set.
 */
int directory_write_file(int directory, const char *name, const char *path, unsigned int flags,
			 int (*write)(FILE *out, void *context, struct error *e), void *context,
			 struct error *e);

/*
 * Where a disk is full: writes over the beginning of a file of the caller's user that is there,
 * which needs no room. A reader may see a part of it. Returns 0, or -errno (-ENOSPC: the file is
 * shorter, or there is none that only this name leads to).
 */
int directory_overwrite_file(int directory, const char *name, const char *bytes, size_t size);

/*
 * Has write() fill a stream on fd, which is closed in any case. durable: syncs it to the disk. path
 * is for messages. Returns 0, or -errno with e set.
 */
int directory_fill_file(int fd, const char *path, bool durable,
			int (*write)(FILE *out, void *context, struct error *e), void *context,
			struct error *e);

/* Removes the temporary files of killed writers. Only while no other writer is running. */
void directory_remove_temporaries(int directory);

/*
 * Writes `count` files below the directory `path`, all or none. names[i] is a path relative to it;
 * missing directories are created, those of `path` included. write() gets a file's number and fills
 * a stream with its content; it returns 0, or -errno and sets e. `old` is a descriptor of the file
 * that it replaces, or -errno (-ENOENT: none). The contents go to temporary files, which take their
 * names, and replace existing files, when all are complete. Meanwhile the first file's directory is
 * locked. Mode 0600, directories 0700. Returns 0, or -errno and sets e; -EWOULDBLOCK: another
 * process has kept the lock for ten seconds.
 */
int directory_write(const char *path, char *const *names, size_t count,
		    int (*write)(FILE *out, size_t number, int old, void *context, struct error *e),
		    void *context, struct error *e);

/*
 * Checks before long work that files could be written below this directory, which is made if need
 * be: its nearest existing ancestor is a writable directory. Returns 0, or -errno with e set.
 */
int directory_check_writable(const char *path, struct error *e);

/*
 * Sets the hint for a directory that cannot be written for this errno; no other errno changes the
 * hint. Names the setting where systemd made the directory read-only for a service.
 */
void directory_hint(struct error *e, int code, const char *path);

/*
 * Makes a file name from any text: replaces slashes, control characters and a leading dot by '_'.
 * An empty text stays empty.
 */
void directory_clean_name(char *name);

#endif
