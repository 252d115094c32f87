/* SPDX-License-Identifier: GPL-2.0-only */
/* What the sample programs and user space exchange. Included by both, so it includes nothing. */
#ifndef PROFIL_BPF_SAMPLE_H
#define PROFIL_BPF_SAMPLE_H

/*
 * Who and in which mode, in one word that is never 0:
 *   bit 63      always 1
 *   bit 62      the tick came in the kernel
 *   bits 61..44 how many times the thread's process has called exec, modulo 2^18
 *   bits 43..22 process (tgid)
 *   bits 21..0  thread (tid)
 * Linux process numbers end below 2^22 (PID_MAX_LIMIT).
 */
#define SAMPLE_ID_VALID	 (1ULL << 63)
#define SAMPLE_ID_KERNEL (1ULL << 62)

#define SAMPLE_PID_BITS	 22
#define SAMPLE_EXEC_BITS 18

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

/*
 * One pc in the table, and one record of the ring buffer. In the table pc is written first, by the
 * CPU that claims the place; id follows, and the sample is valid once id is not 0. Two samples may
 * have the same pc and id: sum them.
 */
struct sample {
	unsigned long long pc; /* 0 in an empty place */
	unsigned long long id;
	unsigned long long first_ns; /* CLOCK_MONOTONIC of its first tick */
	unsigned long long count;
};

#define SAMPLE_PER_BUCKET 3

/*
 * The table is an array of buckets. A tick belongs to the bucket that its pc and thread hash to,
 * is told there, and counted there or in one of the next. A tick that finds the table warm or cold
 * so touches two neighbouring cache lines and no others.
 */
struct sample_bucket {
	unsigned long long ticks; /* that belong here, whatever became of them */
	unsigned long long unused[3];
	struct sample samples[SAMPLE_PER_BUCKET];
};

/* A power of two: 4 MiB, for 98,304 samples. */
#define SAMPLE_BUCKETS (1U << 15)
/* How many buckets are tried for one pc before it goes to the ring buffer. */
#define SAMPLE_PROBES	  6
#define SAMPLE_RING_BYTES (1U << 20)

/* --- Call stacks: programs that are asked for them count into these instead. --- */

#define STACK_DEPTH_MAX 127 /* frames of user space and of the kernel, each */

/* A stack is these words, as far as it goes: two stacks are one when all are the same. */
struct stack {
	unsigned long long id;
	unsigned short kernel_depth, user_depth;
	unsigned char end;		/* enum unwind_end: why the user's frames end */
	unsigned char by_frame_pointer; /* some of the user's callers were found so */
	unsigned short unused;
	/*
	 * Leaf first: the kernel's, and behind them the user's. All but the leaf are return
	 * addresses: 1 is to be taken off them.
	 */
	unsigned long long pcs[2 * STACK_DEPTH_MAX];
};

#define STACK_HEAD_WORDS 2
#define STACK_WORDS_MAX	 (STACK_HEAD_WORDS + 2 * STACK_DEPTH_MAX)

static inline unsigned int stack_words(const struct stack *stack)
{
	return STACK_HEAD_WORDS + stack->kernel_depth + stack->user_depth;
}

/*
 * Each stack that was met is written once, into the arena: an array of 64-bit words, of which the
 * first tells how many are in use behind it. It is cut into chunks, since the kernel has no larger
 * values. A stack begins in the chunk that its place tells, and may take words of the reserve at
 * its end. 32 MiB.
 */
#define STACK_CHUNK_WORDS (1U << 17)
#define STACK_CHUNKS	  32
#define STACK_ARENA_WORDS (STACK_CHUNKS * STACK_CHUNK_WORDS)

struct stack_chunk {
	unsigned long long words[STACK_CHUNK_WORDS];
	unsigned long long reserve[STACK_WORDS_MAX];
};

/*
 * The table of stacks, as that of pcs above. hash is written first, by the CPU that claims the
 * entry; place follows when the stack is in the arena, and the entry is valid from then on. The
 * hash only finds an entry: whether it is the same stack is told by all its words.
 */
struct stack_entry {
	unsigned long long hash;  /* 0 in an empty entry */
	unsigned long long place; /* the stack's first word in the arena */
	unsigned long long first_ns;
	unsigned long long count;
};

struct stack_bucket {
	unsigned long long ticks;
	unsigned long long unused[3];
	struct stack_entry entries[SAMPLE_PER_BUCKET];
};

/* One record of the ring buffer, as long as its stack. */
struct stack_sample {
	unsigned long long time_ns;
	struct stack stack;
};

#define STACK_RING_BYTES (1U << 22)

/* --- */

/* What is rare, for each CPU; 64 bytes, so that no two CPUs share a cache line. */
struct sample_counters {
	unsigned long long excluded;  /* ticks on the side that was not asked for: in no bucket */
	unsigned long long ring;      /* counted through the ring buffer */
	unsigned long long ring_full; /* lost: table and ring buffer full */
	unsigned long long timed;     /* ticks whose run time was taken */
	unsigned long long timed_ns;  /* their run time */
	unsigned long long unused[3];
};

/* Which ticks are counted. */
#define SAMPLE_USER   1 /* those in user mode */
#define SAMPLE_KERNEL 2 /* those in the kernel */
/* At which pc a tick in the kernel is counted: without this, where it left user mode. */
#define SAMPLE_KERNEL_PC 4

#endif
