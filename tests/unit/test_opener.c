// SPDX-License-Identifier: GPL-2.0-only
/* An opener that does not answer, as one that a user's file system holds: here it is stopped. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/opener.h"
#include "util/clock.h"

/* Not our own, whose memory is read without an opener. */
#define USER  4000000001U
#define OTHER 4000000002U

static int open_for(struct opener *o, uid_t uid)
{
	const struct opener_target target = { .pid = getpid(), .uid = uid, .device = 7 };
	struct opened_file file;

	return opener_open_path(o, &target, -1, "/etc/passwd", false, &file);
}

static void assert_opens(struct opener *o, uid_t uid)
{
	const struct opener_target target = { .pid = getpid(), .uid = uid, .device = 7 };
	struct opened_file file;
	char path[] = "/tmp/profil-opener-XXXXXX";
	int made = mkstemp(path), fd;

	assert_true(made >= 0);
	assert_int_equal(write(made, "text", 4), 4);
	close(made);
	fd = opener_open_path(o, &target, -1, path, false, &file);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(file.status.st_size, 4);
	assert_int_equal(file.bits, 0);
	close(fd);
	unlink(path);
}

static void stop(const struct opener *o)
{
	assert_int_equal(kill(o->child.pid, SIGSTOP), 0);
	while (child_is_running(&o->child))
		continue;
}

/* What takes one user's opener is no other's fault: another opener goes on at once. */
static void test_stall(void **state)
{
	struct refusals refusals = { 0 };
	struct opener o = { .refusals = &refusals };
	uint64_t first_wait_ns;

	(void)state;
	assert_opens(&o, USER);
	stop(&o);
	assert_int_equal(open_for(&o, USER), -ETIMEDOUT);
	assert_int_equal(refusals.count, 1);
	assert_int_equal(refusals.all[0].uid, USER);
	assert_opens(&o, OTHER);
	assert_opens(&o, 0);
	/* The user is not waited for again, */
	assert_int_equal(open_for(&o, USER), -ETIMEDOUT);
	assert_int_equal(refusals.all[0].count, 2);
	/* until its time has come, and then for longer; */
	first_wait_ns = o.stalls[0].wait_ns;
	stop(&o);
	o.stalls[0].next_ns = now_ns();
	assert_int_equal(open_for(&o, USER), -ETIMEDOUT);
	assert_int_equal(o.stall_count, 1);
	assert_true(o.stalls[0].wait_ns >= 2 * first_wait_ns);
	/* but is forgotten once that has passed, too. */
	o.stalls[0].next_ns = o.stalls[0].wait_ns = 0;
	assert_opens(&o, USER);
	assert_int_equal(o.stall_count, 0);
	assert_int_equal(refusals.count, 1);
	assert_int_equal(refusals.all[0].count, 3);
	opener_end(&o);
}

/* One who has as many users as there are places leaves root's files theirs. */
static void test_many(void **state)
{
	struct opener o = { 0 };

	(void)state;
	assert_opens(&o, USER);
	for (size_t i = 0; i < OPENER_STALLS_MAX / 2; i++) {
		if (!o.child.pid)
			assert_opens(&o, 0);
		stop(&o);
		assert_int_equal(open_for(&o, USER + i), -ETIMEDOUT);
	}
	assert_int_equal(o.stall_count, OPENER_STALLS_MAX / 2);
	assert_int_equal(open_for(&o, USER + OPENER_STALLS_MAX), -ETIMEDOUT);
	assert_int_equal(o.stall_count, OPENER_STALLS_MAX / 2);
	assert_opens(&o, 0);
	opener_end(&o);
}

/* One that was killed is not missed. */
static void test_killed(void **state)
{
	struct opener o = { 0 };

	(void)state;
	assert_opens(&o, USER);
	assert_int_equal(kill(o.child.pid, SIGKILL), 0);
	assert_opens(&o, USER);
	assert_int_equal(o.stall_count, 0);
	opener_end(&o);
}

/* One who has more users than there are places for is "others", until an hour has passed. */
static void test_refusals(void **state)
{
	struct refusals r = { 0 };

	(void)state;
	refusals_add(&r, 0, REFUSAL_NO_ANSWER, 1, 1000);
	for (uint32_t i = 0; i < 2 * REFUSALS_MAX; i++)
		refusals_add(&r, USER + i, REFUSAL_NO_ANSWER, 2, 2000);
	/* One of the places for others is taken. */
	assert_int_equal(r.count, REFUSALS_MAX - REFUSAL_CAUSES + 1);
	assert_int_equal(r.all[0].count, 1);
	assert_int_equal(r.all[r.count - 1].uid, REFUSAL_OTHERS);
	assert_int_equal(r.all[r.count - 1].count,
			 2 * (REFUSALS_MAX + REFUSAL_CAUSES + 1)); /* and root's place */
	refusals_add(&r, OTHER - 10, REFUSAL_NO_ANSWER, 3, 1000 + 3600);
	assert_int_equal(r.all[0].uid, OTHER - 10);
	assert_int_equal(r.all[0].count, 3);
}

static void test_memory(void **state)
{
	static const char text[] = "memory";
	struct opener o = { 0 };
	const struct opener_memory ours = { &o, { .pid = getpid(), .uid = USER } };
	char copy[sizeof(text)];

	(void)state;
	assert_int_equal(opener_read_memory(&ours, (uintptr_t)text, copy, sizeof(copy)),
			 sizeof(copy));
	assert_string_equal(copy, text);
	assert_int_equal(opener_read_memory(&ours, 16, copy, sizeof(copy)), -EFAULT);
	opener_end(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stall),  cmocka_unit_test(test_many),
		cmocka_unit_test(test_killed), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
