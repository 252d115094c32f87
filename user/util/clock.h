/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_CLOCK_H
#define PROFIL_UTIL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* 0: the clock does not exist. */
static inline uint64_t clock_resolution_ns(clockid_t clock)
{
	struct timespec resolution = { 0 };

	clock_getres(clock, &resolution);
	return resolution.tv_sec * NS_PER_S + resolution.tv_nsec;
}

/* The CPU time in a struct rusage. */
static inline uint64_t rusage_ns(const struct rusage *r)
{
	return (r->ru_utime.tv_sec + r->ru_stime.tv_sec) * NS_PER_S +
	       (r->ru_utime.tv_usec + r->ru_stime.tv_usec) * UINT64_C(1000);
}

/* CLOCK_MONOTONIC: the clock of the kernel's records and samples. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/*
 * What CLOCK_REALTIME shows at a moment of CLOCK_MONOTONIC. This thread may lose its CPU between a
 * look at the one and a look at the other: of some looks, the one that took least time counts.
 */
static inline uint64_t time_of_day_ns(uint64_t ns)
{
	uint64_t shortest = UINT64_MAX, offset = 0;

	for (int i = 0; i < 10 && shortest > 10000; i++) {
		uint64_t begin = now_ns(), time = clock_ns(CLOCK_REALTIME), took = now_ns() - begin;

		if (took < shortest) {
			shortest = took;
			offset = time - begin - took / 2;
		}
	}
	return ns + offset;
}

struct time_text {
	char text[64];
};

/* A time of CLOCK_REALTIME as strftime(3) writes it: in UTC, or local; "": it has no date. */
static inline struct time_text time_text(uint64_t seconds, bool utc, const char *format)
{
	time_t time = (time_t)seconds;
	struct time_text t;
	struct tm tm;

	if (!(utc ? gmtime_r(&time, &tm) : localtime_r(&time, &tm)) ||
	    !strftime(t.text, sizeof(t.text), format, &tm))
		t.text[0] = '\0';
	return t;
}

#endif
