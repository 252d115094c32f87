// SPDX-License-Identifier: GPL-2.0-only
/* Names of whom threads wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "bpf/wait.h"
#include "record/peer.h"

/* PIDs and TIDs that no process has: they are above what the kernel gives. */
enum {
	SHOP = 5000000,
	CLERK, /* a thread of it */
	GUEST,
};

static const struct peer_task clerk = { SHOP, CLERK, "clerk", "shop" };
static const struct peer_task guest = { GUEST, GUEST, "guest", "" };

static void name_of(const struct wait_peer *peer, enum wait_reason reason, enum wait_role role,
		    const struct peer_task *waker, bool numbers, const char *expected)
{
	const struct capture_sample wait = { .kind = CAPTURE_WAITS,
					     .waits = { .reason = reason, .role = role } };
	struct peers peers = { 0 };
	char name[PEER_NAME_SIZE] = "";

	assert_int_equal(peers_note_task(&peers, &(struct peer_task){ SHOP, SHOP, "x", "x" }), 0);
	assert_int_equal(peers_note_task(&peers, &(struct peer_task){ SHOP, SHOP, "shop", "shop" }),
			 0);
	assert_int_equal(peers_note_task(&peers, &clerk), 0);
	assert_int_equal(peers_name(&peers, peer, &wait, waker, numbers, name), expected != NULL);
	assert_string_equal(name, expected ?: "");
	peers_free(&peers);
}

static void lock_is_held_by_a_thread(void **state)
{
	const struct wait_peer holder = { .family = WAIT_PEER_THREAD, .pid = SHOP, .tid = CLERK };
	const struct wait_peer other = { .family = WAIT_PEER_THREAD, .pid = SHOP, .tid = GUEST };

	(void)state;
	name_of(&holder, WAIT_LOCK, WAIT_NO_ROLE, NULL, true, "clerk (5000001)");
	name_of(&holder, WAIT_LOCK, WAIT_NO_ROLE, NULL, false, "clerk");
	name_of(&other, WAIT_LOCK, WAIT_NO_ROLE, NULL, true, "thread 5000002");
	/* Who has released it, where it is unknown who had it. */
	name_of(NULL, WAIT_LOCK, WAIT_NO_ROLE, &clerk, true, "clerk (5000001)");
	name_of(NULL, WAIT_LOCK, WAIT_NO_ROLE, NULL, true, NULL);
}

static void other_end_is_a_process(void **state)
{
	const struct wait_peer holder = { .family = WAIT_PEER_THREAD, .pid = SHOP, .tid = CLERK };

	(void)state;
	name_of(NULL, WAIT_PIPE, WAIT_NO_ROLE, &clerk, true, "shop (5000000)");
	name_of(NULL, WAIT_CHILD, WAIT_NO_ROLE, &guest, true, "guest (5000002)");
	/* The same entry may be that of who has a lock. */
	name_of(&holder, WAIT_PIPE, WAIT_NO_ROLE, NULL, true, "shop (5000000)");
	name_of(NULL, WAIT_PIPE, WAIT_NO_ROLE, NULL, true, NULL);
}

static void unix_socket(void **state)
{
	const struct wait_peer made = { .family = AF_UNIX, .pid = SHOP };

	(void)state;
	name_of(&made, WAIT_SOCKET, WAIT_ASKS, NULL, true, "shop (5000000)");
	/* It was passed on. */
	name_of(&made, WAIT_SOCKET, WAIT_ASKS, &guest, true, "guest (5000002)");
}

static struct wait_peer connection(const char *own, uint16_t own_port, const char *other,
				   uint16_t port)
{
	struct wait_peer peer = { .family = AF_INET6, .port = port, .own_port = own_port };

	memcpy(peer.own_address, own, 16);
	memcpy(peer.address, other, 16);
	return peer;
}

#define V4(address) "\0\0\0\0\0\0\0\0\0\0\xff\xff" address

static void tcp(void **state)
{
	struct wait_peer local = connection(V4("\x7f\0\0\1"), 41234, V4("\x7f\0\0\1"), 80);
	struct wait_peer same = connection(V4("\x0a\0\0\1"), 41234, V4("\x0a\0\0\1"), 80);
	struct wait_peer remote = connection(V4("\x0a\0\0\1"), 41234, V4("\x0a\0\0\2"), 80);

	(void)state;
	name_of(&local, WAIT_SOCKET, WAIT_ASKS, NULL, true, "127.0.0.1:80");
	name_of(&local, WAIT_SOCKET, WAIT_SERVES, NULL, true, "127.0.0.1");
	/* Who sends from this machine is at the other end. */
	name_of(&local, WAIT_SOCKET, WAIT_ASKS, &clerk, true, "shop (5000000)");
	name_of(&same, WAIT_SOCKET, WAIT_ASKS, &clerk, true, "shop (5000000)");
	/* From elsewhere, it only happened to run. */
	name_of(&remote, WAIT_SOCKET, WAIT_ASKS, &clerk, true, "10.0.0.2:80");
}

static void two_ends_of_a_connection(void **state)
{
	struct wait_peer own = connection(V4("\x0a\0\0\1"), 41234, V4("\x0a\0\0\2"), 80);
	struct wait_peer other = connection(V4("\x0a\0\0\2"), 80, V4("\x0a\0\0\1"), 41234);
	const struct capture_sample server = { .pid = SHOP, .process_comm = "shop" };
	const struct capture_sample client = { .waits = { .reason = WAIT_SOCKET,
							  .role = WAIT_ASKS } };
	char name[PEER_NAME_SIZE];
	struct peers peers = { 0 };

	(void)state;
	assert_int_equal(peers_note(&peers, &other, &server), 0);
	assert_true(peers_name(&peers, &own, &client, &guest, true, name));
	assert_string_equal(name, "shop (5000000)");
	peers_free(&peers);
}

static void disk(void **state)
{
	/* No driver has this number. */
	const struct wait_peer unknown = { .family = WAIT_PEER_DEVICE,
					   .device = wait_device(4095, 7) };

	(void)state;
	name_of(&unknown, WAIT_DISK, WAIT_NO_ROLE, NULL, true, "4095:7");
}

static void names_are_bounded(void **state)
{
	struct peers peers = { 0 };
	char name[PEER_NAME_SIZE];

	(void)state;
	for (int i = 0; i < PEERS_MAX; i++) {
		snprintf(name, sizeof(name), "clerk (%d)", i);
		assert_true(peers_has_room(&peers, name));
	}
	assert_false(peers_has_room(&peers, "one more"));
	assert_true(peers_has_room(&peers, "clerk (7)"));
	peers_free(&peers);
}

static void ends_of_waits_fit_in_a_key(void **state)
{
	uint32_t ends = wait_ends(WAIT_ENTRIES - 1, WAIT_ENTRIES - 2);

	(void)state;
	assert_int_equal(wait_ends_waker(ends), WAIT_ENTRIES - 1);
	assert_int_equal(wait_ends_whom(ends), WAIT_ENTRIES - 2);
	assert_int_equal(wake_key(WAIT_ENTRIES - 3, ends) >> 32, WAIT_ENTRIES - 3);
	assert_int_equal((uint32_t)wake_key(WAIT_ENTRIES - 3, ends), ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_is_held_by_a_thread),
		cmocka_unit_test(other_end_is_a_process),
		cmocka_unit_test(unix_socket),
		cmocka_unit_test(tcp),
		cmocka_unit_test(two_ends_of_a_connection),
		cmocka_unit_test(disk),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(ends_of_waits_fit_in_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
