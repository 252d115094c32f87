// SPDX-License-Identifier: GPL-2.0-only
#include "record/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
EQUAL(is_other_end, struct peer_end, struct wait_peer,
      a->peer.port == b->own_port && a->peer.own_port == b->port &&
	      memcmp(a->peer.address, b->own_address, sizeof(b->address)) == 0 &&
	      memcmp(a->peer.own_address, b->address, sizeof(b->address)) == 0)

int peers_note(struct peers *peers, const struct wait_peer *peer, const struct capture_sample *wait)
{
	struct peer_end *end;

	if (peer->family != AF_INET6)
		return 0;
	if (array_add_indexed(peers->ends, peers->count, peers->room, &peers->index,
			      end_hash((const uint64_t *)peer->own_address, peer->own_port,
				       (const uint64_t *)peer->address, peer->port),
			      (struct peer_end){ .peer = *peer, .pid = wait->pid }))
		return -ENOMEM;
	end = &peers->ends[peers->count - 1];
	snprintf(end->comm, sizeof(end->comm), "%s", wait->process_comm);
	return 0;
}

EQUAL(task_equal, struct peer_task, pid_t, a->tid == *b)

/* Of those that had this TID, the last one. */
static const struct peer_task *find_task(const struct peers *peers, pid_t tid)
{
	uint32_t number =
		index_find(&peers->task_index, hash_u64(tid, 0), task_equal, peers->tasks, &tid);

	return number == INDEX_NONE ? NULL : &peers->tasks[number];
}

int peers_note_task(struct peers *peers, const struct peer_task *task)
{
	uint32_t number = index_find(&peers->task_index, hash_u64(task->tid, 0), task_equal,
				     peers->tasks, &task->tid);

	if (number != INDEX_NONE) {
		peers->tasks[number] = *task;
		return 0;
	}
	return array_add_indexed(peers->tasks, peers->task_count, peers->task_room,
				 &peers->task_index, hash_u64(task->tid, 0), *task);
}

/* The first of the names that is known, or that of /proc; then the number. */
static void write_task(const char *first, const char *second, const char *last, const char *kind,
		       pid_t number, bool numbers, char name[static PEER_NAME_SIZE])
{
	const char *known = first && *first ? first : second && *second ? second : NULL;
	char path[64], comm[16];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)number);
	if (!known && file_read_line(path, comm, sizeof(comm)) == 0)
		known = comm;
	known = known ?: last && *last ? last : NULL;
	if (!known)
		snprintf(name, PEER_NAME_SIZE, "%s %d", kind, (int)number);
	else if (numbers)
		snprintf(name, PEER_NAME_SIZE, "%s (%d)", known, (int)number);
	else
		snprintf(name, PEER_NAME_SIZE, "%s", known);
}

static void write_process(const struct peers *peers, pid_t pid, const struct peer_task *waker,
			  bool numbers, char name[static PEER_NAME_SIZE])
{
	const struct peer_task *known = find_task(peers, pid);

	write_task(waker ? waker->process_comm : NULL, known ? known->process_comm : NULL,
		   waker ? waker->comm : NULL, "process", pid, numbers, name);
}

static void write_thread(const struct peers *peers, pid_t tid, const struct peer_task *waker,
			 bool numbers, char name[static PEER_NAME_SIZE])
{
	const struct peer_task *known = find_task(peers, tid);

	write_task(waker ? waker->comm : NULL, known ? known->comm : NULL, NULL, "thread", tid,
		   numbers, name);
}

/* Of a partition, its disk. */
static void write_device(unsigned int device, char name[static PEER_NAME_SIZE])
{
	unsigned int major = device >> 20, minor = device & 0xfffff;
	char path[64], target[512], *end;
	ssize_t size;

	snprintf(name, PEER_NAME_SIZE, "%u:%u", major, minor);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	size = readlink(path, target, sizeof(target) - 1);
	if (size <= 0)
		return;
	target[size] = '\0';
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major, minor);
	end = strrchr(target, '/');
	if (end && access(path, F_OK) == 0) {
		*end = '\0';
		end = strrchr(target, '/');
	}
	if (end)
		snprintf(name, PEER_NAME_SIZE, "%.*s", PEER_NAME_SIZE - 1, end + 1);
}

/* Whether both ends of a connection are on this machine, as their addresses say. */
static bool is_local(const struct wait_peer *peer)
{
	struct in6_addr in6, own;

	memcpy(&in6, peer->address, sizeof(in6));
	memcpy(&own, peer->own_address, sizeof(own));
	return memcmp(&in6, &own, sizeof(own)) == 0 || IN6_IS_ADDR_LOOPBACK(&in6) ||
	       (IN6_IS_ADDR_V4MAPPED(&in6) && in6.s6_addr[12] == 127);
}

static void write_end(const struct peers *peers, const struct wait_peer *peer,
		      const struct capture_sample *wait, const struct peer_task *waker,
		      bool numbers, char name[static PEER_NAME_SIZE])
{
	uint32_t number = index_find(&peers->index,
				     end_hash((const uint64_t *)peer->address, peer->port,
					      (const uint64_t *)peer->own_address, peer->own_port),
				     is_other_end, peers->ends, peer);
	char address[INET6_ADDRSTRLEN];
	struct in6_addr in6;
	bool is_4;

	if (number != INDEX_NONE) {
		const struct peer_end *end = &peers->ends[number];

		write_task(end->comm, NULL, NULL, "process", end->pid, numbers, name);
		return;
	}
	/* Another one than the two that were seen may have the other end: who has sent is it. */
	if (waker && is_local(peer)) {
		write_process(peers, waker->pid, waker, numbers, name);
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

bool peers_name(const struct peers *peers, const struct wait_peer *peer,
		const struct capture_sample *wait, const struct peer_task *waker, bool numbers,
		char name[static PEER_NAME_SIZE])
{
	bool is_lock = wait->waits.reason == WAIT_LOCK;

	switch (peer ? peer->family : 0) {
	case WAIT_PEER_DEVICE:
		write_device(peer->device, name);
		return true;
	case WAIT_PEER_THREAD:
		if (is_lock)
			write_thread(peers, peer->tid, NULL, numbers, name);
		else
			write_process(peers, peer->pid, waker, numbers, name);
		return true;
	case AF_INET6:
		write_end(peers, peer, wait, waker, numbers, name);
		return true;
	case AF_UNIX:
		/* The kernel keeps who has made it: that one may have passed it on. */
		write_process(peers, waker ? waker->pid : (pid_t)peer->pid, waker, numbers, name);
		return true;
	default:
		if (waker && is_lock)
			write_thread(peers, waker->tid, waker, numbers, name);
		else if (waker)
			write_process(peers, waker->pid, waker, numbers, name);
		return waker;
	}
}

EQUAL(name_equal, char *const, char, strcmp(*a, b) == 0)

bool peers_has_room(struct peers *peers, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name), 0);
	char *copy;

	if (index_find(&peers->name_index, hash, name_equal, peers->names, name) != INDEX_NONE)
		return true;
	if (peers->name_count == PEERS_MAX)
		return false;
	copy = strdup(name);
	if (copy && array_add_indexed(peers->names, peers->name_count, peers->name_room,
				      &peers->name_index, hash, copy) == 0)
		return true;
	free(copy);
	return false;
}

void peers_free(struct peers *peers)
{
	array_free_texts(peers->names, peers->name_count);
	free(peers->ends);
	free(peers->tasks);
	index_free(&peers->index);
	index_free(&peers->task_index);
	index_free(&peers->name_index);
	*peers = (struct peers){ 0 };
}
