/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose ticks count: what the programs in members.h and user space exchange. Included by both, so
 * it includes nothing.
 */
#ifndef PROFIL_BPF_MEMBER_H
#define PROFIL_BPF_MEMBER_H

/* Processes, or threads, at once. */
#define MEMBERS_MAX 65536

enum member_state {
	MEMBER_WAITS = 1, /* until user space says so */
	MEMBER_FROM_EXEC, /* until it calls exec */
	MEMBER_COUNTS,
};

/* By its number in user space's pid namespace. */
struct member {
	unsigned int state;  /* enum member_state */
	unsigned int client; /* user space's own number for what it is counted in */
	/* Kept by the kernel; 0 at first. */
	unsigned int exiting; /* its threads in member_exits */
	unsigned int exited;  /* 1: all its threads are in there or were */
};

/*
 * A thread that exits, which runs on for a while: in the queue member_exits until it has left its
 * CPU for good. Its memory may be another thread's by then, which began at another time.
 */
struct member_exit {
	unsigned long long task; /* the address that the kernel has it at */
	unsigned long long start_ns;
	unsigned long long charged_ns; /* of its CPU time: is in the account, or came before it */
	unsigned int number;	       /* of its member */
	unsigned int unused;
};

/* Of threads that exit at the same time. */
#define MEMBER_EXITS_MAX 1024

/* A fork or exit record of a member, sent to user space through the ring buffer. */
struct member_record {
	unsigned long long time_ns; /* CLOCK_MONOTONIC */
	unsigned int exited;	    /* 1: exit of pid's first thread; 0: fork */
	unsigned int pid, tid;
	unsigned int parent, parent_tid; /* of a fork */
	unsigned int unused;
};

#define MEMBER_RING_BYTES (1U << 20)

#define MEMBER_NUMBERS (4U << 20) /* of processes, at most: the kernel's PID_MAX_LIMIT */

#define MEMBER_CPU_WORDS 128 /* CPUs below 8192 */

enum member_account_state {
	ACCOUNT_OFF,
	ACCOUNT_RUNS,
	ACCOUNT_ENDS, /* what has exited is charged, what runs on is not */
};

/* User space reads it, and sets the first two. */
struct member_account {
	unsigned long long begin_ns; /* CLOCK_MONOTONIC; CPU time before is not of the account */
	unsigned long long state;    /* enum member_account_state */
	unsigned long long cpu_ns;
	unsigned long long exiting;   /* threads in member_exits */
	unsigned long long no_member; /* children dropped: the map of members was full */
	unsigned long long no_record; /* records dropped: the ring buffer was full */
	unsigned long long cpus[MEMBER_CPU_WORDS]; /* bits: those that a thread may run on */
	unsigned long long no_task; /* threads whose CPU time is not all known: a map was full, or
				     * their memory was another's by then */
};

#endif
