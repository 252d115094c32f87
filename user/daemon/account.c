// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/account.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/array.h"
#include "util/order.h"

#define MIB (1024 * 1024)

/* A check takes time in proportion to the number of leases: not for fewer new leases than this. */
#define MIN_NEW_LEASES 64

/*
 * Memory of which a client has a descriptor. The client may keep it, or pass it on, after its
 * connection is closed. The kernel removes a file from an epoll instance when its last descriptor
 * and its last mapping are gone, and /proc/self/fdinfo lists the remaining files.
 */
struct lease {
	uint64_t number;
	struct user *user;
	size_t bytes;
	bool held; /* set by end_leases() */
};

int accounts_open(struct accounts *a, const struct limits *limits, struct error *e)
{
	*a = (struct accounts){ .limits = *limits };
	a->files = epoll_create1(EPOLL_CLOEXEC);
	return a->files < 0 ? error_set(e, errno, "cannot create an epoll instance") : 0;
}

void accounts_close(struct accounts *a)
{
	struct user *user;

	while ((user = a->users)) {
		a->users = user->next;
		free(user);
	}
	free(a->leases);
	if (a->files >= 0)
		close(a->files);
}

struct user *account_add_process(struct accounts *a, const struct peer *peer, struct error *e)
{
	struct user *user = a->users;

	while (user && user->person != peer->person)
		user = user->next;
	if (user && user->processes >= a->limits.processes) {
		error_set(e, 0, "user %u has %zu connections already: profild --max-processes",
			  user->uid, user->processes);
		return NULL;
	}
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user) {
			error_no_memory(e);
			return NULL;
		}
		user->person = peer->person;
		user->uid = peer_person_uid(peer);
		user->next = a->users;
		a->users = user;
	}
	user->processes++;
	return user;
}

static void free_unused_users(struct accounts *a)
{
	struct user **link = &a->users;

	while (*link) {
		struct user *user = *link;

		if (user->processes || user->memory) {
			link = &user->next;
			continue;
		}
		*link = user->next;
		free(user);
	}
}

ORDER(compare_numbers, struct lease, LEAST(number))

/* Ends the leases of files without descriptors and mappings, and frees unused users. */
static void end_leases(struct accounts *a)
{
	struct lease key = { 0 }, *lease;
	char path[64], line[256];
	FILE *info;
	size_t kept = 0;
	bool all;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", a->files);
	info = fopen(path, "re");
	if (!info)
		return; /* the leases stay as they are */
	for (size_t i = 0; i < a->lease_count; i++)
		a->leases[i].held = false;
	while (fgets(line, sizeof(line), info)) {
		if (!a->lease_count ||
		    sscanf(line, "tfd: %*d events: %*x data: %" SCNx64, &key.number) != 1)
			continue;
		lease = bsearch(&key, a->leases, a->lease_count, sizeof(*lease), compare_numbers);
		if (lease)
			lease->held = true;
	}
	all = !ferror(info);
	fclose(info);
	for (size_t i = 0; i < a->lease_count && all; i++) {
		if (a->leases[i].held)
			a->leases[kept++] = a->leases[i];
		else
			a->leases[i].user->memory -= a->leases[i].bytes;
	}
	if (all)
		a->lease_count = kept;
	a->checked_count = a->lease_count;
	free_unused_users(a);
}

void account_drop_process(struct accounts *a, struct user *user)
{
	user->processes--;
	if (!user->processes && !user->memory)
		free_unused_users(a);
}

int account_check_memory(struct accounts *a, const struct user *user, size_t bytes, struct error *e)
{
	size_t limit = a->limits.memory;

	if (bytes <= limit && user->memory > limit - bytes)
		end_leases(a);
	if (bytes <= limit && user->memory <= limit - bytes)
		return 0;
	error_set(e, 0,
		  "user %u has %zu MiB of counts, and %zu MiB more are above the limit of %zu MiB: "
		  "profild --max-memory",
		  user->uid, user->memory / MIB, (bytes + MIB - 1) / MIB, limit / MIB);
	return -EDQUOT;
}

