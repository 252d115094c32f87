/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The call graph of libprofil-gmon. */
#ifndef PROFIL_LIB_GMON_ARCS_H
#define PROFIL_LIB_GMON_ARCS_H

#include <stddef.h>
#include <stdint.h>

/* The profiled code, [low, high), and the executable or shared library that has it. */
struct gmon_range {
	uintptr_t low, high;
	uintptr_t image_low, image_high;
	uintptr_t load_bias; /* address in memory minus the image's own address */
};

/* A number of calls: 32 bits, which all machines add to atomically, and how often they wrapped. */
struct gmon_count {
	uint32_t low, wraps;
};

static inline uint64_t gmon_count_value(const struct gmon_count *count)
{
	uint64_t wraps = __atomic_load_n(&count->wraps, __ATOMIC_RELAXED);

	return wraps << 32 | __atomic_load_n(&count->low, __ATOMIC_ACQUIRE);
}

/* `self` was called from `from`: addresses inside the two functions. */
struct gmon_arc {
	uintptr_t from, self;
	uint32_t next; /* in the same bucket: an index into the arcs; 0: none */
};

/*
 * The arcs from a range. Never freed or moved: a signal handler may hold up a thread in the middle
 * of counting for any time.
 */
struct gmon_arcs {
	struct gmon_arcs *next;
	struct gmon_range range;
	uint32_t limit;
	uint32_t used;	    /* up to `limit`, or a little above while threads add arcs */
	unsigned int shift; /* shifts a hash to the number of its bucket */
	uint32_t *buckets;  /* the first arc of each */
	struct gmon_arc
		*arcs; /* `limit` of them; number 0 is for calls that found the table full */
	/*
	 * 1 << shard_bits shards of `limit` counts. The calls of an arc are the sum of its counts
	 * in all shards: with one count, CPUs would contend for its cache line at each call.
	 */
	unsigned int shard_bits;
	struct gmon_count *counts;
};

/* Returns the number of the last arc plus one. Arcs with count 0 may be incomplete. */
static inline uint32_t gmon_arcs_end(const struct gmon_arcs *arcs)
{
	uint32_t used = __atomic_load_n(&arcs->used, __ATOMIC_RELAXED);

	return used < arcs->limit ? used : arcs->limit;
}

/* Returns the calls of an arc; of arc 0: those that found the table full. */
static inline uint64_t gmon_arcs_calls(const struct gmon_arcs *arcs, uint32_t arc)
{
	uint64_t calls = 0;

	for (size_t shard = 0; shard < (size_t)1 << arcs->shard_bits; shard++)
		calls += gmon_count_value(&arcs->counts[shard * arcs->limit + arc]);
	return calls;
}

/* Returns an empty table for the range; NULL without memory. */
struct gmon_arcs *profil__arcs_open(const struct gmon_range *range);

/* Calls are counted in this table from now on; NULL: not at all. */
void profil__arcs_count(struct gmon_arcs *arcs);

#ifdef __i386__
#define GMON_IN_REGISTERS __attribute__((regparm(2)))
#else
#define GMON_IN_REGISTERS
#endif

/*
 * Called by mcount(), at each call of a function of the program. It has the name of libc's
 * function, whose time gprof does not add to the program's: static programs have it among their own
 * code.
 */
GMON_IN_REGISTERS void __mcount_internal(uintptr_t from, uintptr_t self);

#endif
