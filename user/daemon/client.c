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

#include "bpf/cell.h"
#include "capture/histogram.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "util/child.h"
#include "util/clock.h"

/*
 * The connection of a client that sends more of them is closed.
 * Bound: users: invalid requests on one connection of profil(); then: the connection is closed;
 * again: on another connection; share: the connection's own; seen: in the client's error, and
 * profild's log.
 */
#define MAX_INVALID_REQUESTS 16

/* Memory of a histogram, besides its pages, in profild and the kernel: measured. Bound: pace. */
#define HISTOGRAM_BYTES (16 * 1024)

_Static_assert(sizeof(struct profild_hello) == 264 && sizeof(struct profild_reply) == 264,
	       "protocol.h: what is released does not change");

/*
 * Checks all fields of a message of `size` bytes, which may be more than REQUEST_SIZE: then only
 * the first REQUEST_SIZE were received. Returns 0, or -EINVAL with e set.
 */
static int check_request(const struct profild_request *request, size_t size, struct error *e)
{
	if (size < sizeof(*request))
		return error_set(e, 0, "%zu bytes are no request", size);
	if (request->version < PROFILD_OLDEST || request->version > PROFILD_NEWEST)
		return error_set(e, 0, "unsupported protocol version %u: profild speaks %d to %d",
				 request->version, PROFILD_OLDEST, PROFILD_NEWEST);
	if (request->type == PROFILD_STOP) {
		if (size != sizeof(*request) || request->frequency || request->except ||
		    request->range_count || request->unused || request->cell_count)
			return error_set(e, 0, "a STOP request has other fields");
		return 0;
	}
	if (request->type != PROFILD_START)
		return error_set(e, 0, "unknown request type %u", request->type);
	if (request->frequency < 1 || request->frequency > PROFILD_MOST_HZ)
		return error_set(e, 0, "the frequency is %u Hz, but may be 1 to %d",
				 request->frequency, PROFILD_MOST_HZ);
	if (request->except > INT32_MAX)
		return error_set(e, 0, "no thread has the number %u", request->except);
	if (request->range_count < 1 || request->range_count > PROFIL_RANGES)
		return error_set(e, 0, "there are %u ranges, but may be 1 to %d",
				 request->range_count, PROFIL_RANGES);
	if (size != sizeof(*request) + request->range_count * sizeof(*request->ranges))
		return error_set(e, 0, "%zu bytes are not a request of %u ranges", size,
				 request->range_count);
	if (request->cell_count < 1 || request->cell_count > PROFIL_CELLS)
		return error_set(e, 0, "there are %llu cells, but may be 1 to %u",
				 (unsigned long long)request->cell_count, PROFIL_CELLS);
	if (request->unused)
		return error_set(e, 0, "an unused field is not 0");
	for (uint32_t i = 0; i < request->range_count; i++) {
		const struct profil_range *range = &request->ranges[i];
		uint64_t last_cell;

		if (range->first > range->last || range->first < range->offset)
			return error_set(e, 0, "range %u: its addresses are not in order", i);
		if (i && range->first <= range[-1].last)
			return error_set(e, 0, "range %u is not after range %u", i, i - 1);
		if (range->wide > 1 || range->unused)
			return error_set(e, 0,
					 "range %u: invalid width, or an unused field is not 0", i);
		last_cell = cell_index(range->last - range->offset, range->scale) >> range->wide;
		if (last_cell >= request->cell_count ||
		    range->base >= request->cell_count - last_cell)
			return error_set(e, 0, "range %u: its last cell is beyond all cells", i);
	}
	return 0;
}

static void set_message(char *message, size_t size, const struct error *e)
{
	snprintf(message, size, "%.159s%s%.75s", e->what, e->hint[0] ? "; " : "", e->hint);
}

