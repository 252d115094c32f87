/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_ACCOUNT_H
#define PROFIL_DAEMON_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* What one user may have at once. */
struct limits {
	size_t processes; /* connections */
	size_t memory;	  /* bytes of maps, as long as anybody has them mapped or open */
	size_t events;	  /* perf events */
	size_t ticks;	  /* per second of CPU time: the frequencies of all histograms */
};

/* What one user has. */
struct user {
	uid_t uid;
	size_t processes, memory, events, ticks;
	uint64_t time_ns; /* of profild's, see account_time() */
	struct user *next;
};

/* The users that have something. */
struct accounts {
	struct limits limits;
	struct user *users;
	struct lease *leases; /* of all users, in the order of their numbers */
	size_t lease_count, lease_room;
	size_t last_count; /* how many leases there were after the last look at all of them */
	uint64_t last_lease;
	int files; /* an epoll instance that holds the file of each lease, and waits for nothing */
	uint64_t time_ns;
};

int accounts_open(struct accounts *a, const struct limits *limits, struct error *e);
void accounts_close(struct accounts *a);

/*
 * One process more. Returns NULL with e set when the user has its number of them, or memory runs
 * out. The user stays until account_leave().
 */
struct user *account_enter(struct accounts *a, uid_t uid, struct error *e);
void account_leave(struct accounts *a, struct user *user);

/* Whether the user may have so much more: -EDQUOT with e set when not. */
int account_check_memory(struct accounts *a, const struct user *user, size_t bytes,
			 struct error *e);
int account_check_events(const struct accounts *a, const struct user *user, size_t events,
			 struct error *e);

/* Whether it may have so many ticks per second beside `others` of its own: the same returns. */
int account_check_ticks(const struct accounts *a, const struct user *user, size_t others,
			size_t ticks, struct error *e);

/*
 * Charges the memory behind a descriptor to the user until the last descriptor and the last mapping
 * of it is gone, whoever has them. The descriptor stays the caller's.
 */
int account_lease(struct accounts *a, struct user *user, int fd, size_t bytes, struct error *e);

/*
 * The user has had so much of profild's time. Who has had the least, by user.time_ns, is to be
 * served first; one that comes back after a while has no arrears to claim.
 */
void account_time(struct accounts *a, struct user *user, uint64_t ns);

#endif
