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

#define MIB (1024 * 1024)

/* To look for leases that have ended takes time in proportion to them: not at each new one. */
#define LEAST_LEASES 64

/*
 * Memory that a client was given a descriptor of. It may keep it, or pass it on, after its
 * connection is closed. The kernel takes a file out of an epoll instance when the last descriptor
 * and the last mapping of it is gone, and /proc/self/fdinfo tells which ones are in.
 */
struct lease {
	uint64_t number;
	struct user *user;
	size_t bytes;
	bool held; /* in one look at all of them */
};

int accounts_open(struct accounts *a, const struct limits *limits, struct error *e)
{
	*a = (struct accounts){ .limits = *limits };
	a->files = epoll_create1(EPOLL_CLOEXEC);
	return a->files < 0 ? error_set(e, errno, "cannot make an epoll instance") : 0;
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

static struct user *find_user(const struct accounts *a, uid_t uid)
{
	struct user *user = a->users;

	while (user && user->uid != uid)
		user = user->next;
	return user;
}

struct user *account_enter(struct accounts *a, uid_t uid, struct error *e)
{
	struct user *user = find_user(a, uid);

	if (user && user->processes >= a->limits.processes) {
		error_set(e, 0, "user %u has %zu connections already: profild --max-processes", uid,
			  user->processes);
		return NULL;
	}
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user) {
			error_no_memory(e);
			return NULL;
		}
		user->uid = uid;
		user->next = a->users;
		a->users = user;
	}
	user->processes++;
	return user;
}

static void forget_unused(struct accounts *a)
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

static int compare_numbers(const void *one, const void *other)
{
	const struct lease *a = one, *b = other;

	return a->number < b->number ? -1 : a->number > b->number;
}

static void mark_held(struct accounts *a, FILE *info)
{
	struct lease key, *lease;
	char line[256];

	for (size_t i = 0; i < a->lease_count; i++)
		a->leases[i].held = false;
	while (fgets(line, sizeof(line), info)) {
		if (sscanf(line, "tfd: %*d events: %*x data: %" SCNx64, &key.number) != 1)
			continue;
		lease = bsearch(&key, a->leases, a->lease_count, sizeof(*lease), compare_numbers);
		if (lease)
			lease->held = true;
	}
}

/* Ends the leases whose files are gone, and forgets users that have nothing any more. */
static void end_leases(struct accounts *a)
{
	char path[64];
	FILE *info;
	size_t kept = 0;
	bool all;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", a->files);
	info = fopen(path, "re");
	if (!info)
		return; /* none is known to have ended */
	mark_held(a, info);
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
	a->last_count = a->lease_count;
	forget_unused(a);
}

void account_leave(struct accounts *a, struct user *user)
{
	user->processes--;
	if (!user->processes && !user->memory)
		forget_unused(a);
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

int account_add_clock(const struct accounts *a, struct user *user, unsigned int clock, size_t rate,
		      struct error *e)
{
	size_t others = 0;

	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++)
		others += user->ticks[i];
	if (!user->histograms[clock] && others + rate > a->limits.ticks) {
		error_set(e, 0,
			  "user %u has %zu ticks per second, and %zu more are above the limit of "
			  "%zu: profild --max-ticks",
			  user->uid, others, rate, a->limits.ticks);
		return -EDQUOT;
	}
	user->histograms[clock]++;
	user->ticks[clock] = rate;
	return 0;
}

void account_drop_clock(struct user *user, unsigned int clock)
{
	if (--user->histograms[clock] == 0)
		user->ticks[clock] = 0;
}

int account_lease(struct accounts *a, struct user *user, int fd, size_t bytes, struct error *e)
{
	struct epoll_event none = { .data.u64 = a->last_lease + 1 };

	if (a->lease_count >= 2 * a->last_count + LEAST_LEASES)
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

void account_time(struct accounts *a, struct user *user, uint64_t ns)
{
	if (a->time_ns < user->time_ns)
		a->time_ns = user->time_ns;
	user->time_ns = a->time_ns + ns;
}
