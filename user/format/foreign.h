/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FOREIGN_H
#define PROFIL_FORMAT_FOREIGN_H

#include "format/input_file.h"

/*
 * JSON may have long metadata before what says of which kind it is, and headers many unknown lines:
 * so much is searched.
 */
#define FOREIGN_WINDOW ((size_t)1 << 20)

/* A kind of file that users give as a profile, and that no reader here supports. */
struct foreign {
	const char *what; /* "a recording of perf" */
	/* How to get a profile from such a file; "%s" stands for its path. Empty: no way. */
	const char *hint;
};

/* The kind of the file, judged by the window; NULL: none of these. */
const struct foreign *foreign_detect(const struct input *in);

/* For a file of no kind that is known: that it is text, if it is; else NULL. */
const struct foreign *foreign_text(const struct input *in);

/* Sets e to what the file is, with the hint. Returns -EINVAL. */
int foreign_error(const struct foreign *foreign, const struct input *in, struct error *e);

#endif
