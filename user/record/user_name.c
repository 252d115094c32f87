// SPDX-License-Identifier: GPL-2.0-only
#include "record/user_name.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/array.h"
#include "util/order.h"

#define PASSWD "/etc/passwd"

ORDER(by_uid, struct user_entry, LEAST(uid))

static void clear_users(struct user_names *users)
{
	while (users->count > 0)
		free(users->entries[--users->count].name);
}

int user_names_update(struct user_names *users)
{
	struct passwd entry, *found;
	struct stat status;
	char buffer[4096];
	int err = 0;
	FILE *file;

	if (stat(PASSWD, &status) || (status.st_mtim.tv_sec == users->changed_s &&
				      status.st_mtim.tv_nsec == users->changed_ns))
		return 0;
	file = fopen(PASSWD, "re");
	if (!file)
		return 0;
	users->changed_s = status.st_mtim.tv_sec;
	users->changed_ns = status.st_mtim.tv_nsec;
	clear_users(users);
	for (;;) {
		int code = fgetpwent_r(file, &entry, buffer, sizeof(buffer), &found);
		char *name;

		if (code == ERANGE) /* a line that is longer than the buffer is skipped */
			continue;
		if (code)
			break;
		name = strdup(found->pw_name);
		if (!name || array_add(users->entries, users->count, users->room,
				       (struct user_entry){ found->pw_uid, name })) {
			free(name);
			err = -ENOMEM;
			break;
		}
	}
	if (users->count)
		qsort(users->entries, users->count, sizeof(*users->entries), by_uid);
	fclose(file);
	return err;
}

const char *user_name(const struct user_names *users, uint32_t uid)
{
	const struct user_entry key = { .uid = uid }, *found = NULL;

	if (users->count)
		found = bsearch(&key, users->entries, users->count, sizeof(key), by_uid);
	return found ? found->name : NULL;
}

void user_names_free(struct user_names *users)
{
	clear_users(users);
	free(users->entries);
	*users = (struct user_names){ 0 };
}
