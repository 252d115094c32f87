// SPDX-License-Identifier: GPL-2.0-only
/* Which waits are for work, which in the middle of it, and which cannot be told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf/wait.h"
#include "record/wait_place.h"

static const struct capture_mapping program = { .image = 1, .executable = true };
static const struct capture_mapping libc = { .image = 2 };

#define FRAMES_MAX 8

/*
 * A stack from the leaf on: lower-case letters are functions of the library, others of the program.
 * Waits of thread `tid` for this reason.
 */
struct wait {
	const char *stack;
	pid_t tid;
	enum wait_reason reason;
	struct capture_frame frames[FRAMES_MAX];
};

static struct capture_sample sample_of(struct wait *wait)
{
	struct capture_sample sample = { .pid = 1, .tid = wait->tid, .cpu = wait->reason };

	for (const char *c = wait->stack; *c; c++)
		wait->frames[sample.depth++] = (struct capture_frame){
			.pc = 0x1000 * (uint64_t)*c,
			.mapping = *c >= 'a' && *c <= 'z' ? &libc : &program,
		};
	sample.frames = wait->frames;
	sample.user_depth = sample.depth;
	return sample;
}

/* Notes all waits, and a tick of a stack of the same thread as the first, and compares the first's
 * frame. */
static void expect(const char *frame, const char *tick, struct wait *waits, size_t count)
{
	struct wait ticked = { .stack = tick ?: "", .tid = waits[0].tid };
	struct wait_places places = { 0 };
	char text[THREAD_STATE_SIZE];
	struct capture_sample sample;

	for (size_t i = 0; i < count; i++) {
		sample = sample_of(&waits[i]);
		assert_int_equal(wait_places_note(&places, &sample, true), 0);
	}
	sample = sample_of(&ticked);
	assert_int_equal(wait_places_note(&places, &sample, false), 0);
	sample = sample_of(&waits[0]);
	wait_places_frame(&places, &sample, text);
	assert_string_equal(text, frame);
	wait_places_free(&places);
}

#define EXPECT(frame, tick, ...)                                               \
	do {                                                                   \
		struct wait waits_[] = { __VA_ARGS__ };                        \
		expect(frame, tick, waits_, sizeof(waits_) / sizeof(*waits_)); \
	} while (0)

/* A loop that waits, and handles what comes: "el" waits in the library for the loop L of main M. */
static void test_loop(void **state)
{
	(void)state;
	EXPECT("[idle: poll]", NULL, { "eLM", 1, WAIT_POLL, { { 0 } } },
	       { "rHLM", 1, WAIT_SOCKET, { { 0 } } });
	EXPECT("[blocked: socket]", NULL, { "rHLM", 1, WAIT_SOCKET, { { 0 } } },
	       { "eLM", 1, WAIT_POLL, { { 0 } } });
	/* How many frames of the library there are does not matter. */
	EXPECT("[idle: lock]", NULL, { "fgheLM", 1, WAIT_LOCK, { { 0 } } },
	       { "rHLM", 1, WAIT_LOCK, { { 0 } } });
	/* A thread of a pool that only runs between its waits. */
	EXPECT("[idle: lock]", "WHLM", { "fgLM", 1, WAIT_LOCK, { { 0 } } });
}

static void test_undecided(void **state)
{
	(void)state;
	/* It never did anything else. */
	EXPECT("[undecided: lock]", NULL, { "fLM", 1, WAIT_LOCK, { { 0 } } });
	EXPECT("[undecided: lock]", "sLM", { "fLM", 1, WAIT_LOCK, { { 0 } } });
	EXPECT("[undecided: poll]", NULL, { "fLM", 1, WAIT_POLL, { { 0 } } });
	EXPECT("[idle: accept]", NULL, { "fLM", 1, WAIT_ACCEPT, { { 0 } } });
	/* Two places are as low. */
	EXPECT("[undecided: pipe]", "XYZM", { "rAM", 1, WAIT_PIPE, { { 0 } } },
	       { "wBM", 1, WAIT_PIPE, { { 0 } } });
	/* What other threads do says nothing of it. */
	EXPECT("[undecided: pipe]", NULL, { "rAM", 1, WAIT_PIPE, { { 0 } } },
	       { "rBAM", 2, WAIT_PIPE, { { 0 } } });
	/* Without a stack. */
	EXPECT("[undecided: pipe]", NULL, { "", 1, WAIT_PIPE, { { 0 } } },
	       { "rBAM", 1, WAIT_PIPE, { { 0 } } });
}

static void test_reasons(void **state)
{
	(void)state;
	EXPECT("[blocked: disk]", NULL, { "rM", 1, WAIT_DISK, { { 0 } } },
	       { "eLM", 1, WAIT_POLL, { { 0 } } });
	EXPECT("[blocked: child]", NULL, { "wM", 1, WAIT_CHILD, { { 0 } } });
	EXPECT("[idle: kernel]", NULL, { "", 1, WAIT_KERNEL, { { 0 } } });
	EXPECT("[waiting for a CPU]", NULL, { "rM", 1, WAIT_CPU, { { 0 } } });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_undecided),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests_name("wait_place", tests, NULL, NULL);
}
