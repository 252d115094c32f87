/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the programs of the account of wall time and user space, so it includes nothing. */
#ifndef PROFIL_BPF_WALL_H
#define PROFIL_BPF_WALL_H

#define WALL_COMM_SIZE 16

enum wall_state {
	WALL_BLOCKED,
	WALL_WAITS, /* for a CPU */
	WALL_RUNS,
};

enum wall_flags {
	WALL_EXITED = 1,  /* these are its last values */
	WALL_OUTSIDE = 2, /* it is not in the control groups, or not of the user, that are meant */
	WALL_EXITING = 4, /* it may have passed send_exit(), before that was attached */
};

/*
 * What the kernel has added up for a thread until now_ns. CPU time is without what interrupts and
 * the host of a virtual machine took while the thread ran, where the kernel can tell.
 */
struct wall_thread {
	unsigned long long task;     /* the address of its task: another thread may get it later */
	unsigned long long start_ns; /* CLOCK_MONOTONIC; exec gives a thread that of the leader */
	unsigned long long now_ns;   /* the scheduler's clock */
	unsigned long long ran_ns;
	unsigned long long waited_ns; /* for a CPU */
	unsigned long long blocks;    /* how often it gave up its CPU by itself */
	unsigned int pid, tid;	      /* in user space's PID namespace */
	unsigned int state;	      /* enum wall_state */
	unsigned int flags;	      /* enum wall_flags */
	char comm[WALL_COMM_SIZE];
	char process_comm[WALL_COMM_SIZE];
};

/* Of the name of a control group. A longer one is truncated. */
#define WALL_GROUP_NAME_SIZE 128

/*
 * How many groups there is room for, and at how many levels below the root.
 * Bound: users: control groups with a quota, and those above; then: a group is not followed: its
 * throttled time is missing; again: when others are removed; share: none; seen:
 * wall_throttled_lost.
 */
#define WALL_GROUPS	  2048
#define WALL_GROUP_LEVELS 16

/* What a quota has done since its control group was made. */
struct wall_throttled {
	unsigned long long ns; /* of all CPUs' run queues */
	unsigned int periods, throttled_periods;
};

/* A control group with a quota of CPU time, or one above it, as the kernel had it last. */
struct wall_group {
	unsigned long long parent;   /* ID; 0: the root */
	unsigned long long quota_ns; /* every every_ns, of all CPUs; WALL_NO_QUOTA: none */
	unsigned long long every_ns;
	struct wall_throttled first, last; /* when it was first seen, and last */
	unsigned int look;		   /* wall_shared.look, then */
	unsigned int unused;
	char name[WALL_GROUP_NAME_SIZE]; /* "": no thread of the target was seen in it */
};

#define WALL_NO_QUOTA (~0ULL)

/*
 * Threads that end between two readings of the buffer: 9,000.
 * Bound: users: bytes of threads that ended, on their way to user space; then: that thread's time
 * is unknown; again: at the next reading, ten times a second; share: none; seen: wall_lost_threads.
 */
#define WALL_RING_BYTES (1U << 20)

/* What the programs and user space tell each other while they run. */
struct wall_shared {
	long long clock_offset;		/* from CLOCK_MONOTONIC to the scheduler's clock */
	unsigned long long cpu_clock;	/* of the CPU that read_clock ran on */
	unsigned int cpu;		/* the number of that CPU */
	unsigned int look;		/* how often user space has looked */
	unsigned long long exits_lost;	/* the ring buffer was full */
	unsigned long long groups_lost; /* times that a group found no room */
	unsigned long long last_group;	/* address of the one that the iterator saw last */
};

#endif
