/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the files of libprofil-gmon share: the runtime of programs that were built with gcc -pg, in
 * the place of libc's.
 */
#ifndef PROFIL_LIB_GMON_H
#define PROFIL_LIB_GMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/profil.h"

/* The code that is profiled, [low, high), and the executable or shared library that it is in. */
struct gmon_range {
	uintptr_t low, high;
	uintptr_t image_low, image_high;
	uintptr_t load_bias; /* how much higher the image is in memory than by its own addresses */
};

/* --- The call graph: gmon_arcs.c --- */

/* How often a call was made: in 32 bits, which all machines add to atomically, and their wraps. */
struct gmon_count {
	uint32_t low, wraps;
};

static inline uint64_t gmon_count_value(const struct gmon_count *count)
{
	uint64_t wraps = __atomic_load_n(&count->wraps, __ATOMIC_RELAXED);

	return wraps << 32 | __atomic_load_n(&count->low, __ATOMIC_ACQUIRE);
}

/* That `self` was called from `from`: addresses in these functions, not their first ones. */
struct gmon_arc {
	uintptr_t from, self;
	uint32_t next; /* in its bucket: an index into the arcs, 0 for none */
};

/*
 * The arcs from a range. It is never freed nor moved: any thread may be in the middle of counting,
 * held up by a signal for ever.
 */
struct gmon_arcs {
	struct gmon_arcs *next;
	struct gmon_range range;
	uint32_t limit;
	uint32_t used;	       /* up to `limit`, or a little above when threads are at it */
	unsigned int shift;    /* of the hash, which makes it the number of a bucket */
	uint32_t *buckets;     /* the first arc of each */
	struct gmon_arc *arcs; /* `limit` of them; the first stands for calls that found no room */
	/*
	 * 1 << shard_bits times `limit` counts. An arc has one in each of these shards, lest CPUs
	 * take the cache line of a count away from each other at each call: its calls are the sum.
	 */
	unsigned int shard_bits;
	struct gmon_count *counts;
};

/* One more than the number of the last arc; those with count 0 may not be complete yet. */
static inline uint32_t gmon_arcs_end(const struct gmon_arcs *arcs)
{
	uint32_t used = __atomic_load_n(&arcs->used, __ATOMIC_RELAXED);

	return used < arcs->limit ? used : arcs->limit;
}

/* How often an arc was called. 0: calls that found no room. */
static inline uint64_t gmon_arcs_calls(const struct gmon_arcs *arcs, uint32_t arc)
{
	uint64_t calls = 0;

	for (size_t shard = 0; shard < (size_t)1 << arcs->shard_bits; shard++)
		calls += gmon_count_value(&arcs->counts[shard * arcs->limit + arc]);
	return calls;
}

/* The arcs of the range, none of them counted yet; NULL when there is no memory. */
struct gmon_arcs *profil__arcs_open(const struct gmon_range *range);

/* Counts into these from now on; NULL: does not count. */
void profil__arcs_count(struct gmon_arcs *arcs);

#ifdef __i386__
#define GMON_IN_REGISTERS __attribute__((regparm(2)))
#else
#define GMON_IN_REGISTERS
#endif

/*
 * What mcount() calls, at each call of a function of the program. gprof knows libc's function of
 * this name, and does not reckon its time as the program's; static programs have it in their code.
 */
GMON_IN_REGISTERS void __mcount_internal(uintptr_t from, uintptr_t self);

/* --- The histogram: gmon_histogram.c --- */

struct gmon_histogram {
	struct gmon_range range; /* low and high are multiples of cell_size */
	size_t cell_size; /* bytes of code that a cell stands for: a power of two, 2 or more */
	size_t cell_count;
	uint64_t *counts; /* right while it is paused; behind them is room for reading */
	unsigned int hz;  /* ticks per second of CPU time */
	uint64_t ticks, cpu_ns, period_ns; /* of the session, while it was not paused */
	uint64_t lost; /* ticks that belong into a cell and are in none: as counts */
	bool counting;
	struct profil_session *session; /* from the first start on; NULL when there is none */
	unsigned short *buffer;		/* for libc's profil() instead, while it counts */
	size_t mapped_size;		/* of the memory at `counts`, with the rest */
};

/* An empty one of the range. Returns 0 or a negative errno. */
int profil__histogram_open(struct gmon_histogram *h, const struct gmon_range *range);

/* Begins to count, or goes on. Returns 0 or a negative errno; profil_error() says why then. */
int profil__histogram_start(struct gmon_histogram *h);

void profil__histogram_pause(struct gmon_histogram *h);

/* Ends and frees all. */
void profil__histogram_close(struct gmon_histogram *h);

/* --- gmon.out --- */

/* Writes all of the file: profil__gmon_write.c. Returns 0 or a negative errno. */
int profil__gmon_write(int fd, const struct gmon_histogram *h, const struct gmon_arcs *arcs);

/* Makes the file, with the name that the environment says; tells errors: gmon_file.c. */
void profil__gmon_make_file(const struct gmon_histogram *h, const struct gmon_arcs *arcs);

/* Says a line on descriptor 2, as libc's runtime would; a newline is added. */
void profil__gmon_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
