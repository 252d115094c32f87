// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/file_limits.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/clock.h"

/*
 * The parts of the whole that may be spent: on all users' files, on one user's, on one file.
 * Bound: users: parts of a window's time and bytes for reading symbols that all users' files, one
 * user's, one file of a user and one of root may take; then: the file is not read: its code has no
 * names in this window; again: at the next window; share: a user has a quarter, all users half;
 * seen: symbol_files_unread, and the reason with its code.
 */
#define USERS_PART	2
#define USER_PART	4
#define USERS_FILE_PART 8
#define ROOTS_FILE_PART 2

/*
 * A tenth of the window's length, but no less than half a second.
 * Bound: users: the part of a window's length that reading symbols may take of a CPU, and no less
 * than half a second; then: further files are not read: their code has no names in this window;
 * again: at the next window; share: by USERS_PART; seen: symbol_files_unread, and the reason with
 * its code.
 */
#define WINDOW_PART 10
#define NS_LEAST    (NS_PER_S / 2)

/*
 * The symbol tables of all programs of a desktop are a tenth of it.
 * Bound: users: bytes that are read of files for the symbols of one window; then: further files are
 * not read: their code has no names in this window; again: at the next window; share: by
 * USERS_PART; seen: symbol_files_unread, and the reason with its code.
 */
#define WINDOW_BYTES ((uint64_t)1024 * 1024 * 1024)

/*
 * How much of one file may be in memory at once.
 * Bound: users: bytes of one file in memory at once: root's, a user's; then: it is not read: its
 * code has no names; again: when the file changes; share: the file's own; seen:
 * symbol_files_unread, and the reason with its code.
 */
#define ROOTS_MEMORY ((size_t)128 * 1024 * 1024)
#define USERS_MEMORY ((size_t)64 * 1024 * 1024)

struct user_spent {
	uid_t user;
	struct file_share spent;
};

void file_limits_init(struct file_limits *l, uint64_t window_ns)
{
	l->total.ns = MAX(window_ns / WINDOW_PART, NS_LEAST);
	l->total.bytes = WINDOW_BYTES;
}

void file_limits_free(struct file_limits *l)
{
	free(l->users);
}

static struct user_spent *find_user(const struct file_limits *l, uid_t user)
{
	for (size_t i = 0; i < l->user_count; i++)
		if (l->users[i].user == user)
			return &l->users[i];
	return NULL;
}

/* Lowers *share to the rest of a part of the total of which `spent` was spent. */
static void limit(struct file_share *share, const struct file_share *total, unsigned int part,
		  const struct file_share *spent)
{
	uint64_t ns = total->ns / part, bytes = total->bytes / part;

	ns -= MIN(spent->ns, ns);
	bytes -= MIN(spent->bytes, bytes);
	share->ns = MIN(share->ns, ns);
	share->bytes = MIN(share->bytes, bytes);
}

void file_limits_begin(struct file_limits *l, uid_t user, struct read_budget *budget)
{
	unsigned int file_part = user ? USERS_FILE_PART : ROOTS_FILE_PART;
	const struct file_share nothing = { 0 };
	const struct user_spent *one = find_user(l, user);

	l->given = l->total;
	limit(&l->given, &l->total, 1, &l->all_spent);
	limit(&l->given, &l->total, file_part, &nothing);
	if (user)
		limit(&l->given, &l->total, USERS_PART, &l->users_spent);
	if (user && one)
		limit(&l->given, &l->total, USER_PART, &one->spent);
	/* But for the little by which the files before have exceeded theirs */
	l->is_whole = l->given.ns / 3 >= l->total.ns / file_part / 4 &&
		      l->given.bytes / 3 >= l->total.bytes / file_part / 4;
	*budget = (struct read_budget){
		.bytes = l->given.bytes,
		.until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + l->given.ns,
		.memory = user ? USERS_MEMORY : ROOTS_MEMORY,
	};
}

int file_limits_end(struct file_limits *l, uid_t user, const struct read_budget *budget)
{
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID), begin = budget->until_ns - l->given.ns;
	struct file_share spent = {
		.ns = now > begin ? now - begin : 0,
		.bytes = l->given.bytes - budget->bytes,
	};
	struct user_spent *one = find_user(l, user);

	if (user && !one) {
		if (array_add(l->users, l->user_count, l->user_room,
			      (struct user_spent){ .user = user }))
			return -ENOMEM;
		one = &l->users[l->user_count - 1];
	}
	if (user) {
		one->spent.ns += spent.ns;
		one->spent.bytes += spent.bytes;
		l->users_spent.ns += spent.ns;
		l->users_spent.bytes += spent.bytes;
	}
	l->all_spent.ns += spent.ns;
	l->all_spent.bytes += spent.bytes;
	return 0;
}
