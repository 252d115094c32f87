/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_ARCHIVE_TREE_H
#define PROFIL_ARCHIVE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "archive/window_name.h"
#include "profile/profile.h"
#include "util/error.h"

/* One host's part of the tree, for those who write it. */

struct tree_window {
	struct window_name name;
	bool covered;	/* by a coarser one: not to be read */
	uint64_t bytes; /* on disk */
};

struct tree {
	int fd; /* DIRECTORY/HOST */
	char *path;
	struct tree_window *windows; /* after tree_scan(): ordered by time, of equal ones the
					coarser first */
	size_t count, room;
};

/*
 * Opens DIRECTORY/HOST; make: makes both if need be. Returns 0 or -errno with e set; tree_close()
 * is due in any case.
 */
int tree_open(struct tree *t, const char *directory, const char *host, bool make, struct error *e);
void tree_close(struct tree *t);

/*
 * A small text that is kept beside the windows, in DIRECTORY/HOST/NAME. Reading it: NULL: there is
 * none, or it cannot be read. Writing: durably, whole or not at all; returns 0 or -errno with e
 * set.
 */
FILE *tree_read_list(const char *directory, const char *host, const char *name);
int tree_write_list(const char *directory, const char *host, const char *name,
		    int (*write)(FILE *out, void *context, struct error *e), void *context,
		    struct error *e);

/*
 * Finds all windows of the days from day `first_s` to day `last_s`. clean: removes temporary files,
 * which only the holder of the lock may do. What has other names is not looked at. Returns 0 or
 * -errno with e set.
 */
int tree_scan(struct tree *t, uint64_t first_s, uint64_t last_s, bool clean, struct error *e);

/*
 * Chooses windows that together are all that was recorded from since_s to until_s: the coarsest
 * sums up to this grain that lie in between, and what they do not contain. most_grain_s: 0: no
 * sums. chosen: for each window whether it is. Returns how many are.
 */
size_t tree_choose(const struct tree *t, uint64_t since_s, uint64_t until_s,
		   unsigned int most_grain_s, bool *chosen);

/* Opens a day's directory; made if need be. Returns a descriptor or -errno. */
int tree_open_day(const struct tree *t, uint64_t time_s, bool make);

/* Removes a window's file, if it exists. Returns 0 or -errno with e set. */
int tree_remove(const struct tree *t, const struct window_name *w, struct error *e);

/* Renames a window's file to another name of the same day. Returns 0 or -errno with e set. */
int tree_rename(const struct tree *t, const struct window_name *from, const struct window_name *to,
		struct error *e);

/*
 * Writes a profile to a window's file: durably, whole or not at all. replace: a file of this name
 * is replaced; else -EEXIST. Returns 0 or -errno with e set.
 */
int tree_write(const struct tree *t, const struct profile *p, const struct window_name *w,
	       bool replace, struct error *e);

/*
 * The same with the bytes of a file, of which no other is replaced. It is no error if a file of
 * this name has the same bytes: a process that was ended has written them.
 */
int tree_write_bytes(const struct tree *t, int fd, const struct window_name *w, struct error *e);

/* Writes the path of a window. */
void tree_path(const struct tree *t, const struct window_name *w, char *path, size_t size);

/*
 * Calls visit() for each entry of a directory but those with a dot; closes fd. Returns 0 or what
 * visit() or reading returned.
 */
int tree_visit(int fd, int (*visit)(int fd, const char *name, void *context), void *context);

#endif
