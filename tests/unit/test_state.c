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
	s.account.stacks_user = s.account.stacks_complete = 1000;
	state_note_hour(&h, &s, MINUTE * 60ULL);
	for (int i = 0; i < 60; i++) {
		s.account.stacks_user += 10;
		s.account.stacks_complete += 5;
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
	s.account.ticks = 3;
	state_note_hour(&h, &s, (MINUTE + 61) * 60ULL);
	assert_int_equal(s.recent[RECENT_STACKS_USER], 0);
	assert_int_equal(s.recent[RECENT_CPU_NS], 127);
	assert_int_equal(s.recent[RECENT_TICKS], 3);
	/* A clock that was set back: what it had ahead is of no hour. */
	s.account.ticks += 4;
	state_note_hour(&h, &s, (MINUTE - 100) * 60ULL);
	assert_int_equal(s.recent[RECENT_TICKS], 4);
}

/* Another recorder goes on with the last hour of the one before, which had begun 20 minutes ago. */
static void test_restart(void **context)
{
	char directory[] = "/tmp/profil-state.XXXXXX", path[64];
	struct state before = { .start_s = (MINUTE - 19) * 60ULL,
				.recorder_time_s = MINUTE * 60ULL,
				.recent = { [RECENT_TICKS] = 2000 } };
	struct state s = { .account.ticks = 5 };
	static struct state_hour h, none;
	struct error e;

	(void)context;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/host", directory);
	state_continue_hour(&h, directory, "host", (MINUTE + 1) * 60ULL);
	assert_memory_equal(&h, &none, sizeof(h));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(state_write(&before, directory, "host", &e), 0);
	state_continue_hour(&h, directory, "host", (MINUTE + 1) * 60ULL);
	state_note_hour(&h, &s, (MINUTE + 1) * 60ULL);
	assert_int_equal(s.recent[RECENT_TICKS], 2005);
	state_note_hour(&h, &s, (MINUTE + 50) * 60ULL);
	assert_int_equal(s.recent[RECENT_TICKS], 1005); /* 10 of these minutes */
	state_note_hour(&h, &s, (MINUTE + 60) * 60ULL);
	assert_int_equal(s.recent[RECENT_TICKS], 5);
	/* One of the future is of no hour. */
	h = none;
	state_continue_hour(&h, directory, "host", (MINUTE - 1) * 60ULL);
	assert_memory_equal(&h, &none, sizeof(h));
	strcat(path, "/" STATE_FILE);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	assert_int_equal(rmdir(directory), 0);
}

/* What was refused is read back as it was written, with the rest. */
static void test_refusals(void **context)
{
	struct state s = { .windows = 3 }, back = { 0 };
	int fd = memfd_create("state", MFD_CLOEXEC);
	FILE *out = fdopen(dup(fd), "w");
	struct error e;

	(void)context;
	refusals_add(&s.refusals, 1000, REFUSAL_NO_ANSWER, 7, 1234567890);
	refusals_add(&s.refusals, REFUSAL_OTHERS, REFUSAL_NO_ANSWER, 8, 1234567891);
	assert_int_equal(write_json(out, &s, &e), 0);
	fclose(out);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(read_state(fd, &back), 0);
	assert_memory_equal(&back, &s, sizeof(back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hour),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
