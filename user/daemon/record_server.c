// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accepts connections, and has a worker make each recording. It reads nothing that clients send, so
 * no client can make it wait: what a client does, it does to the worker, which runs as its user.
 */
#include "daemon/record_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/perf_event.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "util/array.h"
#include "util/clock.h"

/* A worker that has not ended so long after the recording must have is killed. */
#define GRACE_NS (60 * NS_PER_S)

/* How long no connection is accepted after accept(2) failed: no descriptor is left. */
#define PAUSE_MS 100

#define MINUTE_NS (60 * NS_PER_S)

struct worker_entry {
	pid_t pid;
	uid_t uid;
	uint64_t end_ns; /* when to kill it */
};

/* A user who had a recording in the last minute. */
struct record_user {
	uid_t uid;
	size_t starts;
	uint64_t since_ns;
};

struct record_server {
	int listener, signals;
	const struct record_limits *limits;
	struct worker_entry *workers;
	size_t count, room;
	struct record_user *users;
	size_t user_count, user_room;
	bool end;
};

static size_t count_of(const struct record_server *s, uid_t uid)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += s->workers[i].uid == uid;
	return count;
}

/* The user's entry, whose minute has begun anew if it was over; NULL: out of memory. */
static struct record_user *find_user(struct record_server *s, uid_t uid)
{
	uint64_t now = now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < s->user_count; i++)
		if (now - s->users[i].since_ns < MINUTE_NS)
			s->users[kept++] = s->users[i];
	s->user_count = kept;
	for (size_t i = 0; i < kept; i++)
		if (s->users[i].uid == uid)
			return &s->users[i];
	if (array_reserve(&s->users, &s->user_room, kept + 1, sizeof(*s->users)))
		return NULL;
	s->users[s->user_count++] = (struct record_user){ .uid = uid, .since_ns = now };
	return &s->users[kept];
}

/*
 * Whether the user may have one more recording. A user may have half of what the others leave, so
 * that there is always something left.
 */
static int check_limits(struct record_server *s, uid_t uid, struct error *e)
{
	const struct record_limits *limits = s->limits;
	size_t own = count_of(s, uid), others = s->count - own;
	struct record_user *user;

	if (uid == 0) {
		error_set(e, 0,
			  "root is not served: on the host it needs no help, and in a container "
			  "it must not get more rights");
		return -EPERM;
	}
	user = find_user(s, uid);
	if (!user)
		return error_no_memory(e);
	if (own >= limits->recordings)
		error_set(e, 0, "user %u has %zu recordings already (profild --max-recordings)",
			  uid, own);
	else if (others >= limits->all || own >= (limits->all - others + 1) / 2)
		error_set(e, 0,
			  "all users have %zu recordings already (profild --max-all-recordings)",
			  s->count);
	else if (user->starts >= limits->starts)
		error_set(e, 0,
			  "user %u has begun %zu recordings within a minute (profild "
			  "--max-starts)",
			  uid, user->starts);
	else {
		user->starts++;
		return 0;
	}
	return -EDQUOT;
}

/*
 * Forks the worker. It begins when the parent has closed the connection: then it alone has it, and
 * what closing it takes, if descriptors are on their way, is taken from the worker.
 */
static int start_worker(struct record_server *s, int socket, uid_t uid, struct error *e)
{
	pid_t pid, parent = getpid();
	int go[2];
	char byte;

	if (array_reserve(&s->workers, &s->room, s->count + 1, sizeof(*s->workers)))
		return error_no_memory(e);
	if (pipe(go)) /* NOLINT(android-cloexec-pipe): the worker executes nothing */
		return error_set(e, errno, "cannot make a pipe");
	pid = fork();
	if (pid == 0) {
		int status = EXIT_FAILURE;

		close(go[1]);
		close(s->listener);
		close(s->signals);
		if (read(go[0], &byte, 1) == 0)
			status = record_worker_run(socket, s->limits, parent);
		_exit(status);
	}
	close(go[0]);
	if (pid < 0) {
		close(go[1]);
		return error_set(e, errno, "cannot fork");
	}
	s->workers[s->count++] = (struct worker_entry){
		.pid = pid,
		.uid = uid,
		.end_ns = now_ns() + s->limits->duration_ns + GRACE_NS,
	};
	close(socket);
	close(go[1]);
	return 0;
}

/* Returns false if accept(2) failed for want of something. */
static bool accept_connection(struct record_server *s)
{
	int socket = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC), err;
	struct ucred who;
	socklen_t size = sizeof(who);
	struct error e;

	if (socket < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return true;
		error_set(&e, errno, "cannot accept a connection");
		log_problem(&e);
		return false;
	}
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size))
		err = error_set(&e, errno, "cannot get the credentials of the client");
	else
		err = check_limits(s, who.uid, &e) ?: start_worker(s, socket, who.uid, &e);
	if (!err)
		return true;
	log_refusal("refused a recording: %s", e.what);
	record_refuse(socket, -err, &e);
	close(socket);
	return true;
}

static void reap_workers(struct record_server *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++)
		if (waitpid(s->workers[i].pid, NULL, WNOHANG) != s->workers[i].pid)
			s->workers[kept++] = s->workers[i];
	s->count = kept;
}

/* Kills workers that are late. One that does not end by that stays on its user's account. */
static void kill_late(const struct record_server *s)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < s->count; i++) {
		if (now < s->workers[i].end_ns)
			continue;
		log_refusal("the recording for user %u does not end: killed process %d",
			    s->workers[i].uid, s->workers[i].pid);
		kill(s->workers[i].pid, SIGKILL);
		s->workers[i].end_ns = now + GRACE_NS;
	}
}

static void take_signals(struct record_server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		s->end |= info.ssi_signo != SIGCHLD;
}

int record_server_run(int listener, const struct record_limits *limits, struct error *e)
{
	struct record_server s = { .listener = listener, .limits = limits };
	sigset_t set;
	int err = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signals < 0)
		return error_set(e, errno, "cannot watch for signals");
	if (perf_event_needs_root())
		log_note("kernel.perf_event_paranoid is above 2: Debian's kernels then open perf "
			 "events for root alone, and all recordings are refused: "
			 "sysctl kernel.perf_event_paranoid=2");
	while (!s.end && !err) {
		struct pollfd fds[] = {
			{ .fd = s.signals, .events = POLLIN },
			{ .fd = s.listener, .events = POLLIN },
		};
		bool accepted;

		if (poll(fds, 2, s.count ? (int)(GRACE_NS / NS_PER_MS) : -1) < 0 && errno != EINTR)
			err = error_set(e, errno, "cannot wait for events");
		take_signals(&s);
		reap_workers(&s);
		kill_late(&s);
		if (!fds[1].revents || s.end)
			continue;
		/* A refused client's connection is closed. */
		listener_limit_waits(true);
		accepted = accept_connection(&s);
		listener_limit_waits(false);
		if (!accepted)
			poll(fds, 1, PAUSE_MS);
	}
	/* Their clients get no result. Those that do not end by this end with their parent. */
	for (size_t i = 0; i < s.count; i++)
		kill(s.workers[i].pid, SIGKILL);
	close(s.signals);
	free(s.workers);
	free(s.users);
	return err;
}
