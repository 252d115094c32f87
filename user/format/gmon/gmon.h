/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_GMON_H
#define PROFIL_FORMAT_GMON_H

#include "format/format.h"

/* gmon.out, as programs built with `gcc -pg` write it on glibc and BSD: one file per image. */

/*
 * <sys/gmon_out.h>: "gmon", a version of 4 bytes, 12 spare bytes; then records without padding,
 * each a tag (enum gmon_kind) and its data. Addresses are as wide as the program's.
 */
#define GMON_HEADER_SIZE    20
#define GMON_MAGIC	    "gmon"
#define GMON_VERSION	    1
#define GMON_DIMENSION_SIZE 15 /* of the unit's name; its abbreviation of 1 byte follows */

enum gmon_kind {
	GMON_HISTOGRAM = 0,
	GMON_ARC = 1,
	GMON_BLOCKS = 2
};

/* gprof's unit of code is 2 bytes; with smaller bins its numbers are wrong. */
#define GMON_BIN_SIZE 2

/* gmon_write.c */
uint64_t gmon_dropped_samples(const struct profile *p, const struct format_options *options);
uint64_t gmon_dropped_calls(const struct profile *p);

/*
 * Writes a file for each image below the directory `path`, or to the file `path` when its name is
 * one of a gmon.out file: then all samples have to be in one image.
 */
int gmon_write_directory(const struct profile *p, const struct format_options *options,
			 const char *path, struct error *e);

#endif
