/* SPDX-License-Identifier: GPL-2.0-only */
/* How many processes of each user are profiled. */
#ifndef PROFIL_KMOD_USERS_H
#define PROFIL_KMOD_USERS_H

#include <linux/types.h>

struct user_count;

/*
 * Counts one more process for the current task's real user ID, as the host sees it, until
 * user_drop_process(). `replaces`: one that is on already, so there may be one too many for a
 * while. Returns the user, or an ERR_PTR(): -EDQUOT, there are as many as settings_max_processes()
 * allows; -ENOMEM. Sleeps.
 */
struct user_count *user_add_process(bool replaces);

/* Callable with preemption disabled. */
void user_drop_process(struct user_count *user);

#endif
