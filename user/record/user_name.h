/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_USER_NAME_H
#define PROFIL_RECORD_USER_NAME_H

#include <stddef.h>
#include <stdint.h>

/*
 * User names of /etc/passwd. A directory service is not asked: it may wait for the network, and
 * callers must not wait. Zero-initialised is empty.
 */
struct user_names {
	struct user_entry {
		uint32_t uid;
		char *name;
	} * entries; /* ordered by uid */
	size_t count, room;
	int64_t changed_s, changed_ns; /* modification time of the file that was read */
};

/* Reads the file, if it was changed since the last call. Returns 0 or -ENOMEM. */
int user_names_update(struct user_names *users);

/* Returns the name, or NULL. It is valid until the next update. */
const char *user_name(const struct user_names *users, uint32_t uid);

void user_names_free(struct user_names *users);

#endif
