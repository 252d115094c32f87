// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accepts connections, and has a worker make each recording. It reads nothing that clients send, so
 * no client can make it wait: what a client does, it does to the worker, which runs as its user.
 *
 * A client takes nothing of the others' before it is known to have a right to it. Its connection
 * waits for the request; then a worker checks that, and only then the client gets a place among the
 * recordings. All three are bounded in number and time, and shared by persons: struct peer.
 */
#include "daemon/record_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/perf_event.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/peer.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * Connections at once without a request. For one more, who has the most loses the oldest.
 * Bound: users: connections without a request; then: who has the most loses the oldest; again: at
 * once; share: equal parts of users; seen: in the client's error, and the log.
 */
#define WAITING_MAX 128

/*
 * How long a client may take to send its request.
 * Bound: users: time for a client to send its request; then: the connection is closed; again: on
 * another connection; share: the connection's own; seen: in the client's error.
 */
#define REQUEST_NS (10 * NS_PER_S)

/*
 * How long no connection is accepted after accept(2) failed: no descriptor is left.
 * Bound: machine: descriptors: time in which nothing is accepted after accept(2) failed; then:
 * clients wait; again: after that time; share: none; seen: the log.
 */
#define PAUSE_MS 100

/*
 * Bound: users: time for --max-starts of a user; then: the recording is refused; again: after a
 * minute; share: the user's own; seen: in the client's error, and the log.
 */
#define MINUTE_NS (60 * NS_PER_S)

enum stage {
	WAITS,	 /* for the request */
	CHECKS,	 /* its worker checks the request */
	RECORDS, /* it has a place */
};

struct record_client {
	struct peer peer; /* its pidfd is open while it waits */
	enum stage stage;
	int socket; /* the connection, while it waits; else what connects its worker; or -1 */
	uint64_t until_ns; /* while it waits */
	pid_t worker;
};

/* A person who had a recording in the last minute. */
struct record_user {
	uint64_t person;
	size_t starts;
	uint64_t since_ns;
};

struct record_server {
	int listener, signals;
	const struct record_limits *limits;
	struct record_client *clients; /* the oldest first */
	size_t count, room;
	struct pollfd *polled; /* room for two more than clients */
	size_t polled_room;
	struct record_user *users;
	size_t user_count, user_room;
	bool end;
};

/* How many of a person's, or with `others` of all others', are at a stage. */
static size_t count_of(const struct record_server *s, enum stage stage, uint64_t person,
		       bool others)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += s->clients[i].stage == stage &&
			 (s->clients[i].peer.person == person) != others;
	return count;
}

/* The person's entry, whose minute has begun anew if it was over; NULL: out of memory. */
static struct record_user *find_user(struct record_server *s, uint64_t person)
{
	uint64_t now = now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < s->user_count; i++)
		if (now - s->users[i].since_ns < MINUTE_NS)
			s->users[kept++] = s->users[i];
	s->user_count = kept;
	for (size_t i = 0; i < kept; i++)
		if (s->users[i].person == person)
			return &s->users[i];
	return array_add(s->users, s->user_count, s->user_room,
			 (struct record_user){ .person = person, .since_ns = now })
		       ? NULL
		       : &s->users[kept];
}

/*
 * Whether a person may have one more at a stage. One may have half of what the others leave, so
 * that there is always something left.
 */
static int check_share(const struct record_server *s, enum stage stage, const struct peer *peer,
		       struct error *e)
{
	const char *what = stage == CHECKS ? "requests that are checked" : "recordings";
	const struct record_limits *limits = s->limits;
	size_t own = count_of(s, stage, peer->person, false);
	size_t others = count_of(s, stage, peer->person, true);

	if (own >= limits->recordings)
		error_set(e, 0, "user %u has %zu %s already (profild --max-recordings)",
			  peer_person_uid(peer), own, what);
	else if (others >= limits->all || own >= (limits->all - others + 1) / 2)
		error_set(e, 0, "all users have %zu %s already (profild --max-all-recordings)",
			  own + others, what);
	else
		return 0;
	return -EDQUOT;
}

/* Closes the connection, with what is on its way there, or the worker's. */
static void close_socket(struct record_client *client)
{
	if (client->socket >= 0)
		close(client->socket);
	client->socket = -1;
}

static void remove_client(struct record_server *s, struct record_client *client)
{
	close_socket(client);
	if (client->stage == WAITS)
		close(client->peer.pidfd);
	s->count--;
	memmove(client, client + 1, (s->clients + s->count - client) * sizeof(*client));
}

