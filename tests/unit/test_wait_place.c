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
	enum unwind_end end;
	bool once; /* or it waited there several times */
};

#define CUT_WAIT(stack, tid, reason, end)                 \
	{                                                 \
		stack, tid, reason, { { 0 } }, end, false \
	}
#define WAIT(stack, tid, reason) CUT_WAIT(stack, tid, reason, UNWIND_COMPLETE)

static struct capture_sample sample_of(struct wait *wait, enum capture_kind kind)
{
	struct capture_sample sample = {
		.pid = 1,
		.tid = wait->tid,
		.kind = kind,
		.end = wait->end,
	};

	if (kind == CAPTURE_WAITS)
		sample.waits = (struct capture_waits){ .reason = wait->reason,
						       .count = wait->once ? 1 : 2 };

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
	struct wait ticked = { .stack = tick ?: "", .tid = waits[0].tid, .end = UNWIND_COMPLETE };
	struct wait_places places = { 0 };
	char text[THREAD_STATE_SIZE];
	struct capture_sample sample;

	for (size_t i = 0; i < count; i++) {
		sample = sample_of(&waits[i], CAPTURE_WAITS);
		assert_int_equal(wait_places_note(&places, &sample), 0);
	}
	sample = sample_of(&ticked, CAPTURE_TICKS);
	assert_int_equal(wait_places_note(&places, &sample), 0);
	sample = sample_of(&waits[0], CAPTURE_WAITS);
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
	EXPECT("[idle: poll]", NULL, WAIT("eLM", 1, WAIT_POLL), WAIT("rHLM", 1, WAIT_SOCKET));
	EXPECT("[blocked: socket]", NULL, WAIT("rHLM", 1, WAIT_SOCKET), WAIT("eLM", 1, WAIT_POLL));
	/* How many frames of the library there are does not matter. */
	EXPECT("[idle: lock]", NULL, WAIT("fgheLM", 1, WAIT_LOCK), WAIT("rHLM", 1, WAIT_LOCK));
	/* A thread of a pool that only runs between its waits. */
	EXPECT("[idle: lock]", "WHLM", WAIT("fgLM", 1, WAIT_LOCK));
}

static void test_unclear(void **state)
{
	(void)state;
	/* It never did anything else. */
	EXPECT("[blocked: lock]", NULL, WAIT("fLM", 1, WAIT_LOCK));
	EXPECT("[blocked: lock]", "sLM", WAIT("fLM", 1, WAIT_LOCK));
	EXPECT("[blocked: poll]", NULL, WAIT("fLM", 1, WAIT_POLL));
	EXPECT("[idle: accept]", NULL, WAIT("fLM", 1, WAIT_ACCEPT));
	/* Its start waited once for its creator: that is no loop of requests. */
	EXPECT("[idle: accept]", NULL, WAIT("aLM", 1, WAIT_ACCEPT),
	       { "fM", 1, WAIT_LOCK, { { 0 } }, UNWIND_COMPLETE, true });
	EXPECT("[blocked: accept]", NULL, WAIT("aLM", 1, WAIT_ACCEPT), WAIT("eM", 1, WAIT_POLL));
	/* It came there once: that is no return. */
	EXPECT("[blocked: lock]", "sHLM",
	       { "fLM", 1, WAIT_LOCK, { { 0 } }, UNWIND_COMPLETE, true });
	/* Two places are as low. */
	EXPECT("[blocked: pipe]", "XYZM", WAIT("rAM", 1, WAIT_PIPE), WAIT("wBM", 1, WAIT_PIPE));
	/* What other threads do says nothing of it. */
	EXPECT("[blocked: pipe]", NULL, WAIT("rAM", 1, WAIT_PIPE), WAIT("rBAM", 2, WAIT_PIPE));
	/* Its stack, or that of another wait, lacks its outer frames. */
	EXPECT("[blocked: poll]", NULL, CUT_WAIT("eL", 1, WAIT_POLL, UNWIND_NO_ROWS),
	       WAIT("rHLM", 1, WAIT_SOCKET));
	EXPECT("[idle: poll]", NULL, WAIT("eLM", 1, WAIT_POLL),
	       CUT_WAIT("e", 1, WAIT_POLL, UNWIND_UNREADABLE), WAIT("rHLM", 1, WAIT_SOCKET));
	/* Without a stack. */
	EXPECT("[blocked: pipe]", NULL, WAIT("", 1, WAIT_PIPE), WAIT("rBAM", 1, WAIT_PIPE));
}

static void test_reasons(void **state)
{
	(void)state;
	EXPECT("[blocked: disk]", NULL, WAIT("rM", 1, WAIT_DISK), WAIT("eLM", 1, WAIT_POLL));
	EXPECT("[blocked: child]", NULL, WAIT("wM", 1, WAIT_CHILD));
	EXPECT("[idle: kernel]", NULL, WAIT("", 1, WAIT_KERNEL));
	EXPECT("[runnable: no free CPU]", NULL, WAIT("rM", 1, WAIT_CPU));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_unclear),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests_name("wait_place", tests, NULL, NULL);
}
