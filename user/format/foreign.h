/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FOREIGN_H
#define PROFIL_FORMAT_FOREIGN_H

#include "format/input_file.h"

/* A kind of file that people take for a profile, and that is not read here. */
struct foreign {
	const char *what; /* "a recording of perf" */
	/* How to get a profile from it; "%s" in it, if any, is the file's path. */
	const char *hint;
};

/* What the file is by its beginning, or NULL. */
const struct foreign *foreign_detect(const struct input *in);

/* Sets the error that says what it is. Returns -EINVAL. */
int foreign_error(const struct foreign *foreign, const struct input *in, struct error *e);

#endif