static void refuse(int socket, int err, const struct error *e)
{
	char byte;

	log_refusal("refused a recording: %s", e->what);
	record_refuse(socket, -err, e);
	/* Receives the request: closing a socket with an unread one would lose the reply. */
	recv(socket, &byte, 1, MSG_DONTWAIT);
}

/*
 * Forks the worker. It begins when the parent has closed the connection: then it alone has it, and
 * what closing it takes, if descriptors are on their way, is taken from the worker.
 */
static int start_worker(const struct record_server *s, struct record_client *client,
			struct error *e)
{
	int pair[2];
	char byte;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return error_set(e, errno, "cannot create a socket");
	pid = fork();
	if (pid == 0) {
		int status = EXIT_FAILURE;

		close(s->listener);
		close(s->signals);
		close(pair[0]);
		for (size_t i = 0; i < s->count; i++) {
			if (&s->clients[i] == client)
				continue;
			close_socket(&s->clients[i]);
			if (s->clients[i].stage == WAITS)
				close(s->clients[i].peer.pidfd);
		}
		if (recv(pair[1], &byte, 1, 0) == 1)
			status = record_worker_run(client->socket, pair[1], &client->peer,
						   s->limits);
		_exit(status);
	}
	close(pair[1]);
	if (pid < 0) {
		int code = errno;

		close(pair[0]);
		return error_set(e, code, "cannot fork");
	}
	close(client->socket);
	close(client->peer.pidfd);
	client->stage = CHECKS;
	client->worker = pid;
	client->socket = pair[0];
	send(client->socket, "", 1, MSG_NOSIGNAL);
	return 0;
}

/* A message came on a connection. Returns false: it is closed. */
static bool take_request(struct record_server *s, struct record_client *client)
{
	struct record_user *user;
	struct error e;
	int err;

	err = check_share(s, RECORDS, &client->peer, &e);
	err = err ?: check_share(s, CHECKS, &client->peer, &e);
	user = err ? NULL : find_user(s, client->peer.person);
	if (!err && !user)
		err = error_no_memory(&e);
	/* Of a request that fails, too: each takes a process. */
	if (!err && user->starts >= s->limits->starts) {
		error_set(&e, 0,
			  "user %u has begun %zu recordings within a minute (profild --max-starts)",
			  peer_person_uid(&client->peer), user->starts);
		err = -EDQUOT;
	}
	err = err ?: start_worker(s, client, &e);
	if (err) {
		refuse(client->socket, err, &e);
		return false;
	}
	user->starts++;
	return true;
}

/*
 * A worker has checked its client's request, which then gets a place, or not; or it reports why
 * there is no recording: here, so that there is one limit for what is logged.
 */
