// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/client.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/histogram.h"
#include "daemon/listener.h"
#include "daemon/log.h"

/* A client that goes on sending what means nothing is hung up on. */
#define MOST_MISTAKES 16

/* What a histogram takes beside its cells: the program, the ranges, what is held here of it. */
#define HISTOGRAM_BYTES (128 * 1024)

/* --- Replies --- */

/*
 * Sends a reply, with two descriptors unless they are NULL. Never waits: each client has room for
 * a reply, since it has read the one before.
 */
static int send_reply(int socket, int code, const struct error *e, const int *fds)
{
	struct profild_reply reply = { .version = PROFILD_VERSION, .error = code };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { &reply, sizeof(reply) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (code)
		snprintf(reply.message, sizeof(reply.message), "%.159s%s%.80s", e->what,
			 e->mend[0] ? "; " : "", e->mend);
	if (fds) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.space);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, 2 * sizeof(int));
	}
	if (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

/* --- Connections --- */

static int begin(struct client *client, struct accounts *accounts, struct error *e)
{
	int on = 1, err;

	err = peer_open(client->socket, &client->peer, e);
	if (err)
		return err;
	client->user = account_enter(accounts, client->peer.uid, e);
	if (!client->user) {
		close(client->peer.pidfd);
		return -EDQUOT;
	}
	/* It may have connected to a socket that was passed on, before profild had it. */
	listener_refuse_descriptors(client->socket);
	/* Messages that are sent from now on have credentials: the reply asks for the first. */
	if (setsockopt(client->socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		err = error_set(e, errno, "cannot ask for credentials");
	else
		err = send_reply(client->socket, 0, NULL, NULL);
	if (err) {
		account_leave(accounts, client->user);
		close(client->peer.pidfd);
	}
	return err;
}

int client_open(int socket, struct accounts *accounts, struct client **out, struct error *e)
{
	struct client *client = calloc(1, sizeof(*client));
	int err;

	if (client) {
		client->socket = socket;
		err = begin(client, accounts, e);
	} else {
		err = error_no_memory(e);
	}
	if (!err) {
		*out = client;
		return 0;
	}
	send_reply(socket, -err, e, NULL);
	close(socket);
	free(client);
	return err;
}

/* --- The histogram --- */

static void detach(struct client *client)
{
	if (!client->histogram)
		return;
	histogram_free(client->histogram);
	client->histogram = NULL;
	client->user->events -= client->events;
	client->user->ticks -= client->ticks;
	client->events = client->ticks = 0;
	log_detail("process %d of user %u is not counted any more", client->peer.pid,
		   client->peer.uid);
}

static void count_events(struct client *client)
{
	size_t events = histogram_events(client->histogram);

	client->user->events += events - client->events;
	client->events = events;
}

/* Why there is no histogram, for the client; and for the log, if it is profild's affair. */
static int explain(const struct client *client, int err, struct error *e)
{
	switch (-err) {
	case EDQUOT:
		error_mend(e, "profild --max-events");
		return err;
	case ESRCH:
	case EINTR:  /* it becomes another program, and takes long to */
	case EAGAIN: /* it makes threads too fast */
	case EINVAL: /* more ticks than the kernel allows */
		return err;
	}
	log_problem(e);
	if (err == -EMFILE || err == -ENFILE) {
		error_set(e, 0, "profild has no descriptor left for process %d", client->peer.pid);
		return -EAGAIN;
	}
	e->mend[0] = '\0'; /* is for who runs profild */
	return err;
}

/* Both maps have the user's memory charged until nobody has them any more. */
static int lease_maps(struct client *client, struct accounts *accounts,
		      const struct histogram *histogram, size_t cells_bytes, struct error *e)
{
	int err = account_lease(accounts, client->user, histogram_cells_fd(histogram), cells_bytes,
				e);

	return err
		       ?: account_lease(accounts, client->user, histogram_state_fd(histogram),
					HISTOGRAM_BYTES, e);
}

static int open_histogram(struct client *client, struct accounts *accounts,
			  const struct profild_request *request, struct histogram **histogram,
			  struct error *e)
{
	size_t cells_bytes = request->cell_count * sizeof(uint64_t);
	struct histogram_options options = {
		.pid = client->peer.pid,
		.frequency = request->frequency,
		.ranges = request->ranges,
		.range_count = request->range_count,
		.cell_count = request->cell_count,
	};
	/* The histogram that it replaces ends before this one begins. */
	size_t others = client->user->ticks - client->ticks;
	int err = account_check_memory(accounts, client->user, cells_bytes + HISTOGRAM_BYTES, e);

	/* A thread takes two: one that ticks, one that keeps it apart from its children. */
	err = err ?: account_check_events(accounts, client->user, 2, e);
	err = err ?: account_check_ticks(accounts, client->user, others, request->frequency, e);
	if (!err && request->except)
		err = peer_thread(&client->peer, request->except, &options.except, e);
	if (err)
		return err;
	options.most_events = (accounts->limits.events - client->user->events) / 2;
	err = histogram_start(&options, histogram, e);
	if (err)
		return explain(client, err, e);
	err = lease_maps(client, accounts, *histogram, cells_bytes, e);
	/* Only now it is sure what program it attached to: none later has its events. */
	err = err ?: peer_check(&client->peer, e);
	if (err)
		histogram_free(*histogram);
	return err;
}

static int start(struct client *client, struct accounts *accounts,
		 const struct profild_request *request, struct error *e)
{
	struct histogram *histogram;
	int err = open_histogram(client, accounts, request, &histogram, e);

	if (err)
		return err; /* the one before goes on */
	if (client->histogram)
		histogram_stop(client->histogram);
	histogram_enable(histogram);
	detach(client);
	client->histogram = histogram;
	client->ticks = request->frequency;
	client->user->ticks += client->ticks;
	count_events(client);
	log_detail("process %d of user %u is counted: %u Hz, %u ranges, %llu cells, %zu perf "
		   "events",
		   client->peer.pid, client->peer.uid, request->frequency, request->range_count,
		   (unsigned long long)request->cell_count, client->events);
	return 0;
}

static int rescan(struct client *client, struct accounts *accounts, struct error *e)
{
	size_t others = client->user->events - client->events;
	int err = account_check_events(accounts, client->user, 1, e);

	err = err ?: peer_check(&client->peer, e);
	if (err)
		return err;
	err = histogram_rescan(client->histogram, accounts->limits.events - others, e);
	count_events(client);
	return err ? explain(client, err, e) : 0;
}

static void stop(struct client *client)
{
	histogram_stop(client->histogram);
	detach(client);
}

/* --- Requests --- */

/*
 * Returns the size of a message, which may be larger than the buffer, or -errno. There is room for
 * the credentials alone: descriptors that came with it are not received, which is -EPROTO. *sender
 * is 0 when nobody has sent anything: the end.
 */
static ssize_t receive(const struct client *client, struct profild_request *buffer, pid_t *sender)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec part = { buffer, REQUEST_SIZE };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t size =
		recvmsg(client->socket, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *first = CMSG_FIRSTHDR(&message);
	struct ucred who;

	if (size < 0)
		return -errno;
	if (message.msg_flags & MSG_CTRUNC)
		return -EPROTO;
	*sender = 0;
	if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_CREDENTIALS &&
	    first->cmsg_len == CMSG_LEN(sizeof(who))) {
		memcpy(&who, CMSG_DATA(first), sizeof(who));
		*sender = who.pid;
	}
	return size;
}

static bool has_unread_reply(const struct client *client)
{
	int unread;

	return ioctl(client->socket, SIOCOUTQ, &unread) || unread > 0;
}

/* Whether the request is one that can be carried out. */
static int check(const struct client *client, pid_t sender, const struct profild_request *request,
		 size_t size, struct error *e)
{
	int err;

	if (sender != client->peer.pid) {
		error_set(e, 0, "process %d cannot ask on the connection of process %d", sender,
			  client->peer.pid);
		return -EPERM;
	}
	err = request_check(request, size, e);
	if (!err && request->type != PROFILD_START && !client->histogram)
		err = error_set(e, 0, "nothing is counted on this connection");
	return err;
}

static int carry_out(struct client *client, struct accounts *accounts,
		     const struct profild_request *request, struct error *e)
{
	switch (request->type) {
	case PROFILD_START:
		return start(client, accounts, request, e);
	case PROFILD_RESCAN:
		return rescan(client, accounts, e);
	default:
		stop(client);
		return 0;
	}
}

static int answer(const struct client *client, const struct profild_request *request, int code,
		  const struct error *why, struct error *e)
{
	int fds[2], err;
	bool started = !code && request->type == PROFILD_START;

	if (started) {
		fds[0] = histogram_state_fd(client->histogram);
		fds[1] = histogram_cells_fd(client->histogram);
	}
	err = send_reply(client->socket, code, why, started ? fds : NULL);
	return err ? error_set(e, -err, "cannot reply") : 0;
}

int client_serve(struct client *client, struct accounts *accounts, struct profild_request *buffer,
		 struct error *e)
{
	struct error why;
	pid_t sender;
	ssize_t size = receive(client, buffer, &sender);
	int err;

	if (size == -EAGAIN)
		return 0;
	if (size < 0)
		return error_set(e, -size, "cannot receive");
	if (!sender)
		return error_set(e, 0, "it hung up");
	if (has_unread_reply(client))
		return error_set(e, 0, "it did not read the reply before");
	err = check(client, sender, buffer, size, &why);
	if (err && ++client->mistakes > MOST_MISTAKES)
		return error_set(e, 0, "too many mistakes, the last: %.200s", why.what);
	err = err ?: carry_out(client, accounts, buffer, &why);
	return answer(client, buffer, -err, &why, e);
}

void client_free(struct client *client, struct accounts *accounts)
{
	detach(client);
	account_leave(accounts, client->user);
	close(client->peer.pidfd);
	close(client->socket);
	free(client);
}
