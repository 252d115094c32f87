// SPDX-License-Identifier: GPL-2.0-only
/* Which waits are for work, and which in the middle of it. */
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

/* A function of a script: each of its lines has four instructions. */
static const struct language_code script = {
	.language = LANGUAGE_PYTHON,
	.version = 0x30b,
	.line = 1,
	.lines_bytes = 4,
	.lines = { 0x80 | 13 << 3 | 3, 0, 0x80 | 13 << 3 | 3, 1 << 1 },
};

/*
 * A stack from the leaf on: lower-case letters are functions of the library, others of the program;
 * digits are instructions of the script.
 * Waits of thread `tid` for this reason.
 */
struct wait {
	const char *stack;
	pid_t tid;
	enum wait_reason reason;
	struct capture_frame frames[FRAMES_MAX];
	enum unwind_end end;
	bool once; /* or it waited there several times */
	enum wait_role role;
};

#define CUT_WAIT(stack, tid, reason, end)                               \
	{                                                               \
		stack, tid, reason, { { 0 } }, end, false, WAIT_NO_ROLE \
	}
#define WAIT(stack, tid, reason) CUT_WAIT(stack, tid, reason, UNWIND_COMPLETE)
#define ONCE(stack, reason)                                                      \
	{                                                                        \
		stack, 1, reason, { { 0 } }, UNWIND_COMPLETE, true, WAIT_NO_ROLE \
	}
#define ROLE(stack, reason, role)                                         \
	{                                                                 \
		stack, 1, reason, { { 0 } }, UNWIND_COMPLETE, false, role \
	}

static struct capture_sample sample_of(struct wait *wait)
{
	struct capture_sample sample = {
		.pid = 1,
		.tid = wait->tid,
		.kind = CAPTURE_WAITS,
		.end = wait->end,
		.waits = { .reason = wait->reason,
			   .role = wait->role,
			   .count = wait->once ? 1 : 2 },
	};

	for (const char *c = wait->stack; *c; c++)
		if (*c >= '0' && *c <= '9')
			wait->frames[sample.depth++] = (struct capture_frame){
				.pc = language_word(LANGUAGE_PYTHON, 0x1000, *c - '0'),
				.code = &script,
			};
		else
			wait->frames[sample.depth++] = (struct capture_frame){
				.pc = 0x1000 * (uint64_t)*c,
				.mapping = *c >= 'a' && *c <= 'z' ? &libc : &program,
			};
	sample.frames = wait->frames;
	sample.user_depth = sample.depth;
	return sample;
}

/* Notes all waits, and compares the first's frame. */
static void expect(const char *frame, struct wait *waits, size_t count)
{
	struct wait_places places = { 0 };
	char text[THREAD_STATE_SIZE];
	struct capture_sample sample;

	for (size_t i = 0; i < count; i++) {
		sample = sample_of(&waits[i]);
		assert_int_equal(wait_places_note(&places, &sample), 0);
	}
	sample = sample_of(&waits[0]);
	wait_places_frame(&places, &sample, text);
	assert_string_equal(text, frame);
	wait_places_free(&places);
}

#define EXPECT(frame, ...)                                               \
	do {                                                             \
		struct wait waits_[] = { __VA_ARGS__ };                  \
		expect(frame, waits_, sizeof(waits_) / sizeof(*waits_)); \
	} while (0)

/* A loop that waits, and handles what comes: "el" waits in the library for the loop L of main M. */
static void test_loop(void **state)
{
	(void)state;
	EXPECT("[idle: poll]", WAIT("eLM", 1, WAIT_POLL), WAIT("rHLM", 1, WAIT_SOCKET));
	EXPECT("[blocked: socket]", WAIT("rHLM", 1, WAIT_SOCKET), WAIT("eLM", 1, WAIT_POLL));
	/* How many frames of the library there are does not matter. */
	EXPECT("[idle: condition]", WAIT("fgheLM", 1, WAIT_CONDITION),
	       WAIT("rHLM", 1, WAIT_CONDITION));
	/* A thread of a pool that does nothing else. */
	EXPECT("[idle: condition]", WAIT("fLM", 1, WAIT_CONDITION));
	/* As low is another place, but it comes there in few rounds. */
	EXPECT("[idle: sleep]", WAIT("sAM", 1, WAIT_SLEEP), WAIT("cBM", 1, WAIT_CONDITION),
	       WAIT("sAM", 1, WAIT_SLEEP), WAIT("sAM", 1, WAIT_SLEEP), WAIT("sAM", 1, WAIT_SLEEP));
	EXPECT("[blocked: condition]", WAIT("cBM", 1, WAIT_CONDITION), WAIT("sAM", 1, WAIT_SLEEP),
	       WAIT("sAM", 1, WAIT_SLEEP), WAIT("sAM", 1, WAIT_SLEEP), WAIT("sAM", 1, WAIT_SLEEP));
	EXPECT("[blocked: sleep]", WAIT("sAM", 1, WAIT_SLEEP), WAIT("cBM", 1, WAIT_CONDITION),
	       WAIT("sAM", 1, WAIT_SLEEP), WAIT("sAM", 1, WAIT_SLEEP));
	/* What it did once at its start is no loop. */
	EXPECT("[idle: condition]", WAIT("fLM", 1, WAIT_CONDITION), ONCE("sM", WAIT_SLEEP));
	EXPECT("[blocked: sleep]", ONCE("sM", WAIT_SLEEP), WAIT("fLM", 1, WAIT_CONDITION));
}

