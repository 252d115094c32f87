// SPDX-License-Identifier: GPL-2.0-only
/* What profild --status has of the last hour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* No other test links the daemon. */
#include "daemon/state.c"

#define MINUTE 29000000 /* of some day */

static void test_hour(void **context)
{
	static struct state_hour h;
	struct state s = { 0 };

	(void)context;
	/* A good minute, a bad one, and windows of a second. */
	s.stacks_user = s.stacks_complete = 1000;
	state_note_hour(&h, &s, MINUTE * 60ULL);
	for (int i = 0; i < 60; i++) {
		s.stacks_user += 10;
		s.stacks_complete += 5;
		state_note_hour(&h, &s, (MINUTE + 1) * 60ULL + i);
	}
	assert_int_equal(s.recent[RECENT_STACKS_USER], 1600);
	assert_int_equal(s.recent[RECENT_STACKS_COMPLETE], 1300);
	/* An hour later the first is gone, with windows or without. */
	state_note_hour(&h, &s, (MINUTE + 60) * 60ULL);
	assert_int_equal(s.recent[RECENT_STACKS_USER], 600);
	assert_int_equal(s.recent[RECENT_STACKS_COMPLETE], 300);
	s.cpu_ns = 7;
	s.bpf_ns = 20;
	s.interrupt_ns = 100;
	s.ticks = 3;
	state_note_hour(&h, &s, (MINUTE + 61) * 60ULL);
	assert_int_equal(s.recent[RECENT_STACKS_USER], 0);
	assert_int_equal(s.recent[RECENT_CPU_NS], 127);
	assert_int_equal(s.recent[RECENT_TICKS], 3);
	/* A clock that was set back: what it had ahead is of no hour. */
	s.ticks += 4;
	state_note_hour(&h, &s, (MINUTE - 100) * 60ULL);
	assert_int_equal(s.recent[RECENT_TICKS], 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hour) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
