// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for the requests that `profiltool changes --per` reads, as counters and as
 * rates: what is read is in the order of time, and counts are numbers from 0 on.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/metric.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "metric: %s\n", what);
	abort();
}

static void check(int fd, bool rate)
{
	struct changes_metric m = { 0 };
	struct error e;
	char path[64];

	if (lseek(fd, 0, SEEK_SET))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!metric_read(path, rate, &m, &e))
		require(m.count, "it has some");
	else
		require(*e.what, "an error has a message");
	for (size_t i = 0; i < m.count; i++) {
		const struct changes_increase *c = &m.list[i];

		require(c->since_ns && c->since_ns < c->until_ns &&
				c->until_ns - c->since_ns <= INCREASE_NS,
			"its times");
		require(!i || c[-1].since_ns <= c->since_ns, "the order of times");
		require(isfinite(c->count) && c->count >= 0, "its number");
	}
	free(m.list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	check(fd, false);
	check(fd, true);
	close(fd);
	return 0;
}
