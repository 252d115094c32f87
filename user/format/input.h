/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_INPUT_H
#define PROFIL_FORMAT_INPUT_H

#include "format/format.h"

/*
 * Reads all of a file, pipe or ("-") standard input, and inflates it when it is gzip. in->bytes
 * is the caller's to input_free(), in->path lives as long as `path`. Returns 0 or -errno.
 */
int input_load(const char *path, struct input *in, struct error *e);
void input_free(struct input *in);

#endif
