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
#include "util/clock.h"

/* A client that goes on sending what means nothing is hung up on. */
#define MOST_MISTAKES 16

/* What a histogram takes beside its pages: measured, what is held of it here and in the kernel. */
#define HISTOGRAM_BYTES (16 * 1024)

/* --- Replies --- */

/*
 * Sends a reply, with what a client needs of a histogram unless that is NULL. Never waits: each
 * client has room for a reply, since it has read the one before.
 */
static int send_reply(int socket, int code, const struct error *e,
		      const struct histogram *histogram)
{
	struct profild_reply reply = { .version = PROFILD_VERSION, .error = code };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { &reply, sizeof(reply) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (code)
		snprintf(reply.message, sizeof(reply.message), "%.159s%s%.75s", e->what,
			 e->mend[0] ? "; " : "", e->mend);
	if (histogram) {
		int fd = histogram_fd(histogram);

		reply.period_ns = histogram_period_ns(histogram);
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.space);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
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

int client_open(int socket, struct histograms *histograms, struct accounts *accounts,
		struct client **out, struct error *e)
{
	struct client *client = calloc(1, sizeof(*client));
	int err;

	if (client) {
		client->socket = socket;
		client->histograms = histograms;
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
	account_drop_clock(client->user, histogram_clock(client->histogram));
	histogram_free(client->histogram);
	client->histogram = NULL;
	log_detail("process %d of user %u is not counted any more", client->peer.pid,
		   client->peer.uid);
}

/* Why there is no histogram, for the client; and for the log, if it is profild's affair. */
static int explain(const struct client *client, int err, struct error *e)
{
	switch (-err) {
	case ESRCH:
	case EAGAIN: /* there are too many, of histograms or of rates */
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

/* The scheduler's tick has a rate of its own. */
static size_t rate_of(const struct client *client, const struct histogram *histogram,
		      unsigned int frequency)
{
	uint64_t period_ns = histogram_period_ns(histogram);

	if (*histograms_without_events(client->histograms))
		return (NS_PER_S + period_ns / 2) / period_ns;
	return frequency;
}

static int replace(struct client *client, const struct accounts *accounts,
		   struct histogram *histogram, size_t rate, struct error *e)
{
	struct histogram *before = client->histogram;
	int err;

	if (before)
		account_drop_clock(client->user, histogram_clock(before));
	err = account_add_clock(accounts, client->user, histogram_clock(histogram), rate, e);
	if (err) { /* the one before goes on, as it was */
		struct error known;

		if (before)
			account_add_clock(accounts, client->user, histogram_clock(before),
					  client->rate, &known);
		return err;
	}
	histogram_free(before);
	client->histogram = histogram;
	client->rate = rate;
	return 0;
}

static int open_histogram(struct client *client, struct accounts *accounts,
			  const struct profild_request *request, struct histogram **histogram,
			  struct error *e)
{
	size_t bytes = profil_pages(request->range_count, request->cell_count) * PROFIL_PAGE_BYTES +
		       HISTOGRAM_BYTES;
	struct histogram_options options = {
		.all = client->histograms,
		.pid = client->peer.pid,
		.frequency = request->frequency,
		.ranges = request->ranges,
		.range_count = request->range_count,
		.cell_count = request->cell_count,
		.elsewhere = true,
	};
	int err = account_check_memory(accounts, client->user, bytes, e);

	if (!err && request->except)
		err = peer_thread(&client->peer, request->except, &options.except, e);
	if (err)
		return err;
	err = histogram_start(&options, histogram, e);
	if (err)
		return explain(client, err, e);
	/* Charged to the user until nobody has it any more. */
	err = account_lease(accounts, client->user, histogram_fd(*histogram), bytes, e);
	/* Only now it is sure what program it is: none that it becomes later will be counted. */
	err = err ?: peer_check(&client->peer, e);
	err = err
		      ?: replace(client, accounts, *histogram,
				 rate_of(client, *histogram, request->frequency), e);
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
		return err;
	err = histogram_enable(histogram);
	if (err) {
		detach(client);
		return error_set(e, -err, "cannot profile process %d", client->peer.pid);
	}
	log_detail("process %d of user %u is counted: %u Hz, %u ranges, %llu cells",
		   client->peer.pid, client->peer.uid, request->frequency, request->range_count,
		   (unsigned long long)request->cell_count);
	return 0;
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
	default:
		detach(client);
		return 0;
	}
}

static int answer(const struct client *client, const struct profild_request *request, int code,
		  const struct error *why, struct error *e)
{
	bool started = !code && request->type == PROFILD_START;
	int err = send_reply(client->socket, code, why, started ? client->histogram : NULL);

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
