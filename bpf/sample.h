/* SPDX-License-Identifier: GPL-2.0-only */
/* What the sample programs and user space exchange. Included by both, so it includes nothing. */
#ifndef PROFIL_BPF_SAMPLE_H
#define PROFIL_BPF_SAMPLE_H

/*
 * Who and in which mode, in one word that is never 0:
 *   bit 63      always 1
 *   bit 62      the tick came in the kernel
 *   bit 61      the tick came from the program "sample_late"
 *   bits 60..44 how many times the thread's process has called exec, modulo 2^17
 *   bits 43..22 process (tgid)
 *   bits 21..0  thread (tid)
 * Linux process numbers end below 2^22 (PID_MAX_LIMIT).
 */
#define SAMPLE_ID_VALID	 (1ULL << 63)
#define SAMPLE_ID_KERNEL (1ULL << 62)
#define SAMPLE_ID_LATE	 (1ULL << 61)

#define SAMPLE_PID_BITS	 22
#define SAMPLE_EXEC_BITS 17

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
 * One slot of the table, and one record of the ring buffer. In the table pc is written first,
 * by the CPU that claims the slot; id follows, and the slot is valid once id is not 0.
 * Two slots may hold the same pc and id: sum them.
 */
struct sample {
	unsigned long long pc; /* 0 in an empty slot */
	unsigned long long id;
	unsigned long long first_ns; /* CLOCK_MONOTONIC of its first tick */
	unsigned long long count;
};

/* A power of two: 4 MiB of samples. */
#define SAMPLE_SLOTS (1U << 17)
/* How many slots are tried for one pc before it goes to the ring buffer. */
#define SAMPLE_PROBES	  16
#define SAMPLE_RING_BYTES (1U << 20)

/* One of these for each CPU; 64 bytes, so that no two CPUs share a cache line. */
struct sample_counters {
	unsigned long long ticks;     /* every run of the program */
	unsigned long long counted;   /* in the table or the ring buffer */
	unsigned long long kernel;    /* of the counted: in the kernel */
	unsigned long long excluded;  /* on the side that was not asked for */
	unsigned long long ring_full; /* lost: table and ring buffer full */
	unsigned long long ring;      /* of the counted: through the ring buffer */
	unsigned long long timed;     /* ticks whose run time was taken */
	unsigned long long timed_ns;  /* their run time */
};

/* Which ticks are counted. */
#define SAMPLE_USER   1 /* those in user mode */
#define SAMPLE_KERNEL 2 /* those in the kernel */
/* At which pc a tick in the kernel is counted: without this, where it left user mode. */
#define SAMPLE_KERNEL_PC 4

#endif
