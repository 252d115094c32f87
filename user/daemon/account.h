/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_ACCOUNT_H
#define PROFIL_DAEMON_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/histogram.h"
#include "util/error.h"

/* What one user may have at once. */
struct limits {
	size_t processes; /* connections */
	size_t memory;	  /* bytes of maps, as long as anybody has them mapped or open */
	size_t ticks;	  /* per second: the rates of all clocks that tick for it */
};

/* What one user has. */
struct user {
	uid_t uid;
	size_t processes, memory;
	size_t histograms[HISTOGRAM_CLOCKS]; /* that have each clock */
	size_t ticks[HISTOGRAM_CLOCKS];	     /* per second, of each that any has */
	uint64_t time_ns;		     /* of profild's, see account_time() */
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

/*
 * One histogram more has a clock, which ticks for the user at this rate from now on, if it did not
 * yet: the same returns.
 */
int account_add_clock(const struct accounts *a, struct user *user, unsigned int clock, size_t rate,
		      struct error *e);
void account_drop_clock(struct user *user, unsigned int clock);

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
