/* SPDX-License-Identifier: GPL-2.0-only */
/* Waits of threads: shared by the sample programs and user space. */
#ifndef PROFIL_BPF_WAIT_H
#define PROFIL_BPF_WAIT_H

#include "unwind_table.h"

/* Whether a thread that waits for this may have no work until the wait ends. */
enum wait_idle {
	WAIT_WORKS,  /* it has work */
	WAIT_LOOPS,  /* it has none in the place where its loop waits */
	WAIT_EVENTS, /* they come from outside: nor where it has waited once, and nowhere lower */
	WAIT_IDLES,  /* it has none, wherever it is */
};

/*
 * For what a thread waits. X(NUMBER, name, idle, calls): the name is shown, and is the value of
 * --reason; idle is an enum wait_idle; calls are the system calls in which a thread waits for this.
 * WAIT_CPU is no block: the thread could run, and another one has its CPU.
 */
#define WAIT_REASON_LIST(X)                                                                    \
	X(OTHER, "other", WAIT_LOOPS)                                                          \
	X(CPU, "cpu", WAIT_WORKS)                                                              \
	X(LOCK, "lock", WAIT_WORKS, SYS_flock, SYS_fcntl) /* of a file, or a range of it */    \
	X(CONDITION, "condition", WAIT_LOOPS, SYS_futex_waitv)                                 \
	X(JOIN, "join", WAIT_WORKS)                                                            \
	X(SLEEP, "sleep", WAIT_LOOPS, SYS_nanosleep, SYS_clock_nanosleep)                      \
	X(CHILD, "child", WAIT_WORKS, SYS_wait4, SYS_waitid, SYS_vfork, SYS_clone, SYS_clone3) \
	X(SOCKET, "socket", WAIT_LOOPS)                                                        \
	X(ACCEPT, "accept", WAIT_IDLES, SYS_accept, SYS_accept4)                               \
	X(PIPE, "pipe", WAIT_LOOPS)                                                            \
	X(TERMINAL, "terminal", WAIT_EVENTS)                                                   \
	X(FILE, "file", WAIT_WORKS, SYS_openat, SYS_open) /* a pipe's other end */             \
	X(EVENT, "event", WAIT_LOOPS)                                                          \
	X(DISK, "disk", WAIT_WORKS, SYS_sync, SYS_msync)                                       \
	X(FAULT, "fault", WAIT_WORKS)                                                          \
	X(POLL, "poll", WAIT_EVENTS, SYS_io_getevents, SYS_io_uring_enter)                     \
	X(SIGNAL, "signal", WAIT_EVENTS, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_pause)    \
	X(IPC, "ipc", WAIT_LOOPS, SYS_msgrcv, SYS_msgsnd, SYS_semop, SYS_semtimedop,           \
	  SYS_mq_timedreceive, SYS_mq_timedsend)                                               \
	X(STOPPED, "stopped", WAIT_WORKS)                                                      \
	X(KERNEL, "kernel", WAIT_IDLES)                                                        \
	X(START, "start", WAIT_WORKS)

/*
 * System calls in which something else decides. X(WHAT, calls): what select(), epoll_wait() or
 * poll() wait for; the file of the descriptor, which is the first argument: on which disk it is;
 * its kind, where the thread receives from it or sends to it; the operation of a futex.
 */
#define WAIT_DECIDER_LIST(X)                                                                     \
	X(BY_SELECT, SYS_pselect6, SYS_select)                                                   \
	X(BY_EPOLL, SYS_epoll_pwait, SYS_epoll_wait, SYS_epoll_pwait2)                           \
	X(DISK_OF_FILE, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync_file_range)               \
	X(BY_DESCRIPTOR, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_read, SYS_readv,           \
	  SYS_pread64, SYS_preadv, SYS_preadv2, SYS_splice, SYS_ioctl)                           \
	X(BY_SENDING, SYS_connect, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_write, SYS_writev, \
	  SYS_pwrite64, SYS_pwritev, SYS_pwritev2)                                               \
	X(BY_POLL, SYS_ppoll, SYS_poll)                                                          \
	X(BY_FUTEX, SYS_futex)

enum wait_reason {
#define WAIT_ENUM(number, ...) WAIT_##number,
	WAIT_REASON_LIST(WAIT_ENUM)
	/* How many there are. */
	WAIT_REASONS,
	/* What follows is in place of a reason until it is decided. */
	WAIT_DECIDERS = 0xf0,
	WAIT_DECIDER_LIST(WAIT_ENUM)
#undef WAIT_ENUM
};

/* What a thread does at the other end of what it waits for: facts by which a wait is idle or not.
 */
enum wait_role {
	WAIT_NO_ROLE,
	WAIT_SERVES, /* it waits for a client: a socket that was accepted, or listens */
	WAIT_ASKS,   /* it waits for an answer: a socket that was connected */
	WAIT_SENDS,  /* it waits until another one has read */
};

