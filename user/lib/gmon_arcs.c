// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The call graph: a hash table of (caller, callee), in which all threads and their signal handlers
 * count without a lock. An arc in a bucket never changes, so that buckets can be read at any time;
 * new arcs are put at the front of a bucket by compare-and-swap.
 */
#include "lib/gmon_arcs.h"

#include <stdbool.h>
#include <sys/mman.h>

/*
 * One arc for 8 bytes of code. Code has a call in some 25 bytes; few calls have more than one
 * callee, and few are ever made. Unused memory is never touched, so it takes no pages.
 */
#define CODE_PER_ARC 8
#define FEWEST_ARCS  4096
/* Bound: caller: different calls of a program; then: further ones are not in the call graph. */
#define MOST_ARCS (1 << 22)

/* 64 shards of counts, or as many as fit into this size, but at least 2. Bound: size. */
#define MOST_SHARD_BITS	 6
#define MOST_COUNTS_SIZE (sizeof(uintptr_t) == 8 ? (size_t)1 << 28 : (size_t)1 << 24)

/* Stacks of threads that are this far apart (1 << 14 bytes) have different shards. */
#define STACK_BITS 14

/* Bound: format. */
#define CACHE_LINE 64

/*
 * For functions that mcount() calls: mcount.S does not save vector registers, which have live
 * values of the program; and a build with -pg must not have them call mcount().
 */
#define IN_MCOUNT __attribute__((target("general-regs-only"), no_instrument_function))

/* For the slow path: inlined, it would have __mcount_internal() save more registers. */
#define RARELY __attribute__((noinline))

static struct gmon_arcs *counting;   /* the table that calls are counted in; NULL: none */
static struct gmon_arcs *all_tables; /* one for each range that was ever used */

/* Searches a bucket from arc `first` up to, but not including, arc `last`. Returns 0: not found. */
IN_MCOUNT static uint32_t find(const struct gmon_arcs *t, uint32_t first, uint32_t last,
			       uintptr_t from, uintptr_t self)
{
	while (first != last) {
		const struct gmon_arc *arc = &t->arcs[first];

		if (arc->from == from && arc->self == self)
			return first;
		first = arc->next;
	}
	return 0;
}

/*
 * Puts a new arc at the front of its bucket, whose first arc is `head`; or finds it there, if
 * another thread or a signal handler was faster: then the new arc stays unused, with count 0.
 * Returns its number; 0: the table is full.
 */
IN_MCOUNT RARELY static uint32_t insert(struct gmon_arcs *t, uint32_t *bucket, uint32_t head,
					uintptr_t from, uintptr_t self)
{
	uint32_t number, found;
	struct gmon_arc *arc;

	/* Read first, lest the number is incremented until it wraps. */
	if (__atomic_load_n(&t->used, __ATOMIC_RELAXED) >= t->limit)
		return 0;
	number = __atomic_fetch_add(&t->used, 1, __ATOMIC_RELAXED);
	if (number >= t->limit)
		return 0;
	arc = &t->arcs[number];
	arc->from = from;
	arc->self = self;
	arc->next = head;
	while (!__atomic_compare_exchange_n(bucket, &head, number, false, __ATOMIC_RELEASE,
					    __ATOMIC_ACQUIRE)) {
		found = find(t, head, arc->next, from, self);
		if (found)
			return found;
		arc->next = head;
	}
	return number;
}

/*
 * The thread's shard is chosen by the address of its stack: that takes no thread-local variable,
 * which the dynamic linker may have to allocate, and no system call, and works in signal handlers.
 * Threads that share a shard are slower, but their counts are exact as well.
 */
IN_MCOUNT GMON_IN_REGISTERS void __mcount_internal(uintptr_t from, uintptr_t self)
{
	struct gmon_arcs *t = __atomic_load_n(&counting, __ATOMIC_ACQUIRE);
	uint32_t stack = (uintptr_t)__builtin_frame_address(0) >> STACK_BITS;
	uintptr_t hash = (from ^ self << 7) * (uintptr_t)0x9e3779b97f4a7c15;
	uint32_t *bucket, head, arc;
	struct gmon_count *count;

	if (!t || from - t->range.low >= t->range.high - t->range.low)
		return;
	bucket = &t->buckets[hash >> t->shift];
	head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	arc = find(t, head, 0, from, self);
	if (!arc)
		arc = insert(t, bucket, head, from, self);
	count = t->counts +
		(size_t)(stack * UINT32_C(0x9e3779b9) >> (32 - t->shard_bits)) * t->limit;
	if (!__atomic_add_fetch(&count[arc].low, 1, __ATOMIC_RELEASE))
		__atomic_fetch_add(&count[arc].wraps, 1, __ATOMIC_RELAXED);
}

void profil__arcs_count(struct gmon_arcs *arcs)
{
	__atomic_store_n(&counting, arcs, __ATOMIC_RELEASE);
}

static struct gmon_arcs *make_table(const struct gmon_range *range)
{
	size_t limit = (range->high - range->low) / CODE_PER_ARC;
	const size_t header = (sizeof(struct gmon_arcs) + CACHE_LINE - 1) & -CACHE_LINE;
	unsigned int bits = 0, shard_bits = MOST_SHARD_BITS;
	struct gmon_arcs *t;
	size_t size, counts;
	char *memory;

	if (limit < FEWEST_ARCS)
		limit = FEWEST_ARCS;
	if (limit > MOST_ARCS)
		limit = MOST_ARCS;
	while (1U << bits < limit)
		bits++;
	/* No two shards have counts in one cache line. */
	limit = (limit + CACHE_LINE - 1) & -CACHE_LINE;
	while (shard_bits > 1 && limit * sizeof(*t->counts) << shard_bits > MOST_COUNTS_SIZE)
		shard_bits--;
	counts = limit << shard_bits;
	/* In descending order of alignment. */
	size = header + counts * sizeof(*t->counts) + limit * sizeof(*t->arcs) +
	       (sizeof(*t->buckets) << bits);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	/*
	 * Few of the counts are ever used: a huge page would take 2 MiB for one of them. An error
	 * means that the kernel has no huge pages.
	 */
	madvise(memory, size, MADV_NOHUGEPAGE);
	t = (struct gmon_arcs *)memory;
	t->shard_bits = shard_bits;
	t->counts = (struct gmon_count *)(memory + header);
	t->arcs = (struct gmon_arc *)(t->counts + counts);
	t->buckets = (uint32_t *)(t->arcs + limit);
	t->range = *range;
	t->limit = limit;
	t->used = 1; /* arc 0 stands for none */
	t->shift = sizeof(uintptr_t) * 8 - bits;
	return t;
}

struct gmon_arcs *profil__arcs_open(const struct gmon_range *range)
{
	struct gmon_arcs *t = all_tables;
	uint32_t end;

	while (t && (t->range.low != range->low || t->range.high != range->high))
		t = t->next;
	if (!t) {
		t = make_table(range);
		if (t) {
			t->next = all_tables;
			all_tables = t;
		}
		return t;
	}
	/* Does not write to counts that are 0 already, so that they take no pages. */
	end = gmon_arcs_end(t);
	for (size_t first = 0; first < (size_t)t->limit << t->shard_bits; first += t->limit)
		for (size_t i = first; i < first + end; i++) {
			if (!gmon_count_value(&t->counts[i]))
				continue;
			__atomic_store_n(&t->counts[i].low, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&t->counts[i].wraps, 0, __ATOMIC_RELAXED);
		}
	return t;
}