static void take_report(struct record_server *s, struct record_client *client)
{
	struct record_verdict verdict;

	if (recv(client->socket, &verdict, sizeof(verdict), MSG_DONTWAIT) != sizeof(verdict)) {
		close_socket(client); /* it has ended */
	} else if (verdict.err) {
		log_refusal("no recording for process %d of user %u: %s", client->peer.pid,
			    client->peer.uid, verdict.why.what);
	} else if (client->stage == CHECKS) {
		verdict.err = check_share(s, RECORDS, &client->peer, &verdict.why);
		if (!verdict.err)
			client->stage = RECORDS;
		send(client->socket, &verdict, sizeof(verdict), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

/* Makes room for a connection of a person, at the expense of who has the most. */
static int make_room(struct record_server *s, const struct peer *peer, struct error *e)
{
	size_t own = count_of(s, WAITS, peer->person, false), most = own;
	struct record_client *loses = NULL;

	if (own + count_of(s, WAITS, peer->person, true) < WAITING_MAX)
		return 0;
	for (size_t i = 0; i < s->count; i++) {
		size_t count;

		if (s->clients[i].stage != WAITS)
			continue;
		count = count_of(s, WAITS, s->clients[i].peer.person, false);
		if (count > most) {
			most = count;
			loses = &s->clients[i];
		}
	}
	error_set(e, 0, "%d connections wait for a request, %zu of them for one of user %u",
		  WAITING_MAX, most, peer_person_uid(loses ? &loses->peer : peer));
	if (!loses)
		return -EAGAIN;
	refuse(loses->socket, -EAGAIN, e);
	remove_client(s, loses);
	return 0;
}

/* Returns false if accept(2) failed for want of something. */
static bool accept_connection(struct record_server *s)
{
	int socket = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC), err;
	struct record_client client = {
		.stage = WAITS,
		.socket = socket,
		.until_ns = now_ns() + REQUEST_NS,
	};
	struct error e;

	if (socket < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return true;
		error_set(&e, errno, "cannot accept a connection");
		log_problem(&e);
		return false;
	}
	err = peer_open(socket, &client.peer, &e);
	if (err)
		goto refuse;
	if (client.peer.uid == 0) {
		error_set(&e, 0,
			  "root is not served: on the host it needs no help, and in a container "
			  "it must not get more rights");
		err = -EPERM;
	} else if (array_reserve(&s->clients, &s->room, s->count + 1, sizeof(*s->clients)) ||
		   array_reserve(&s->polled, &s->polled_room, s->count + 3, sizeof(*s->polled))) {
		err = error_no_memory(&e);
	}
	err = err ?: make_room(s, &client.peer, &e);
	err = err ?: record_greet(socket, &e);
	if (!err) {
		s->clients[s->count++] = client;
		return true;
	}
	close(client.peer.pidfd);
refuse:
	refuse(socket, err, &e);
	close(socket);
	return true;
}

/* Waits for events and serves them. */
static int take_events(struct record_server *s, struct error *e)
{
	size_t count = s->count;
	struct signalfd_siginfo info;
	uint64_t now = now_ns();
	bool accepted = true;
	int wait_ms = -1;

	s->polled[0] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	s->polled[1] = (struct pollfd){ .fd = s->listener, .events = POLLIN };
	for (size_t i = 0; i < count; i++) {
		const struct record_client *client = &s->clients[i];
		uint64_t left_ns = client->until_ns > now ? client->until_ns - now : 0;

		s->polled[2 + i] = (struct pollfd){ .fd = client->socket, .events = POLLIN };
		if (client->stage == WAITS && wait_ms < 0) /* the oldest */
			wait_ms = left_ns ? left_ns / NS_PER_MS + 1 : 0;
	}
	if (poll(s->polled, 2 + count, wait_ms) < 0) {
		if (errno != EINTR)
			return error_set(e, errno, "cannot wait for events");
		return 0;
	}
	listener_limit_waits(true); /* a refused client's connection is closed */
	for (size_t i = count; i-- > 0;) {
		struct record_client *client = &s->clients[i];
		short events = s->polled[2 + i].revents;
		bool ends = events & (POLLHUP | POLLERR);
		struct error why;

		if (client->stage != WAITS) {
			if (events)
				take_report(s, client);
			continue;
		}
		if (!ends && events) {
			ends = !take_request(s, client);
		} else if (!ends && now_ns() >= client->until_ns) {
			refuse(client->socket, error_set(&why, ETIMEDOUT, "no request came"), &why);
			ends = true;
		}
		if (ends)
			remove_client(s, client);
	}
	if (s->polled[0].revents) {
		while (read(s->signals, &info, sizeof(info)) == sizeof(info))
			s->end |= info.ssi_signo != SIGCHLD;
		/* A worker that does not end keeps its place: see record_worker_run(). */
		for (size_t i = s->count; i-- > 0;)
			if (s->clients[i].stage != WAITS &&
			    waitpid(s->clients[i].worker, NULL, WNOHANG) == s->clients[i].worker)
				remove_client(s, &s->clients[i]);
	}
	if (s->polled[1].revents && !s->end)
		accepted = accept_connection(s);
	listener_limit_waits(false);
	if (!accepted)
		poll(s->polled, 1, PAUSE_MS);
	return 0;
}

int record_server_run(int listener, int signals, const struct record_limits *limits,
		      struct error *e)
{
	struct record_server s = { .listener = listener, .signals = signals, .limits = limits };
	int err = 0;

	if (perf_event_needs_root())
		log_note("kernel.perf_event_paranoid is above 2: Debian's kernels then open perf "
			 "events for root alone, and all recordings are refused: "
			 "sysctl kernel.perf_event_paranoid=2");
	if (array_reserve(&s.polled, &s.polled_room, 2, sizeof(*s.polled)))
		err = error_no_memory(e);
	while (!s.end && !err)
		err = take_events(&s, e);
	/* Workers see that profild has closed its end, and end; their clients get no result. */
	listener_limit_waits(true);
	while (s.count)
		remove_client(&s, &s.clients[s.count - 1]);
	listener_limit_waits(false);
	free(s.clients);
	free(s.polled);
	free(s.users);
	return err;
}
