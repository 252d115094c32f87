/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_DATABASE_H
#define PROFIL_DCPI_DATABASE_H

#include <stddef.h>

#include "dcpi/body.h"
#include "dcpi/header.h"
#include "util/error.h"

/* One file of a database: the counts of one event in one image. */
struct dcpi_file {
	struct dcpi_header header;
	struct dcpi_count *counts; /* folded; allocated by malloc() */
	size_t count, room;
};

/*
 * Writes the files to the database in the directory `path`, as EPOCH/HOST/IMAGE.ID[_LABEL]_EVENT:
 * all or none. Of several that would have one name, all but the first get a number. A file that
 * exists becomes the sum of both; its header must agree. Waits for other writers of the database.
 * Afterwards `files` has the sums that were written. Returns 0 or -errno with *e set.
 */
int dcpi_database_write(const char *path, struct dcpi_file *files, size_t count, struct error *e);

/* Frees the header and the counts, but not the texts that the header refers to. */
void dcpi_file_free(struct dcpi_file *file);

#endif
