// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The call graph: a hash table of (caller, callee) that all threads and their signal handlers
 * count into without a lock. An arc that is in a bucket never changes but for its count, so that
 * buckets can be read at any time; arcs come into a bucket at its front, by compare-and-swap.
 */
#include "lib/gmon.h"

#include <stdbool.h>
#include <sys/mman.h>

/*
 * One arc for 8 bytes of code. Code has a call for each 25 bytes or so, few of which have more than
 * one callee, and few are ever made. Memory that is not used stays unmapped.
 */
#define CODE_PER_ARC 8
#define FEWEST_ARCS  4096
#define MOST_ARCS    (1 << 22)

/*
 * Callers of mcount() have live values in vector registers, which mcount.S does not save. And a
 * build with -pg must not make it call itself.
 */
#define IN_MCOUNT __attribute__((target("general-regs-only"), no_instrument_function))

static struct gmon_arcs *counting;   /* what calls are counted in, or NULL */
static struct gmon_arcs *all_tables; /* one for each range that there ever was */

IN_MCOUNT static uint32_t *bucket_of(const struct gmon_arcs *t, uintptr_t from, uintptr_t self)
{
	uintptr_t hash = (from ^ self << 7) * (uintptr_t)0x9e3779b97f4a7c15;

	return &t->buckets[hash >> t->shift];
}

/* Looks from arc `first` on, up to but not including arc `last`. */
IN_MCOUNT static struct gmon_arc *find(const struct gmon_arcs *t, uint32_t first, uint32_t last,
				       uintptr_t from, uintptr_t self)
{
	while (first != last) {
		struct gmon_arc *arc = &t->arcs[first];

		if (arc->from == from && arc->self == self)
			return arc;
		first = arc->next;
	}
	return NULL;
}

/*
 * Puts the arc in front of its bucket, whose first arc is `head`; or finds it there, when another
 * thread or a signal handler was faster. Its own arc then stays unused, with count 0.
 */
IN_MCOUNT static struct gmon_arc *insert(struct gmon_arcs *t, uint32_t *bucket, uint32_t head,
					 uintptr_t from, uintptr_t self)
{
	struct gmon_arc *arc, *found;
	uint32_t number;

	/* Looked at first, lest the number goes up until it wraps. */
	if (__atomic_load_n(&t->used, __ATOMIC_RELAXED) >= t->limit)
		return NULL;
	number = __atomic_fetch_add(&t->used, 1, __ATOMIC_RELAXED);
	if (number >= t->limit)
		return NULL;
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
	return arc;
}

IN_MCOUNT static void add_one(struct gmon_count *count)
{
	if (!__atomic_add_fetch(&count->low, 1, __ATOMIC_RELEASE))
		__atomic_fetch_add(&count->wraps, 1, __ATOMIC_RELAXED);
}

IN_MCOUNT GMON_IN_REGISTERS void __mcount_internal(uintptr_t from, uintptr_t self)
{
	struct gmon_arcs *t = __atomic_load_n(&counting, __ATOMIC_ACQUIRE);
	struct gmon_arc *arc;
	uint32_t *bucket, head;

	if (!t || from - t->range.low >= t->range.high - t->range.low)
		return;
	bucket = bucket_of(t, from, self);
	head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	arc = find(t, head, 0, from, self);
	if (!arc)
		arc = insert(t, bucket, head, from, self);
	add_one(arc ? &arc->count : &t->lost);
}

void profil__arcs_count(struct gmon_arcs *arcs)
{
	__atomic_store_n(&counting, arcs, __ATOMIC_RELEASE);
}

static struct gmon_arcs *make_table(const struct gmon_range *range)
{
	size_t limit = (range->high - range->low) / CODE_PER_ARC;
	unsigned int bits = 0;
	struct gmon_arcs *t;
	char *memory;
	size_t size;

	if (limit < FEWEST_ARCS)
		limit = FEWEST_ARCS;
	if (limit > MOST_ARCS)
		limit = MOST_ARCS;
	while (1U << bits < limit)
		bits++;
	/* In the order of their alignment. */
	size = sizeof(*t) + limit * sizeof(*t->arcs) + (sizeof(*t->buckets) << bits);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	t = (struct gmon_arcs *)memory;
	t->arcs = (struct gmon_arc *)(t + 1);
	t->buckets = (uint32_t *)(t->arcs + limit);
	t->range = *range;
	t->limit = limit;
	t->used = 1; /* arc 0 stands for none */
	t->shift = sizeof(uintptr_t) * 8 - bits;
	return t;
}

static void clear_count(struct gmon_count *count)
{
	__atomic_store_n(&count->low, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&count->wraps, 0, __ATOMIC_RELAXED);
}

static void clear_counts(struct gmon_arcs *t)
{
	for (uint32_t i = 1; i < gmon_arcs_end(t); i++)
		clear_count(&t->arcs[i].count);
	clear_count(&t->lost);
}

struct gmon_arcs *profil__arcs_open(const struct gmon_range *range)
{
	struct gmon_arcs *t = all_tables;

	while (t && (t->range.low != range->low || t->range.high != range->high))
		t = t->next;
	if (t) {
		clear_counts(t);
		return t;
	}
	t = make_table(range);
	if (t) {
		t->next = all_tables;
		all_tables = t;
	}
	return t;
}
