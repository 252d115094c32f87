/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_DCPI_WRITE_H
#define PROFIL_FORMAT_DCPI_WRITE_H

#include "format/format.h"

/* The write_directory of format_dcpi. */
int dcpi_write_directory(const struct profile *p, const struct format_options *options,
			 const char *path, struct error *e);

#endif
