/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the sample programs and user space. Both include it, so it includes nothing. */
#ifndef PROFIL_BPF_SAMPLE_H
#define PROFIL_BPF_SAMPLE_H

/*
 * A sample's ID: process, thread and mode, in one word that is never 0:
 *   bit 63      always 1
 *   bit 62      the tick interrupted the kernel
 *   bits 61..50 in the table of pcs, if notes_cpu: the CPU's number + 1; else 0
 *   bits 49..44 how often the process had called exec, modulo 2^6: the walk of its stack needs it
 *   bits 43..22 process (tgid)
 *   bits 21..0  thread (tid)
 * Linux process numbers end below 2^22 (PID_MAX_LIMIT).
 */
#define SAMPLE_ID_VALID	 (1ULL << 63)
#define SAMPLE_ID_KERNEL (1ULL << 62)

#define SAMPLE_PID_BITS	 22
#define SAMPLE_EXEC_BITS 6
#define SAMPLE_CPU_BITS	 12
#define SAMPLE_CPU_SHIFT (2 * SAMPLE_PID_BITS + SAMPLE_EXEC_BITS)
#define SAMPLE_CPU_MASK	 (((1ULL << SAMPLE_CPU_BITS) - 1) << SAMPLE_CPU_SHIFT)

static inline unsigned long long sample_id_make(unsigned long long exec, unsigned int tgid,
						unsigned int tid)
{
	exec &= (1 << SAMPLE_EXEC_BITS) - 1;
	return SAMPLE_ID_VALID | exec << (2 * SAMPLE_PID_BITS) |
	       (unsigned long long)tgid << SAMPLE_PID_BITS | tid;
}

static inline unsigned int sample_id_tid(unsigned long long id)
{
	return id & ((1 << SAMPLE_PID_BITS) - 1);
}

static inline unsigned int sample_id_tgid(unsigned long long id)
{
	return id >> SAMPLE_PID_BITS & ((1 << SAMPLE_PID_BITS) - 1);
}

static inline unsigned int sample_id_exec(unsigned long long id)
{
	return id >> (2 * SAMPLE_PID_BITS) & ((1 << SAMPLE_EXEC_BITS) - 1);
}

/* Of the process alone: the key of what is known of it. */
static inline unsigned long long sample_id_process(unsigned long long id)
{
	return sample_id_make(sample_id_exec(id), sample_id_tgid(id), 0);
}

/*
 * A slot of the table. The CPU that claims a slot writes pc first and id last: the sample is valid
 * once id is not 0. Two samples may have the same pc and id: sum them.
 */
struct sample {
	unsigned long long pc; /* 0: the slot is free */
	unsigned long long id;
	unsigned long long first_ns; /* CLOCK_MONOTONIC of its first tick */
	unsigned long long count;
};

/* A tick that has no room in the table: a record of the ring buffer. */
struct sample_record {
	unsigned long long pc;
	unsigned long long id;
	unsigned long long time_ns;
	unsigned long long waiting; /* as in struct sample_bucket */
};

#define SAMPLE_PER_BUCKET 3

/*
 * The table is an array of buckets. The pc and ID of a tick hash to its home bucket. `ticks` of the
 * home bucket counts it; its sample is there or in one of the next buckets. So a tick usually
 * touches two adjacent cache lines.
 */
struct sample_bucket {
	unsigned long long ticks; /* whose home is here, wherever they are counted */
	/*
	 * Of each sample: how many threads waited for the CPU at its ticks, summed over these.
	 * Times the period, that is for how long they waited in all.
	 */
	unsigned long long waiting[SAMPLE_PER_BUCKET];
	struct sample samples[SAMPLE_PER_BUCKET];
};

/*
 * A power of two: 4 MiB, for 98,304 samples; fewer at lower frequencies.
 * Bound: users: different pcs or stacks that are counted in the kernel at a time; then: the tick
 * goes through the ring buffer; again: at the next reading, ten times a second, of a table that is
 * half full; share: none; seen: lost_ring_full, when the ring is full, too.
 */
#define SAMPLE_BUCKETS (1U << 15)
/* How many buckets a tick tries before it goes to the ring buffer. Bound: as SAMPLE_BUCKETS. */
#define SAMPLE_PROBES 6
/*
 * Bound: users: bytes of ticks on their way to user space; then: the tick is lost; again: at the
 * next reading, ten times a second; share: none; seen: lost_ring_full.
 */
#define SAMPLE_RING_BYTES (1U << 20)

/*
 * The tables, the arena and the counters have two banks, the halves of each. Ticks count in the one
 * that user space has chosen; it reads and clears the other meanwhile: when a window ends, and when
 * one fills up.
 */
#define SAMPLE_BANKS 2

/* --- Call stacks: the programs that record them use these tables instead. --- */

/*
 * Bound: users: frames of a stack, in user space and in the kernel; then: the callers beyond are
 * cut off; again: never; share: each stack's own; seen: stacks_truncated.
 */
#define STACK_DEPTH_MAX 127 /* frames of user space and of the kernel, each */

/* Stacks are equal when all their words are: see stack_words(). */
struct stack {
	unsigned long long id;
	unsigned char kernel_depth, user_depth;
	unsigned short context;		/* bpf/context.h: the number of its values; 0: none */
	unsigned char end;		/* enum unwind_end: why the user frames end */
	unsigned char by_frame_pointer; /* some user callers were found by frame pointer */
	unsigned short cpu;		/* if notes_cpu; else 0 */
	/*
	 * The kernel frames and then the user frames, each from the leaf on. All but the first are
	 * return addresses: subtract 1 to look them up.
	 */
	unsigned long long pcs[2 * STACK_DEPTH_MAX];
};

