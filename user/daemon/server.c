// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/cpus.h"
#include "daemon/client.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"

/* How long requests are served until new events are looked for. Bound: pace. */
#define SERVE_NS NS_PER_MS

/* How many connections are accepted per event. Bound: pace. */
#define MAX_ACCEPTED 64

/*
 * Pause after accept(2) failed, mostly with EMFILE: no descriptors are left.
 * Bound: machine: descriptors: time in which nothing is accepted after accept(2) failed; then:
 * clients wait; again: after that time; share: none; seen: the log.
 */
#define PAUSE_NS (100 * NS_PER_MS)

/* A descriptor in the epoll instance. */
struct watch {
	enum watch_kind {
		WATCH_SIGNALS,
		WATCH_LISTENER,
		WATCH_SOCKET,
		WATCH_PROCESS,
	} kind;
	struct connection *connection; /* of the last two */
};

struct connection {
	struct client *client; /* NULL: closed, to be freed after the current events */
	bool ended;	       /* by the client: to be closed when its user is served */
	struct watch socket, process;
	struct connection *previous, *next;
};

struct server {
	int epoll, listener;
	struct watch listener_watch, signals_watch;
	struct histograms *histograms;
	struct accounts accounts;
	struct connection *connections, *closed;
	size_t connection_count;
	struct epoll_event *events;
	struct connection **ready; /* connections with a request, or whose client has ended */
	size_t event_room, ready_room, ready_count;
	struct profild_request *request;
	uint64_t pause_end_ns; /* when to accept again; 0: now */
	uint64_t next_look_ns; /* when to look at the clocks */
	bool end;
};

static int add_watch(const struct server *s, int fd, struct watch *watch, struct error *e)
{
	struct epoll_event event = {
		.events = EPOLLIN | (watch->kind == WATCH_SOCKET ? EPOLLRDHUP : 0),
		.data.ptr = watch,
	};

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event))
		return error_set(e, errno, "cannot watch a descriptor");
	return 0;
}

static void close_connection(struct server *s, struct connection *connection)
{
	if (!connection->client)
		return;
	client_free(connection->client, &s->accounts);
	connection->client = NULL;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		s->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	connection->next = s->closed;
	s->closed = connection;
	s->connection_count--;
}

static void free_closed(struct server *s)
{
	struct connection *connection;

	while ((connection = s->closed)) {
		s->closed = connection->next;
		free(connection);
	}
}

/* Takes over an accepted connection. */
static int add_connection(struct server *s, int socket, struct error *e)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	size_t count = s->connection_count + 1;
	int err;

	/* Each connection has two descriptors, and all may have events at once. */
	if (!connection || array_reserve(&s->ready, &s->ready_room, 2 * count, sizeof(*s->ready)) ||
	    array_reserve(&s->events, &s->event_room, 2 * count + 2, sizeof(*s->events))) {
		free(connection);
		close(socket);
		return error_no_memory(e);
	}
	err = client_open(socket, s->histograms, &s->accounts, &connection->client, e);
	if (err) {
		free(connection);
		return err;
	}
	connection->next = s->connections;
	if (connection->next)
		connection->next->previous = connection;
	s->connections = connection;
	s->connection_count++;
	connection->socket = (struct watch){ WATCH_SOCKET, connection };
	connection->process = (struct watch){ WATCH_PROCESS, connection };
	err = add_watch(s, connection->client->socket, &connection->socket, e);
	err = err ?: add_watch(s, connection->client->peer.pidfd, &connection->process, e);
	if (err)
		close_connection(s, connection);
	return err;
}

static void set_listening(struct server *s, bool on)
{
	struct epoll_event event = {
		.events = on ? EPOLLIN : 0,
		.data.ptr = &s->listener_watch,
	};

	epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &event);
	s->pause_end_ns = on ? 0 : now_ns() + PAUSE_NS;
}

static void accept_connections(struct server *s)
{
	struct error e;
	int code = 0;

	for (int i = 0; i < MAX_ACCEPTED; i++) {
		int socket = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		int err;

		if (socket < 0) {
			code = errno;
			break;
		}
		err = add_connection(s, socket, &e);
		if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
			log_problem(&e);
		else if (err) /* the client has been sent the reason already */
			log_refusal("refused a connection: %s", e.what);
	}
	if (!code || code == EAGAIN || code == EINTR || code == ECONNABORTED)
		return;
	error_set(&e, code, "cannot accept a connection");
	if (code == EMFILE)
		error_hint(&e, "raise profild's limit of descriptors: LimitNOFILE= in its unit, "
			       "or ulimit -Hn");
	log_problem(&e);
	set_listening(s, false);
}

