/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_DATABASE_H
#define PROFIL_DCPI_DATABASE_H

#include <stddef.h>

#include "dcpi/body.h"
#include "dcpi/header.h"
#include "util/error.h"

/* What is written to one file of a database: the counts of one event in one image. */
struct dcpi_file {
	struct dcpi_header header;
	struct dcpi_count *counts; /* folded; of malloc() */
	size_t count, room;
};

/*
 * Writes the files to the database in the directory `path`, as EPOCH/HOST/IMAGE.ID[_LABEL]_EVENT:
 * all or none. Where a file of this name is there it becomes the sum of both, if the rest of its
 * header is the same. Beside other writers of the database, for whom it waits. The counts and
 * headers are those of the sums afterwards. Returns 0 or -errno, with e set.
 */
int dcpi_database_write(const char *path, struct dcpi_file *files, size_t count, struct error *e);

/* Frees what the file has, not its texts. */
void dcpi_file_free(struct dcpi_file *file);

#endif
