/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Members, the processes or threads whose ticks are counted: what the programs in members.h and
 * user space share. Included by both, so it includes nothing.
 */
#ifndef PROFIL_BPF_MEMBER_H
#define PROFIL_BPF_MEMBER_H

/*
 * Members at once.
 * Bound: users: processes or threads that are recorded at once, and their running threads; then: a
 * child is not recorded; a thread's CPU time is missing; again: when others end; share: none: the
 * recording's own; seen: lost_processes of --status, dropped in the summary; the CPU time is then
 * unknown.
 */
#define MEMBERS_MAX 65536

enum member_state {
	MEMBER_WAITS = 1, /* not counted, until user space changes the state */
	MEMBER_FROM_EXEC, /* not counted, until it calls exec */
	MEMBER_COUNTS,	  /* counted */
};

/* The key is the PID or TID in user space's PID namespace. */
struct member {
	unsigned int state;  /* enum member_state */
	unsigned int client; /* user space's number of the histogram that counts it */
	/* Set by the kernel; 0 at first. */
	unsigned int exiting;	    /* how many of its threads are in member_exits */
	unsigned int exited;	    /* 1: all its threads have called exit */
	unsigned int leader_exited; /* 1: its first thread has come to note_exit() */
};

/* Whose processes are recorded, and where the kernel has what bpf/owner.h reads: byte offsets. */
struct member_owner {
	unsigned int uid, gid;
	unsigned int task_cred, task_program;		     /* in struct task_struct */
	unsigned int cred_ids, cred_permitted, cred_user_ns; /* in struct cred */
	unsigned int user_ns_level;
	/* In what task_program points to: a task_exec_state in Linux 7.2, the mm_struct before. */
	unsigned int program_dumpable;
};

/*
 * A thread that has called exit. It runs on for a while, and stays in the queue member_exits until
 * it has left its CPU for good. If its task has been freed and used for another thread by then, the
 * start time is another.
 */
struct member_exit {
	unsigned long long task; /* the address of its task */
	unsigned long long start_ns;
	unsigned long long charged_ns; /* CPU time in the account already, or from before it */
	unsigned int number;	       /* the key of its member */
	unsigned int unused;
};

/*
 * Threads that exit at the same time.
 * Bound: users: threads that have called exit and still run; then: the last CPU time of further
 * ones is not charged; again: when the others have left their CPU; share: none; seen: not seen.
 */
#define MEMBER_EXITS_MAX 1024

/* A fork or exit record of a member, for user space, in the ring buffer. */
struct member_record {
	unsigned long long time_ns; /* CLOCK_MONOTONIC */
	unsigned int exited;	    /* 1: the process's leader exited; 0: fork */
	unsigned int pid, tid;
	unsigned int parent, parent_tid; /* of a fork */
	unsigned int unused;
};

/*
 * Bound: users: bytes of fork and exit records on their way to user space; then: the record is
 * lost; mappings and threads are read again from /proc; again: at the next reading, ten times a
 * second; share: none; seen: lost_mapping_records, samples in doubt.
 */
#define MEMBER_RING_BYTES (1U << 20)

/* Bound: format. */
#define MEMBER_NUMBERS (4U << 20) /* PIDs are below it: the kernel's PID_MAX_LIMIT */

/* Bound: format. */
#define MEMBER_CPU_WORDS 128 /* CPUs below 8192 */

/* What the account of times has of a thread that has not ended. */
struct member_charged {
	unsigned long long cpu_ns, runnable_ns; /* of the scheduler's sums */
	unsigned long long until_ns;		/* CLOCK_MONOTONIC: of its wall time */
};

enum member_account_state {
	ACCOUNT_OFF,
	ACCOUNT_RUNS,
	ACCOUNT_ENDS, /* threads that have exited are still charged, running threads are not */
};

/* Read by user space, which sets the first two. */
struct member_account {
	unsigned long long begin_ns; /* CLOCK_MONOTONIC; CPU time before is not counted */
	unsigned long long state;    /* enum member_account_state */
	unsigned long long cpu_ns;   /* of all members since begin_ns */
	unsigned long long runnable_ns, wall_ns; /* the same: without a CPU; since their starts */
	unsigned long long threads;		 /* whose times these are */
	unsigned long long exiting;		 /* threads in member_exits */
	unsigned long long no_member;		 /* children dropped: the map of members was full */
	unsigned long long no_record;		 /* records dropped: the ring buffer was full */
	unsigned long long cpus[MEMBER_CPU_WORDS]; /* bits: where members' threads may run */
	unsigned long long no_task; /* threads dropped from the account: the map was full */
};

#endif
