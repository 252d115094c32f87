/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_ACCOUNT_H
#define PROFIL_DAEMON_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/histogram.h"
#include "daemon/peer.h"
#include "util/error.h"

/*
 * What a tick takes of its CPU, mostly the interrupt: measured in a virtual machine.
 * Bound: pace.
 */
#define TICK_NS 10000

/* What one user, or a person with more user IDs than one, may use at once: see struct peer. */
struct limits {
	size_t processes; /* connections */
	size_t memory;	  /* bytes of maps, until nobody has them mapped or open any more */
	size_t ticks;	  /* per second: the sum of the rates of its clocks */
	size_t rates;	  /* its clocks */
	/*
	 * Per second, of all users together. One user may use half of what the others leave, so
	 * that there is always something left. Clocks of the usual rate can always be used.
	 */
	size_t all_ticks;
};

/* What one user uses. */
struct user {
	uint64_t person;
	uid_t uid;			     /* to be named in messages */
	size_t processes, memory;	     /* as in struct limits */
	size_t histograms[HISTOGRAM_CLOCKS]; /* how many use each clock */
	size_t ticks[HISTOGRAM_CLOCKS];	     /* rate of each clock; 0: unused */
	uint64_t time_ns;		     /* see account_charge_time() */
	struct user *next;
};

/* All users that use something. */
struct accounts {
	struct limits limits;
	struct user *users;
	struct lease *leases; /* of all users, sorted by number */
	size_t lease_count, lease_room;
	size_t checked_count; /* how many leases the last check of all left */
	uint64_t last_lease;  /* number of the newest */
	int files;	  /* epoll instance that holds the file of each lease; never waited for */
	uint64_t time_ns; /* the most time_ns that a user had when it was served */
};

/* Returns 0, or a negative errno with e set. accounts_close() is due in both cases. */
int accounts_open(struct accounts *a, const struct limits *limits, struct error *e);
void accounts_close(struct accounts *a);

/*
 * Adds a process to a user's account. Returns the user, who exists until account_drop_process(), or
 * NULL with e set: the user has as many as are allowed, or memory ran out.
 */
struct user *account_add_process(struct accounts *a, const struct peer *peer, struct error *e);
void account_drop_process(struct accounts *a, struct user *user);

/* Returns 0 if `bytes` more are within the user's limit, otherwise -EDQUOT with e set. */
int account_check_memory(struct accounts *a, const struct user *user, size_t bytes,
			 struct error *e);

/* The clock with this rate that a user has; HISTOGRAM_CLOCKS: nobody has one. */
unsigned int account_find_clock(const struct accounts *a, size_t rate);

/*
 * Whether the user may use one more clock, of account_find_clock()'s, with this rate. One that it
 * uses already costs nothing. Returns 0, or -EDQUOT with e set.
 */
int account_check_clock(const struct accounts *a, const struct user *user, unsigned int clock,
			size_t rate, struct error *e);

/* Adds a histogram that uses a clock with this rate, without a check. */
void account_add_clock(struct user *user, unsigned int clock, size_t rate);
void account_drop_clock(struct user *user, unsigned int clock);

/*
 * Charges the memory behind a descriptor to the user until its last descriptor is closed and its
 * last mapping is unmapped, in any process. The descriptor stays the caller's. Returns 0, or a
 * negative errno with e set.
 */
int account_charge_memory(struct accounts *a, struct user *user, int fd, size_t bytes,
			  struct error *e);

/*
 * Charges the time that profild spent on a user. The user with the least time_ns is served first.
 * A user who was away for long gains nothing by that.
 */
void account_charge_time(struct accounts *a, struct user *user, uint64_t ns);

#endif