/* Whether a user other than this one uses the clock: then it costs no more with this one. */
static bool is_shared(const struct accounts *a, const struct user *user, unsigned int clock)
{
	const struct user *other = a->users;

	while (other && (other == user || !other->histograms[clock]))
		other = other->next;
	return other;
}

unsigned int account_find_clock(const struct accounts *a, size_t rate)
{
	for (const struct user *user = a->users; user; user = user->next)
		for (unsigned int i = 0; i < HISTOGRAM_CLOCKS; i++)
			if (user->ticks[i] == rate)
				return i;
	return HISTOGRAM_CLOCKS;
}

int account_check_clock(const struct accounts *a, const struct user *user, unsigned int clock,
			size_t rate, struct error *e)
{
	size_t ticks = 0, count = 0, own = 0, own_count = 0, others_count = 0, others = 0;

	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++) {
		bool shared = is_shared(a, user, i);

		ticks += user->ticks[i];
		count += user->histograms[i] > 0;
		own += shared ? 0 : user->ticks[i];
		/* The first is reserved for the usual rate. */
		own_count += i && !shared && user->histograms[i];
		others_count += i && shared;
	}
	if (clock < HISTOGRAM_CLOCKS && user->histograms[clock])
		return 0;
	if (count >= a->limits.rates) {
		error_set(e, 0, "user %u has %zu rates, the limit: profild --max-rates", user->uid,
			  count);
		return -EDQUOT;
	}
	if (ticks + rate > a->limits.ticks) {
		error_set(e, 0,
			  "user %u has %zu ticks per second, and %zu more are above the limit of "
			  "%zu: profild --max-ticks",
			  user->uid, ticks, rate, a->limits.ticks);
		return -EDQUOT;
	}
	if (rate == HISTOGRAM_USUAL_HZ || (clock < HISTOGRAM_CLOCKS && is_shared(a, user, clock)))
		return 0;
	if (own_count >= (HISTOGRAM_CLOCKS - others_count) / 2) {
		error_set(e, 0,
			  "user %u has %zu rates that nobody else has, and other users %zu: one "
			  "more would be over half of what they leave of %d",
			  user->uid, own_count, others_count, HISTOGRAM_CLOCKS - 1);
		return -EDQUOT;
	}
	/* The ticks per second of all clocks that other users use. */
	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++) {
		size_t of_clock = 0;

		for (const struct user *other = a->users; other; other = other->next)
			if (other != user && other->ticks[i])
				of_clock = other->ticks[i];
		others += of_clock;
	}
	if (others < a->limits.all_ticks && own + rate <= (a->limits.all_ticks - others) / 2)
		return 0;
	error_set(e, 0,
		  "user %u has %zu ticks per second, other users %zu, and with %zu more it would "
		  "have "
		  "over half of what they leave of %zu: profild --max-share",
		  user->uid, own, others, rate, a->limits.all_ticks);
	return -EDQUOT;
}

void account_add_clock(struct user *user, unsigned int clock, size_t rate)
{
	user->histograms[clock]++;
	user->ticks[clock] = rate;
}

void account_drop_clock(struct user *user, unsigned int clock)
{
	if (--user->histograms[clock] == 0)
		user->ticks[clock] = 0;
}

int account_charge_memory(struct accounts *a, struct user *user, int fd, size_t bytes,
			  struct error *e)
{
	struct epoll_event none = { .data.u64 = a->last_lease + 1 };

	if (a->lease_count >= 2 * a->checked_count + MIN_NEW_LEASES)
		end_leases(a);
	if (array_reserve(&a->leases, &a->lease_room, a->lease_count + 1, sizeof(*a->leases)))
		return error_no_memory(e);
	if (epoll_ctl(a->files, EPOLL_CTL_ADD, fd, &none))
		return error_set(e, errno, "cannot watch the maps of user %u", user->uid);
	a->leases[a->lease_count++] = (struct lease){
		.number = ++a->last_lease,
		.user = user,
		.bytes = bytes,
	};
	user->memory += bytes;
	return 0;
}

void account_charge_time(struct accounts *a, struct user *user, uint64_t ns)
{
	a->time_ns = MAX(a->time_ns, user->time_ns);
	user->time_ns = a->time_ns + ns;
}