static void test_unclear(void **state)
{
	(void)state;
	/* It came there once: that is no return. */
	EXPECT("[blocked: condition]", ONCE("fLM", WAIT_CONDITION));
	/* But nothing has come from outside. */
	EXPECT("[idle: poll]", ONCE("fLM", WAIT_POLL));
	EXPECT("[blocked: poll]", ONCE("fHLM", WAIT_POLL), WAIT("fLM", 1, WAIT_POLL));
	/* Two places are as low. */
	EXPECT("[blocked: pipe]", WAIT("rAM", 1, WAIT_PIPE), WAIT("wBM", 1, WAIT_PIPE));
	/* What other threads do says nothing of it. */
	EXPECT("[blocked: pipe]", ONCE("rAM", WAIT_PIPE), WAIT("rBAM", 2, WAIT_PIPE));
	/* Its stack, or that of another wait, lacks its outer frames. */
	EXPECT("[blocked: poll]", CUT_WAIT("eL", 1, WAIT_POLL, UNWIND_NO_ROWS),
	       WAIT("rHLM", 1, WAIT_SOCKET));
	EXPECT("[idle: poll]", WAIT("eLM", 1, WAIT_POLL),
	       CUT_WAIT("e", 1, WAIT_POLL, UNWIND_UNREADABLE), WAIT("rHLM", 1, WAIT_SOCKET));
	/* Without a stack. */
	EXPECT("[undecided: pipe]", WAIT("", 1, WAIT_PIPE), WAIT("rBAM", 1, WAIT_PIPE));
}

static void test_facts(void **state)
{
	(void)state;
	/* These are never waited for without work, wherever that is. */
	EXPECT("[blocked: lock]", WAIT("fLM", 1, WAIT_LOCK), WAIT("rHLM", 1, WAIT_SOCKET));
	EXPECT("[blocked: disk]", WAIT("rM", 1, WAIT_DISK), WAIT("eLM", 1, WAIT_POLL));
	EXPECT("[blocked: child]", WAIT("wM", 1, WAIT_CHILD));
	EXPECT("[blocked: join]", WAIT("wM", 1, WAIT_JOIN));
	EXPECT("[blocked: fault]", WAIT("M", 1, WAIT_FAULT));
	/* An answer, and one who is to read. */
	EXPECT("[blocked: socket]", ROLE("rLM", WAIT_SOCKET, WAIT_ASKS));
	EXPECT("[blocked: poll]", ROLE("rLM", WAIT_POLL, WAIT_ASKS));
	EXPECT("[blocked: pipe]", ROLE("wLM", WAIT_PIPE, WAIT_SENDS));
	EXPECT("[blocked: socket]", ROLE("", WAIT_SOCKET, WAIT_ASKS));
	EXPECT("[idle: socket]", ROLE("", WAIT_SOCKET, WAIT_SERVES));
	EXPECT("[blocked: lock]", WAIT("", 1, WAIT_LOCK));
	/* They are no loop, either. */
	EXPECT("[idle: pipe]", WAIT("rLM", 1, WAIT_PIPE), ROLE("wXM", WAIT_PIPE, WAIT_SENDS));
	/* A client. */
	EXPECT("[idle: socket]", ROLE("rHLM", WAIT_SOCKET, WAIT_SERVES), WAIT("eLM", 1, WAIT_POLL));
	EXPECT("[idle: accept]", ONCE("aLM", WAIT_ACCEPT), WAIT("eM", 1, WAIT_POLL));
	EXPECT("[idle: kernel]", WAIT("", 1, WAIT_KERNEL));
	EXPECT("[runnable: no free CPU]", WAIT("rM", 1, WAIT_CPU));
}

/* An interpreter that runs a line by other instructions, and by other functions, from now on. */
static void test_script(void **state)
{
	(void)state;
	EXPECT("[idle: poll]", WAIT("eAB0M", 1, WAIT_POLL), WAIT("eC1M", 1, WAIT_POLL));
	EXPECT("[blocked: poll]", WAIT("eA0M", 1, WAIT_POLL), WAIT("eA4M", 1, WAIT_POLL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_unclear),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_script),
	};

	return cmocka_run_group_tests_name("wait_place", tests, NULL, NULL);
}
