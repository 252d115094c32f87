// SPDX-License-Identifier: GPL-2.0-only
/* Histograms of several processes by one program and one set of clocks: parent and children. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/histograms.h"

/* The descriptors: of these, then of the followers of processes, then of each clock. */
enum {
	ENTRIES,
	CLIENTS,
	MEMBERS,
	NUMBERS,
	PROGRAM,
	FIRST_LINK,
};

#define MOST_FDS (FIRST_LINK + MEMBERS_PROGRAMS + HISTOGRAM_CLOCKS)

struct message {
	uint32_t most, clock_count;
	uint32_t pid_namespace; /* whose numbers the program goes by */
	bool has_tick;
	uint64_t periods_ns[HISTOGRAM_CLOCKS];
};

/*
 * An array of perf events holds them open as long as there is anybody who has it, however many CPUs
 * there are.
 */
static int keep_events(struct histogram_clock *clock)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_PRESERVE_ELEMS);
	int err = 0,
	    map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "profil_clock", sizeof(uint32_t),
				 sizeof(uint32_t), clock->events.count, &options);

	if (map < 0)
		return map;
	for (uint32_t i = 0; i < clock->events.count && !err; i++)
		err = bpf_map_update_elem(map, &i, &clock->events.events[i].fd, BPF_ANY);
	if (err)
		close(map);
	else
		clock->kept = map;
	return err;
}

/* The clocks that are open. Returns how many descriptors there are in all, or a negative errno. */
static int add_clocks(struct histograms *all, struct message *message, int *fds, int count)
{
	if (all->has_tick) {
		message->periods_ns[message->clock_count++] = all->clocks[0].period_ns;
		fds[count++] = all->tick.link;
		return count;
	}
	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++) {
		struct histogram_clock *clock = &all->clocks[i];
		int err = clock->period_ns && !clock->kept ? keep_events(clock) : 0;

		if (err)
			return err;
		if (!clock->period_ns)
			continue;
		message->periods_ns[message->clock_count++] = clock->period_ns;
		fds[count++] = clock->kept;
	}
	return count;
}

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

int histograms_send(struct histograms *all, int socket)
{
	struct message what = {
		.most = all->most,
		.pid_namespace = members_pid_namespace(),
		.has_tick = all->has_tick,
	};
	union control control = { 0 };
	struct iovec part = { &what, sizeof(what) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control };
	int fds[MOST_FDS], count = FIRST_LINK;

	fds[ENTRIES] = all->profil.entries;
	fds[CLIENTS] = all->profil.clients;
	fds[MEMBERS] = all->members.map;
	fds[NUMBERS] = all->members.number_map;
	fds[PROGRAM] = all->program;
	for (size_t i = 0; i < MEMBERS_PROGRAMS; i++)
		fds[count++] = all->members.links[i];
	count = add_clocks(all, &what, fds, count);
	if (count < 0)
		return count;
	message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static struct histograms *adopt(const struct message *what, const int *fds)
{
	struct histograms *all = calloc(1, sizeof(*all));
	const int *clock_fds = fds + FIRST_LINK + MEMBERS_PROGRAMS;

	if (!all)
		return NULL;
	all->members.number_map = fds[NUMBERS];
	if (members_map_numbers(&all->members)) {
		free(all);
		return NULL;
	}
	all->most = what->most;
	all->lowest = 1;
	all->profil.entries = fds[ENTRIES];
	all->profil.clients = fds[CLIENTS];
	all->members.map = fds[MEMBERS];
	all->program = fds[PROGRAM];
	all->members.link_count = MEMBERS_PROGRAMS;
	memcpy(all->members.links, fds + FIRST_LINK, sizeof(all->members.links));
	all->is_adopted = true;
	all->has_tick = what->has_tick;
	for (uint32_t i = 0; i < what->clock_count; i++) {
		all->clocks[i].period_ns = what->periods_ns[i];
		if (what->has_tick)
			all->tick.link = clock_fds[i];
		else
			all->clocks[i].kept = clock_fds[i];
	}
	return all;
}

static size_t descriptors_of(struct msghdr *message, int *fds)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);
	size_t size;

	if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
		return 0;
	size = control->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(control), size);
	return size / sizeof(*fds);
}

int histograms_receive(int socket, struct histograms **all, struct error *e)
{
	struct message what;
	union control control;
	struct iovec part = { &what, sizeof(what) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[MOST_FDS];
	size_t count;

	if (size < 0)
		return error_set(e, errno, "nothing was passed on");
	count = descriptors_of(&message, fds);
	*all = NULL;
	if (size == sizeof(what) && what.pid_namespace == members_pid_namespace() &&
	    what.clock_count <= HISTOGRAM_CLOCKS &&
	    count == FIRST_LINK + MEMBERS_PROGRAMS + what.clock_count)
		*all = adopt(&what, fds);
	if (*all)
		return 0;
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	return error_set(e, EPROTO, "not all was passed on");
}