#define STACK_HEAD_WORDS 2
/* Bound: as STACK_DEPTH_MAX. */
#define STACK_WORDS_MAX (STACK_HEAD_WORDS + 2 * STACK_DEPTH_MAX)

static inline unsigned int stack_words(const struct stack *stack)
{
	return STACK_HEAD_WORDS + stack->kernel_depth + stack->user_depth;
}

/*
 * Each distinct stack is stored once, in the arena: 64-bit words, the first of which is the number
 * of words in use after it. The arena is an array of chunks, since the kernel limits the size of a
 * map value. A stack that begins near the end of a chunk extends into the reserve of that chunk.
 * Bound: size.
 */
#define STACK_CHUNK_WORDS (1U << 17)
/*
 * The most, of ticks and waits; of ticks half of it.
 * Bound: users: words of different stacks in the kernel, 32 MiB; then: the tick goes through the
 * ring buffer; again: as SAMPLE_BUCKETS; share: none; seen: lost_ring_full, when the ring is full,
 * too.
 */
#define STACK_CHUNKS	  32
#define STACK_ARENA_WORDS (STACK_CHUNKS * STACK_CHUNK_WORDS)

struct stack_chunk {
	unsigned long long words[STACK_CHUNK_WORDS];
	unsigned long long reserve[STACK_WORDS_MAX];
};

/*
 * The table of stacks works as the table of pcs above. The CPU that claims an entry writes hash
 * first and, when the stack is in the arena, position last: the entry is valid once position is not
 * 0. Equal hashes do not prove equal stacks: compare all words.
 */
struct stack_entry {
	unsigned long long hash;     /* 0: the entry is free */
	unsigned long long position; /* of the stack's first word in the arena */
	unsigned long long first_ns;
	unsigned long long count;
};

struct stack_bucket {
	unsigned long long ticks;
	unsigned long long waiting[SAMPLE_PER_BUCKET];
	struct stack_entry entries[SAMPLE_PER_BUCKET];
};

/* A record of the ring buffer; it ends with its last frame. */
struct stack_sample {
	unsigned long long time_ns;
	unsigned int waiting;
	unsigned int times; /* the number of the ring for its time */
	struct stack stack;
};

/*
 * Programs at functions (uprobes) may be preempted by others of them, so each run has a place of
 * its own: scratch memory and a ring of times. CPU n has the places n, n + the number of CPUs, and
 * so on. Bound: users: threads that are preempted in such a program, on a CPU; then: the event is
 * lost; again: when one of them has gone on; share: none; seen: lost_nested.
 */
#define SAMPLE_PLACES 8

/*
 * Times of ticks: a ring of each CPU, which only this CPU fills and only user space empties. A tick
 * whose time finds no room is counted all the same. A word of `ticks` is the tick's time, in ns of
 * CLOCK_MONOTONIC modulo 2^44 (4.9 hours), and the number of its slot, where it was counted: of its
 * bucket times SAMPLE_PER_BUCKET, plus its place in the bucket. Ticks that go through the ring
 * buffer have their time there.
 *
 * The ring holds the ticks of 0.8 s at 10 kHz, and is read ten times a second.
 * Bound: users: times of ticks of a CPU on their way to user space; then: the tick counts without
 * its time; again: at the next reading, ten times a second; share: the CPU's own; seen: lost_times.
 */
#define SAMPLE_TIMES	 (1U << 13)
#define SAMPLE_SLOT_BITS 20
_Static_assert(SAMPLE_BUCKETS *SAMPLE_PER_BUCKET <= 1U << SAMPLE_SLOT_BITS, "slots have no room");

struct sample_times {
	unsigned long long written; /* how many so far, by the CPU */
	unsigned long long lost;
	unsigned long long victims; /* how many of them wait at the tick under way */
	unsigned long long unused[5];
	unsigned long long read; /* how many so far, by user space: in a cache line of its own */
	unsigned long long unused_too[7];
	unsigned long long ticks[SAMPLE_TIMES];
};

/* Rare events of a CPU. 64 bytes, so that no two CPUs share a cache line. */
struct sample_counters {
	unsigned long long excluded;	 /* ticks in a mode that is not recorded: in no bucket */
	unsigned long long out_of_range; /* at a pc that no cell has: in no bucket */
	unsigned long long ring;	 /* samples sent through the ring buffer */
	unsigned long long ring_full;	 /* lost: table and ring buffer full */
	unsigned long long timed;	 /* ticks whose run time was measured */
	unsigned long long timed_ns;	 /* the sum of their run times */
	unsigned long long nested;	 /* lost: no place of SAMPLE_PLACES was free */
	unsigned long long unused;
};

/* Whose waits count: of a process, of threads of one name, or in a control group. */
enum sample_victims {
	SAMPLE_ALL_VICTIMS,
	SAMPLE_VICTIM_PID,
	SAMPLE_VICTIM_COMM,
	SAMPLE_VICTIM_GROUP,
};

#define SAMPLE_COMM_SIZE 16

/*
 * The cells of profil(2) in which ticks count instead of at their pcs: all as those of one process,
 * each at the first address of its cell.
 */
struct sample_cells {
	unsigned long long first, last; /* pcs, both inclusive; others are out of range */
	unsigned long long offset;	/* profil(2)'s, at most `first` */
	unsigned int scale;		/* profil(2)'s; 0: there are none */
	unsigned int process;
};

/* Which ticks are counted. */
#define SAMPLE_USER   1 /* in user mode */
#define SAMPLE_KERNEL 2 /* in the kernel */
/* A tick in the kernel is counted at the kernel's pc; without this, where it left user mode. */
#define SAMPLE_KERNEL_PC 4

#endif