/* Sorts closed connections last, the others by the time that profild has spent on their users. */
ORDER(compare_service, struct connection *const,
      (*a)->client && (*b)->client
	      ? COMPARE((*a)->client->user->time_ns, (*b)->client->user->time_ns)
	      : COMPARE(!(*a)->client, !(*b)->client))

/* Waits for events and serves them. */
static int take_events(struct server *s, struct error *e)
{
	uint64_t now = now_ns(), next_ns = s->pause_end_ns ?: UINT64_MAX, end_ns;
	struct error problem;
	int count;

	if (now >= next_ns) {
		set_listening(s, true);
		next_ns = UINT64_MAX;
	}
	if (histograms_need_look(s->histograms)) {
		if (now >= s->next_look_ns) {
			s->next_look_ns = now + CPUS_LOOK_NS;
			if (histograms_look(s->histograms, &problem))
				log_problem(&problem);
		}
		next_ns = MIN(s->next_look_ns, next_ns);
	}
	count = epoll_wait(s->epoll, s->events, s->event_room,
			   next_ns < UINT64_MAX ? (int)((next_ns - now) / NS_PER_MS) + 1 : -1);
	if (count < 0 && errno != EINTR)
		return error_set(e, errno, "cannot wait for events");
	listener_limit_waits(true);
	for (int i = 0; i < count; i++) {
		const struct watch *watch = s->events[i].data.ptr;
		struct connection *connection = watch->connection;

		switch (watch->kind) {
		case WATCH_SIGNALS:
			s->end = true;
			break;
		case WATCH_LISTENER:
			accept_connections(s);
			break;
		case WATCH_PROCESS:
			connection->ended = true;
			s->ready[s->ready_count++] = connection;
			break;
		case WATCH_SOCKET:
			connection->ended |=
				s->events[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR);
			s->ready[s->ready_count++] = connection;
			break;
		}
	}
	/*
	 * Serves users first that profild has spent the least time on, which includes the time for
	 * closing their connections. What is left after SERVE_NS is reported as ready again,
	 * together with requests that came meanwhile.
	 */
	end_ns = now_ns() + SERVE_NS;
	qsort(s->ready, s->ready_count, sizeof(*s->ready), compare_service);
	for (size_t i = 0; i < s->ready_count && (i == 0 || now_ns() < end_ns); i++) {
		struct connection *connection = s->ready[i];
		struct client *client = connection->client;
		uint64_t start_ns = now_ns();
		int err = 0;

		if (client && !connection->ended) {
			err = client_serve(client, &s->accounts, s->request, &problem);
			account_charge_time(&s->accounts, client->user, now_ns() - start_ns);
		}
		if (err)
			log_detail("closed the connection of process %d of user %u: %s",
				   client->peer.pid, client->user->uid, problem.what);
		if (err || connection->ended)
			close_connection(s, connection);
	}
	s->ready_count = 0;
	listener_limit_waits(false);
	free_closed(s);
	return 0;
}

int server_run(int listener, int signals, struct histograms *histograms,
	       const struct limits *limits, struct error *e)
{
	struct server s = {
		.listener = listener,
		.listener_watch = { .kind = WATCH_LISTENER },
		.signals_watch = { .kind = WATCH_SIGNALS },
		.histograms = histograms,
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.request = malloc(REQUEST_SIZE),
	};
	int err = s.epoll < 0 ? error_set(e, errno, "cannot create an epoll instance") : 0;

	err = accounts_open(&s.accounts, limits, e) ?: err;
	if (!s.request || array_reserve(&s.events, &s.event_room, 2, sizeof(*s.events)))
		err = error_no_memory(e);
	err = err ?: add_watch(&s, signals, &s.signals_watch, e);
	err = err ?: add_watch(&s, listener, &s.listener_watch, e);
	while (!err && !s.end)
		err = take_events(&s, e);
	listener_limit_waits(true); /* closing a socket can wait, too */
	while (s.connections)
		close_connection(&s, s.connections);
	free_closed(&s);
	accounts_close(&s.accounts);
	free(s.request);
	free(s.events);
	free(s.ready);
	if (s.epoll >= 0)
		close(s.epoll);
	listener_limit_waits(false);
	return err;
}
