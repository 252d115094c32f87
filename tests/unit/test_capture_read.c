// SPDX-License-Identifier: GPL-2.0-only
/* The results of capture_read() during a recording. Needs the privileges to record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "symbol/cfi/cfi.h"
#include "util/clock.h"

#define SAMPLES_MAX 4096

struct seen {
	uint64_t counts[SAMPLES_MAX];
	uint64_t sum;
	size_t mapped;
};

static int see(const struct capture_sample *sample, void *context)
{
	struct seen *seen = context;

	assert_true(sample->number < SAMPLES_MAX);
	assert_true(sample->count >= seen->counts[sample->number]); /* since the beginning */
	seen->counts[sample->number] = sample->count;
	seen->sum += sample->count;
	seen->mapped += sample->frames[0].mapping != NULL;
	return 0;
}

static struct seen read_now(struct capture *c, struct seen seen)
{
	struct capture_totals totals;
	struct error e;

	seen.sum = seen.mapped = 0;
	assert_int_equal(capture_read(c, &e), 0);
	assert_int_equal(capture_each_sample(c, see, &seen), 0);
	capture_totals(c, &totals);
	assert_int_equal(totals.counted, seen.sum);
	assert_true(totals.ticks >= seen.sum); /* more may have been counted since */
	assert_true(totals.duration_ns > 0 && totals.duration_ns < 1000 * NS_PER_S);
	return seen;
}

/* Until so many ticks are counted, and mappings are known, which takes a while on a busy machine.
 */
static struct seen read_until(struct capture *c, struct seen before, uint64_t sum)
{
	uint64_t end = now_ns() + 20 * NS_PER_S;
	struct seen now = before;

	while ((now.sum < sum || !now.mapped) && now_ns() < end) {
		usleep(10000);
		now = read_now(c, now);
	}
	assert_true(now.sum >= sum);
	assert_true(now.mapped > 0);
	return now;
}

static void record_child(pid_t child, enum capture_stacks stacks)
{
	struct capture_options options = {
		.target = CAPTURE_PROCESSES,
		.pids = &child,
		.pid_count = 1,
		.event = CAPTURE_CPU_CLOCK,
		.frequency = 999,
		.inherit = true,
		.stacks = stacks,
		.read_rows = cfi_read,
	};
	struct seen seen = { .sum = 0 };
	struct capture_totals totals;
	struct capture *c;
	struct error e;
	int err = capture_start(&options, &c, &e);

	if (err == -EPERM || err == -EACCES)
		skip();
	assert_int_equal(err, 0);
	seen = read_until(c, seen, 10);
	seen = read_until(c, seen, seen.sum + 10);
	assert_int_equal(capture_stop(c, &e), 0);
	seen.sum = 0;
	assert_int_equal(capture_each_sample(c, see, &seen), 0);
	capture_totals(c, &totals);
	assert_int_equal(totals.counted, seen.sum);
	assert_int_equal(totals.ticks, totals.counted + totals.ring_full);
	capture_free(c);
}

static void record(enum capture_stacks stacks)
{
	pid_t child = fork();

	if (child == 0) {
		alarm(60); /* also when the parent is ended */
		for (volatile uint64_t i = 0; getppid() != 1; i++)
			;
		_exit(0);
	}
	record_child(child, stacks);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void test_read(void **state)
{
	(void)state;
	record(CAPTURE_NO_STACKS);
}

static void test_read_stacks(void **state)
{
	(void)state;
	record(CAPTURE_STACKS_CFI);
}

static void test_read_frame_pointers(void **state)
{
	(void)state;
	record(CAPTURE_STACKS_FP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_stacks),
		cmocka_unit_test(test_read_frame_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