/* Who ended waits. Entries of their stacks have it in place of a reason. */
enum waker_kind {
	WAKER_THREAD = WAIT_REASONS,
	WAKER_OTHER_THREAD, /* which is not recorded: its two kernel frames are its name */
	WAKER_INTERRUPT,
	WAKER_NONE, /* no waker: a block device that waits were for */
	WAIT_KINDS,
};

/* The system calls whose numbers are below it have their reason in a list. */
#define WAIT_SYSTEM_CALLS 512

/*
 * Where waits are added up. The first WAIT_KINDS entries are those for which there was no room; the
 * others have a stack (sample.h), with the reason in place of the CPU: a hash table, as that of the
 * stacks at ticks. Wakers have entries, too, for the waits that they ended.
 */
struct wait_entry {
	unsigned long long hash;     /* 0: the entry is free */
	unsigned long long position; /* of the stack's first word in the arena */
	unsigned long long first_ns; /* CLOCK_MONOTONIC: the first wait */
	unsigned long long count;
	unsigned long long blocked_ns;
	unsigned long long runnable_ns; /* then, and with WAIT_CPU instead, it waited for a CPU */
	/*
	 * What has no struct wait_record yet, of the sums: short waits of one bucket of time. Only
	 * the thread's own switches write this.
	 */
	unsigned long long kept_end_ns; /* of the last of them, by the scheduler's clock; 0: none */
	unsigned int kept_blocked_ns, kept_runnable_ns;
};

/*
 * Bound: users: different stacks at waits, of one recording; then: the wait is added to its thread
 * and reason, then to its reason alone; again: with the next window of profild, else never; share:
 * nobody gets more than is still free; seen: waits_no_room.
 */
#define WAIT_ENTRIES (1U << 15)
#define WAIT_PROBES  32
/* A prime, so that steps of any size come to all entries; the last few are not used. */
#define WAIT_HASHED 32719U
_Static_assert(WAIT_KINDS + WAIT_HASHED <= WAIT_ENTRIES, "entries have no room");

/*
 * Whom a wait is for: the other end of a socket, of each entry, so that there are no more of them.
 * Of entries that others name as the one they wait for: a thread or a block device. Addresses of
 * IPv4 are as IPv6 maps them.
 */
struct wait_peer {
	unsigned short family; /* AF_INET6, AF_UNIX or one of those below; 0: unknown */
	unsigned short several;
	unsigned short port, own_port; /* in the machine's order */
	unsigned int pid;	       /* AF_UNIX: in the first PID namespace; 0: unknown */
	unsigned int tid;	       /* WAIT_PEER_THREAD */
	unsigned int device;	       /* WAIT_PEER_DEVICE: see wait_device() */
	unsigned int unused;
	unsigned long long address[2], own_address[2];
};

#define WAIT_PEER_THREAD 0x100 /* who has the lock */
#define WAIT_PEER_DEVICE 0x101

/* The number of a block device, as the kernel has it. */
static inline unsigned int wait_device(unsigned int major, unsigned int minor)
{
	return major << 20 | minor;
}

/*
 * What one user's threads have of the entries and their stacks, and of the pairs of a wait and its
 * waker. Where everyone is recorded, nobody gets more than is still free: one user has at most
 * half, the next one a quarter. The wait of a stack that gets no entry is added to that of its
 * thread and reason, for which there is room until a user has two thirds. Users are those who
 * began the processes, whatever they then run; in a user namespace, the one who made it. The first
 * share is the sum of all; users whose numbers collide have one together.
 * Bound: users: users whose shares of these are counted apart; then: those whose numbers collide
 * have one share together; again: with the next window of profild, else never; share: the user's
 * own; seen: waits_no_room.
 */
#define WAIT_SHARES 1024

struct wait_share {
	unsigned long long words;   /* of the arena */
	unsigned long long refused; /* waits that are without their stack */
	unsigned int entries, wakes;
	unsigned int uid; /* who was refused last */
	unsigned int records;
};

/*
 * When a thread waited: a ring of each CPU, which only this CPU fills and only user space empties,
 * as struct sample_times. A wait of WAIT_BUCKET_NS or more has a record of its own; of shorter
 * ones, all that end in the same bucket of time have one: at most 100 a second and entry; or each
 * has its own, if keeps_every_wait. A record that finds no room is lost, and its time stays in the
 * sums of the entry. The entries without a thread have no records.
 * Bound: pace.
 */
#define WAIT_BUCKET_NS 10000000
/*
 * Bound: users: times of waits of a CPU on their way to user space; then: the wait counts, but not
 * when it was; again: at the next reading, ten times a second; share: the CPU's own; seen:
 * wait_times_lost.
 */
#define WAIT_RECORDS (1U << 14)

