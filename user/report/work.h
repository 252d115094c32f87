/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_WORK_H
#define PROFIL_REPORT_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * What threads worked at, and for what they waited meanwhile: the time of a recording with waits,
 * without that which was idle, by the outermost functions that are the program's own and divide
 * it: of an application below a framework those that handle its requests.
 */
struct work_row {
	uint32_t function; /* its number in the profile */
	const char *image; /* of one of its places */
	int64_t ns;
	char *states; /* "sleep 4.90, lock 3.52, on CPU 1.12 (tax)" */
};

struct work {
	struct work_row *rows; /* the largest first */
	size_t count, room;
};

/*
 * Collects it; the texts have that many columns at most; 0: any. Returns 0 or -ENOMEM; call
 * work_free() in any case.
 */
int work_collect(struct work *w, const struct profile *p, size_t columns);
void work_free(struct work *w);

#endif
