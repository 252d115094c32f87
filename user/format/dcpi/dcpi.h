/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_DCPI_H
#define PROFIL_FORMAT_DCPI_H

#include "format/format.h"

/* dcpiformat(4), major version 0: one file for each image and event, in a database directory. */
extern const struct format format_dcpi;
#define DCPI_NAME "dcpi"

/* dcpi_write.c */
int dcpi_write_directory(const struct profile *p, const struct format_options *options,
			 const char *path, struct error *e);

#endif
