// SPDX-License-Identifier: GPL-2.0-only
#include "record/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bpf/wait.h"
#include "util/array.h"
#include "util/file.h"

/* One end of a connection of this machine, and who has it. */
struct peer_end {
	struct wait_peer peer;
	pid_t pid;
	char comm[16];
};

static uint64_t end_hash(const uint64_t own[2], uint16_t own_port, const uint64_t other[2],
			 uint16_t port)
{
	return hash_u64(own[0] ^ own[1], hash_u64(other[0] ^ other[1], own_port << 16 | port));
}

/* Whether an end is the other one of the key. */
static bool is_other_end(const void *array, uint32_t number, const void *key)
{
	const struct wait_peer *a = &((const struct peer_end *)array)[number].peer, *b = key;

	return a->port == b->own_port && a->own_port == b->port &&
	       memcmp(a->address, b->own_address, sizeof(a->address)) == 0 &&
	       memcmp(a->own_address, b->address, sizeof(a->address)) == 0;
}

int peers_note(struct peers *peers, const struct wait_peer *peer, const struct capture_sample *wait)
{
	struct peer_end *end;

	if (peer->family != AF_INET6)
		return 0;
	if (array_reserve(&peers->ends, &peers->room, peers->count + 1, sizeof(*peers->ends)) ||
	    index_add(&peers->index,
		      end_hash((const uint64_t *)peer->own_address, peer->own_port,
			       (const uint64_t *)peer->address, peer->port),
		      peers->count))
		return -ENOMEM;
	end = &peers->ends[peers->count++];
	*end = (struct peer_end){ .peer = *peer, .pid = wait->pid };
	snprintf(end->comm, sizeof(end->comm), "%s", wait->process_comm);
	return 0;
}

void peers_name(const struct peers *peers, const struct wait_peer *peer,
		const struct capture_sample *wait, char name[static PEER_NAME_SIZE])
{
	char path[64], comm[16], address[INET6_ADDRSTRLEN];
	struct in6_addr in6;
	uint32_t number;
	bool is_4;

	if (peer->family == AF_UNIX) {
		snprintf(path, sizeof(path), "/proc/%u/comm", peer->pid);
		if (file_read_line(path, comm, sizeof(comm)))
			snprintf(name, PEER_NAME_SIZE, "process %u", peer->pid);
		else
			snprintf(name, PEER_NAME_SIZE, "%s (%u)", comm, peer->pid);
		return;
	}
	number = index_find(&peers->index,
			    end_hash((const uint64_t *)peer->address, peer->port,
				     (const uint64_t *)peer->own_address, peer->own_port),
			    is_other_end, peers->ends, peer);
	if (number != INDEX_NONE) {
		const struct peer_end *end = &peers->ends[number];

		snprintf(name, PEER_NAME_SIZE, "%s (%d)", end->comm, (int)end->pid);
		return;
	}
	memcpy(&in6, peer->address, sizeof(in6));
	is_4 = IN6_IS_ADDR_V4MAPPED(&in6);
	inet_ntop(is_4 ? AF_INET : AF_INET6, is_4 ? (const void *)&in6.s6_addr[12] : &in6, address,
		  sizeof(address));
	/* The port of a client says nothing, and is another one each time. */
	if (wait->waits.role == WAIT_SERVES)
		snprintf(name, PEER_NAME_SIZE, "%s", address);
	else
		snprintf(name, PEER_NAME_SIZE, is_4 ? "%s:%u" : "[%s]:%u", address, peer->port);
}

void peers_free(struct peers *peers)
{
	free(peers->ends);
	index_free(&peers->index);
	*peers = (struct peers){ 0 };
}