/* Sends the first message: an error with its message unless `code` is 0. Never waits. */
static int send_hello(int socket, int code, const struct error *e)
{
	struct profild_hello hello = {
		.version = PROFILD_HELLO_VERSION,
		.error = code,
		.oldest = PROFILD_OLDEST,
		.newest = PROFILD_NEWEST,
	};

	if (code)
		set_message(hello.message, sizeof(hello.message), e);
	return send(socket, &hello, sizeof(hello), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int client_open(int socket, struct histograms *histograms, struct accounts *accounts,
		struct client **out, struct error *e)
{
	struct client *client = calloc(1, sizeof(*client));
	int on = 1, err;

	if (!client) {
		err = error_no_memory(e);
		goto refuse;
	}
	client->socket = socket;
	client->histograms = histograms;
	err = peer_open(socket, &client->peer, e);
	if (err)
		goto refuse;
	client->user = account_add_process(accounts, &client->peer, e);
	if (!client->user) {
		err = -EDQUOT;
		goto close_peer;
	}
	/* It may have connected before the listening socket refused descriptors. */
	listener_take_descriptors(socket, false);
	/* Messages sent from now on have credentials. The client sends none before this reply. */
	if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		err = error_set(e, errno, "cannot ask for credentials");
	else
		err = send_hello(socket, 0, NULL);
	if (!err) {
		*out = client;
		return 0;
	}
	account_drop_process(accounts, client->user);
close_peer:
	close(client->peer.pidfd);
refuse:
	send_hello(socket, -err, e);
	close(socket);
	free(client);
	return err;
}

static void stop_counting(struct client *client)
{
	if (!client->histogram)
		return;
	account_drop_clock(client->user, histogram_clock(client->histogram));
	histogram_free(client->histogram);
	client->histogram = NULL;
	log_detail("process %d of user %u is no longer counted", client->peer.pid,
		   client->peer.uid);
}

/* Checks whether the user's quota allows this clock in place of the client's present one. */
static int check_clock(struct client *client, const struct accounts *accounts, unsigned int clock,
		       size_t rate, struct error *e)
{
	const struct histogram *before = client->histogram;
	int err;

	if (before)
		account_drop_clock(client->user, histogram_clock(before));
	err = account_check_clock(accounts, client->user, clock, rate, e);
	if (before)
		account_add_clock(client->user, histogram_clock(before), client->rate);
	return err;
}

/* Opens the requested histogram, in place of the client's, which stays if this fails. */
static int open_histogram(struct client *client, struct accounts *accounts,
			  const struct profild_request *request, struct error *e)
{
	const bool has_events = !*histograms_without_events(client->histograms);
	size_t bytes = profil_pages(request->range_count, request->cell_count) * PROFIL_PAGE_BYTES +
		       HISTOGRAM_BYTES;
	size_t rate = request->frequency;
	struct histogram *histogram;
	unsigned int clock;
	uint64_t tick_ns;
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

	/* First: else a request that is refused opens a clock. */
	if (!err && has_events)
		err = check_clock(client, accounts,
				  account_find_clock(accounts, request->frequency),
				  request->frequency, e);
	if (!err && request->except)
		err = peer_thread(&client->peer, request->except, &options.except, e);
	if (err)
		return err;
	err = histogram_start(&options, &histogram, e);
	if (err) {
		/* Logs errors that are not the client's, which is sent e and this errno. */
		switch (-err) {
		case ESRCH:
		case EAGAIN: /* too many histograms or rates */
		case EINVAL: /* more ticks than the kernel allows */
			return err;
		}
		log_problem(e);
		if (err == -EMFILE || err == -ENFILE) {
			error_set(e, 0, "profild has no descriptor left for process %d",
				  client->peer.pid);
			return -EAGAIN;
		}
		e->hint[0] = '\0'; /* a hint for the administrator, not for the client */
		return err;
	}
	clock = histogram_clock(histogram);
	tick_ns = histogram_tick_ns(histogram);
	if (!has_events) /* the scheduler's tick has a rate of its own */
		rate = (NS_PER_S + tick_ns / 2) / tick_ns;
	err = account_charge_memory(accounts, client->user, histogram_fd(histogram), bytes, e);
	/*
	 * After histogram_start(): counting has ended if the process executes another program now.
	 */
	err = err ?: peer_check_access(&client->peer, e);
	err = err ?: check_clock(client, accounts, clock, rate, e);
	if (err) {
		histogram_free(histogram);
		return err;
	}
	if (client->histogram)
		account_drop_clock(client->user, histogram_clock(client->histogram));
	account_add_clock(client->user, clock, rate);
	histogram_free(client->histogram);
	client->histogram = histogram;
	client->rate = rate;
	return 0;
}

/*
 * Receives a message and sets *sender to the PID of its sender, or to 0 at the end of the
 * connection. Returns the size of the message, which may be larger than the buffer, or -errno:
 * -EPROTO if descriptors came with it, for which there is no room on purpose.
 */
static ssize_t receive_request(const struct client *client, struct profild_request *buffer,
			       pid_t *sender)
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

int client_serve(struct client *client, struct accounts *accounts, struct profild_request *buffer,
		 struct error *e)
{
	struct profild_reply reply = { .version = PROFILD_NEWEST };
	struct error why;
	pid_t sender;
	ssize_t size = receive_request(client, buffer, &sender);
	int err, unread, fd = -1;

	if (size == -EAGAIN)
		return 0;
	if (size < 0)
		return error_set(e, -size, "cannot receive");
	if (!sender)
		return error_set(e, 0, "it closed the connection");
	if (ioctl(client->socket, SIOCOUTQ, &unread) || unread > 0)
		return error_set(e, 0, "it sent a request before it had read the last reply");
	if (size >= (ssize_t)sizeof(*buffer) && buffer->version >= PROFILD_OLDEST &&
	    buffer->version <= PROFILD_NEWEST)
		reply.version = buffer->version;
	if (sender != client->peer.pid) {
		error_set(&why, 0, "process %d cannot ask on the connection of process %d", sender,
			  client->peer.pid);
		err = -EPERM;
	} else {
		err = check_request(buffer, size, &why);
		if (!err && buffer->type != PROFILD_START && !client->histogram)
			err = error_set(&why, 0, "nothing is counted on this connection");
	}
	if (err && ++client->invalid_requests > MAX_INVALID_REQUESTS)
		return error_set(e, 0, "too many invalid requests, the last: %.200s", why.what);
	if (!err && buffer->type == PROFILD_START) {
		err = open_histogram(client, accounts, buffer, &why);
		if (!err) {
			err = histogram_enable(client->histogram);
			if (err) {
				stop_counting(client);
				error_set(&why, -err, "cannot profile process %d",
					  client->peer.pid);
			}
		}
		if (!err) {
			fd = histogram_fd(client->histogram);
			reply.tick_ns = histogram_tick_ns(client->histogram);
			reply.wait_ns = histogram_wait_ns(client->histogram);
			log_detail("process %d of user %u is counted: %u Hz, %u ranges, %llu cells",
				   client->peer.pid, client->peer.uid, buffer->frequency,
				   buffer->range_count, (unsigned long long)buffer->cell_count);
		} else {
			log_refusal("refused process %d of user %u: %s", client->peer.pid,
				    client->peer.uid, why.what);
		}
	} else if (!err) {
		stop_counting(client);
	}
	reply.error = -err;
	if (err)
		set_message(reply.message, sizeof(reply.message), &why);
	/* The client has read the reply before, so there is room. */
	err = message_send(client->socket, &reply, sizeof(reply), &fd, fd >= 0, MSG_DONTWAIT);
	return err ? error_set(e, -err, "cannot reply") : 0;
}

void client_free(struct client *client, struct accounts *accounts)
{
	uint64_t start_ns = now_ns();

	stop_counting(client);
	close(client->peer.pidfd);
	close(client->socket);
	account_charge_time(accounts, client->user, now_ns() - start_ns);
	account_drop_process(accounts, client->user);
	free(client);
}
