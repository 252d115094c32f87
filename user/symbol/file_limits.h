/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_FILE_LIMITS_H
#define PROFIL_SYMBOL_FILE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/read_budget.h"

/*
 * Shares the CPU time and the bytes that reading files for one window may take: among root's files,
 * users, and the files of each. A window is written in time, whatever files users make.
 */
struct file_share {
	uint64_t ns, bytes;
};

struct file_limits {
	struct file_share total; /* for the window */
	struct file_share all_spent, users_spent;
	struct user_spent *users; /* by user */
	size_t user_count, user_room;
	struct file_share given; /* to the file that is read now */
	bool is_whole;		 /* it was given as much as one file has at most */
};

/* Zero-initialised, then: the limits of a window of this length. */
void file_limits_init(struct file_limits *l, uint64_t window_ns);
void file_limits_free(struct file_limits *l);

/* Sets *budget to what one more file may cost. user: whose file it is; 0: root's. */
void file_limits_begin(struct file_limits *l, uid_t user, struct read_budget *budget);

/* Adds what the file has cost to the shares. Returns 0 or -ENOMEM. */
int file_limits_end(struct file_limits *l, uid_t user, const struct read_budget *budget);

#endif