/*
 * Bound: users: times of waits of a window of profild; then: the wait counts, but not when it was;
 * again: with the next window; share: nobody gets more than is still free; seen: wait_times_lost.
 */
#define WAIT_RECORDS_WINDOW (1U << 21)

struct wait_record {
	unsigned long long end_ns; /* by the scheduler's clock */
	unsigned long long blocked_ns;
	unsigned long long runnable_ns; /* behind it, up to end_ns */
	unsigned int slot;
	unsigned int ends; /* wait_ends() */
};

struct wait_ring {
	unsigned long long written; /* how many so far, by the CPU */
	unsigned long long unused[7];
	unsigned long long read; /* how many so far, by user space: in a cache line of its own */
	unsigned long long unused_too[7];
	struct wait_record records[WAIT_RECORDS];
};

/*
 * How much of the blocked time of an entry was for whom, and ended by which waker: another hash
 * table. The rest of an entry's time was for, and ended by, unknown ones.
 */
struct wake_entry {
	unsigned long long key; /* wake_key(); 0: the entry is free */
	unsigned long long blocked_ns;
};

/*
 * Bound: users: pairs of a wait and who ended it, of one recording; then: that wait ended by an
 * unknown one; again: with the next window of profild, else never; share: nobody gets more than is
 * still free; seen: wakers_lost.
 */
#define WAKE_ENTRIES (1U << 16)

/*
 * Who ended a wait and whom it was for, both by their entries; 0: unknown, or several. The latter
 * has a struct wait_peer, or is the waker itself: then it is its process.
 */
static inline unsigned int wait_ends(unsigned int waker, unsigned int whom)
{
	return whom << 16 | waker;
}

static inline unsigned int wait_ends_waker(unsigned int ends)
{
	return ends & 0xffff;
}

static inline unsigned int wait_ends_whom(unsigned int ends)
{
	return ends >> 16;
}

_Static_assert(WAIT_ENTRIES <= 0x10000, "numbers of entries have 16 bits");

/* Of a wait's entry, and its ends, of which one is known. */
static inline unsigned long long wake_key(unsigned int wait, unsigned int ends)
{
	return (unsigned long long)wait << 32 | ends;
}

/*
 * A stack of a wait has in place of its CPU the reason, with the role, and a flag: user space walks
 * it. Its one frame makes the entry unlike others.
 */
#define WAIT_COPIED	 0x100
#define WAIT_ROLE_SHIFT	 9
#define WAIT_REASON_MASK 0xff

static inline unsigned short wait_with_role(unsigned short reason, enum wait_role role)
{
	return reason | role << WAIT_ROLE_SHIFT;
}

static inline enum wait_role wait_role_of(unsigned short reason)
{
	return (enum wait_role)(reason >> WAIT_ROLE_SHIFT & 3);
}

/*
 * A thread that waited already when the recording, or window, began: what user space walks its
 * stack with; or a wait that ended while the window was cut.
 */
struct wait_before {
	unsigned long long id;	  /* sample.h; 0: it does not wait */
	struct wait_record ended; /* end_ns 0: none */
	unsigned long long registers[UNWIND_COPY_REGISTERS];
	unsigned long long thread_pointer; /* 0: unknown */
	unsigned int slot;		   /* of its wait */
	unsigned int unused;
};

/* Bound: pace. */
#define WAIT_TIMED_PART 8 /* the run time of one switch, and wake-up, in so many is measured */

/* Of a CPU: 128 bytes, so that no two CPUs share a cache line. */
struct wait_counters {
	unsigned long long begin_ns; /* by the scheduler's clock: of the first switch */
	unsigned long long waits;    /* that began, of threads that are recorded */
	unsigned long long walks;    /* waits whose stack was walked */
	unsigned long long
		spared; /* waits whose stack was not, as the program took too much time */
	unsigned long long no_storage;	 /* waits that are in no account, for want of memory */
	unsigned long long timed;	 /* switches whose run time was measured: one in 8 */
	unsigned long long timed_ns;	 /* the sum of their run times, and of wake-ups */
	unsigned long long wakes_lost;	 /* waits that ended by a known waker: no room for it */
	unsigned long long records_lost; /* waits that are in the sums alone: the ring was full */
	unsigned long long calls_lost;	 /* calls of a function that are in no record: call.h */
	unsigned long long completed_ns; /* CLOCK_MONOTONIC: when a disk last answered here */
	unsigned int completed_device;	 /* and which one did */
	unsigned int unused_too;
	unsigned long long unused[4];
};

/*
 * For the program find_symbols: the addresses of the kernel's symbols with these names. 0: unknown,
 * or not permitted to know.
 */
#define WAIT_SYMBOLS 4
struct wait_symbols {
	struct wait_symbol {
		char name[32];
		unsigned long long address;
	} list[WAIT_SYMBOLS];
};

#endif
