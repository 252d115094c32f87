// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for messages from clients to profild. This file has its own histogram, which
 * checks that everything that would reach the kernel is within its bounds, because the eBPF program
 * trusts profild. The input: for each message two bytes with its size, and the message.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf/cell.h"
#include "capture/histogram.h"
#include "daemon/client.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define MEMORY ((size_t)64 * 1024 * 1024)

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "profild: %s\n", what);
	abort();
}

/* --- The histogram --- */

struct histogram {
	int map;
	unsigned int clock;
	bool enabled;
};

static size_t histograms;

static void check_ranges(const struct histogram_options *o)
{
	for (size_t i = 0; i < o->range_count; i++) {
		const struct profil_range *r = &o->ranges[i];
		uint64_t cell;

		require(r->offset <= r->first && r->first <= r->last, "a range's addresses");
		require(!i || r[-1].last < r->first, "the order of ranges");
		require(r->wide <= 1, "a range's kind");
		cell = (cell_index(r->last - r->offset, r->scale) >> r->wide) + r->base;
		require(cell >= r->base && cell < o->cell_count, "a range's last cell");
	}
}

int histogram_start(const struct histogram_options *o, struct histogram **h, struct error *e)
{
	require(!o->all && o->pid == getpid(), "whose process it is");
	require(o->frequency >= 1 && o->frequency <= PROFILD_MOST_HZ, "the frequency");
	require(o->range_count >= 1 && o->range_count <= PROFIL_RANGES, "how many ranges");
	require(o->cell_count >= 1 && o->cell_count * sizeof(uint64_t) <= MEMORY, "how many cells");
	check_ranges(o);
	if (o->frequency % 100 == 99) /* the kernel refuses some, too */
		return error_set(e, ESRCH, "cannot attach");
	*h = calloc(1, sizeof(**h));
	if (!*h)
		return error_no_memory(e);
	(*h)->map = eventfd(0, EFD_CLOEXEC);
	(*h)->clock = o->frequency % HISTOGRAM_CLOCKS;
	histograms++;
	return 0;
}

int histogram_enable(struct histogram *h)
{
	require(!h->enabled, "what is enabled");
	h->enabled = true;
	return h->clock == 1 ? -ESRCH : 0; /* it has become another program */
}

void histogram_free(struct histogram *h)
{
	if (!h)
		return;
	close(h->map);
	free(h);
	histograms--;
}

int histogram_fd(const struct histogram *h)
{
	return h->map;
}

unsigned int histogram_clock(const struct histogram *h)
{
	return h->clock;
}

uint64_t histogram_tick_ns(const struct histogram *h)
{
	(void)h;
	return 1000000;
}

uint64_t histogram_wait_ns(const struct histogram *h)
{
	(void)h;
	return 0;
}

const char *histograms_without_events(const struct histograms *all)
{
	(void)all;
	return "";
}

/* --- A client --- */

/* One reply, without the descriptors. Returns false when there is none. */
static bool read_reply(int socket, struct profild_reply *reply)
{
	ssize_t size = recv(socket, reply, sizeof(*reply), MSG_DONTWAIT);

	if (size <= 0)
		return false;
	require(size == sizeof(*reply) && reply->version == PROFILD_NEWEST && reply->error >= 0,
		"its reply");
	require(memchr(reply->message, '\0', sizeof(reply->message)) != NULL, "a message's end");
	require(!reply->error == !*reply->message, "errors have a message, and nothing else");
	return true;
}

static void talk(struct client *client, struct accounts *accounts, int socket, const uint8_t *at,
		 size_t size)
{
	static char buffer[REQUEST_SIZE] __attribute__((aligned(8)));
	const uint8_t *end = at + size;
	struct profild_reply reply;
	struct error e;

	while (end - at >= 2) {
		size_t length = at[0] | at[1] << 8;

		at += 2;
		if (length > (size_t)(end - at))
			length = end - at;
		if (send(socket, at, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return;
		at += length;
		if (client_serve(client, accounts, (struct profild_request *)buffer, &e)) {
			require(*e.what, "a reason to hang up");
			return;
		}
		require(read_reply(socket, &reply), "a reply to each request");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct limits limits = {
		.processes = 1, .memory = MEMORY, .ticks = 20000, .rates = 4, .all_ticks = 40000
	};
	struct accounts accounts;
	struct client *client;
	struct profild_reply reply;
	struct error e;
	int ends[2], before = dup(0), after;

	close(before);
	if (accounts_open(&accounts, &limits, &e) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	require(client_open(ends[0], NULL, &accounts, &client, &e) == 0, "a connection");
	require(read_reply(ends[1], &reply) && !reply.error, "the first reply");
	talk(client, &accounts, ends[1], bytes, size);
	client_free(client, &accounts);
	close(ends[1]);
	require(!histograms, "a histogram is left");
	for (size_t i = 0; accounts.users && i < HISTOGRAM_CLOCKS; i++)
		require(!accounts.users->processes && !accounts.users->histograms[i] &&
				!accounts.users->ticks[i],
			"an account is left");
	accounts_close(&accounts);
	after = dup(0);
	require(after == before, "descriptors: one is left open");
	close(after);
	return 0;
}
