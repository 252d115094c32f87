/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits: a program at each switch from thread to thread adds up for how long the one that goes on
 * had waited, by the stack with which it had left its CPU and by the reason.
 *
 * How long it was blocked, and how long it could run and waited for a CPU, follows from the
 * kernel's own account of the latter (sched_info). A second program, at each wake-up, notes who
 * ends the wait.
 */
#ifndef PROFIL_BPF_WAITS_H
#define PROFIL_BPF_WAITS_H

#include "whom.h"
#include "unwind.h"
#include "wait.h"

/*
 * A thread's last stacks. Threads wait in few places: where the registers, and then all return
 * addresses that the walk had found are the same, so is the stack.
 * Bound: users: stacks that a thread remembers, and their frames; then: the stack is walked again;
 * again: at the next wait; share: the thread's own; seen: as waits_spared, when walks then take too
 * much.
 */
#define WAIT_PLACES	  4
#define WAIT_FRAMES	  96
#define WAIT_BLOCK_FRAMES 8 /* so many are compared by one function, for the verifier */

/*
 * A stack that is not whole is remembered for so long: the rows that it lacked may have been read
 * by then. And a wait for a set of descriptors, which may be another one.
 * Bound: pace.
 */
#define WAIT_DOUBT_NS 1000000000

/*
 * A wait shorter than WAIT_BUCKET_NS makes its place one of these: there stacks are spared first.
 * Bound: users: places of a thread that are known for short waits; then: the last one takes
 * another's place; again: at the next wait; share: the thread's own; seen: not seen.
 */
#define WAIT_SHORT_PLACES 8

/* Words of the stack that are read at once: a read costs more than what it copies. Bound: size. */
#define WAIT_WINDOW_WORDS 128

struct wait_place {
	__u64 pc, sp;
	__u64 file;	/* the address, where the reason follows from it; else 0 */
	__u64 until_ns; /* see WAIT_DOUBT_NS; 0: the stack is whole */
	__u32 slot;	/* in `waits` */
	__u16 reason;	/* perhaps WAIT_BY_DESCRIPTOR and the like */
	__u16 facts;	/* the reason, with the role */
	__u16 context;	/* of `slot`: see struct stack */
	__u16 frames;	/* 0: the place is free */
	bool script;	/* some are functions of a script */
	/* Where each frame's return address is: words from sp on; WAIT_NO_WORD: nowhere. */
	__u16 words[WAIT_FRAMES];
};

#define WAIT_NO_WORD 0xffff

#define SLOT_LATER 0xffffffff /* is being found */

struct wait_task {
	__u64 since_ns;	   /* when it left its CPU, by the scheduler's clock; 0: it has not */
	__u64 runnable_ns; /* how long it had waited for CPUs by then */
	__u64 ran_ns;	   /* and run */
	__u32 slot;	   /* where this wait will be added */
	__u32 exec;	   /* the program that the slots are of */
	struct wait_own_slots {
		__u32 runnable, kernel_thread, waker;
	} own_slots;		/* without a stack; 0: none yet */
	__u16 runnable_context; /* of own_slots.runnable */
	bool has_context;	/* as far as is known: its process has some of bpf/context.h */
	__u32 waker;	  /* who has ended the wait, in `waits`; 0: nobody has, or it is unknown */
	__u32 whom;	  /* whom it is for: see wait_ends() */
	__u16 reason;	  /* of the wait that is under way, with the role */
	__u32 next_place; /* to be overwritten next */
	__u32 exited;	  /* its account of wall time has ended */
	__u32 window;	  /* the window that the slots are of */
	__u64 cred;	  /* address of the credentials from which its user was taken */
	__u64 position;	  /* in the arena: of the stack of the wait when the last window ended */
	/*
	 * A wait that goes on through the end of a window is in neither until begin_waits() comes
	 * to it. Who ends it meanwhile is noted here, by what does not depend on a window.
	 */
	__u64 cut_ns;	  /* when the last window ended in it, as since_ns; 0: in no wait */
	__u64 cut_waker;  /* the ID of who has ended it, or WAKER_INTERRUPT; 0: nobody has */
	__u64 cut_end_ns; /* and when */
	__u32 uid;	  /* see struct wait_share */
	__u32 place;	  /* where it waits: a hash of the reason and registers; 0: for a CPU */
	__u32 short_places[WAIT_SHORT_PLACES]; /* where its last wait was short, by hash; 0: none */
	struct wait_place places[WAIT_PLACES];
};

/*
 * Bound: machine: threads whose waits are followed; memory of the kernel for each; then: the wait
 * is in no account; again: when the kernel has memory; share: none; seen: waits_lost.
 */
TASK_STORAGE(wait_tasks, struct wait_task);

MAPPED_ARRAY(waits, WAIT_ENTRIES, struct wait_entry);

MAPPED_ARRAY(wait_peers, WAIT_ENTRIES, struct wait_peer);

MAPPED_ARRAY(wakes, WAKE_ENTRIES, struct wake_entry);

MAPPED_ARRAY(wait_shares, WAIT_SHARES, struct wait_share);

/* Bound: size. */
MAPPED_ARRAY(wait_counters, POSSIBLE_CPUS, struct wait_counters);

/* Bound: as WAIT_RECORDS. */
MAPPED_ARRAY(wait_rings, POSSIBLE_CPUS, struct wait_ring);

/* Not that of ticks, which an NMI may bring at any time. */
struct wait_scratch {
	struct stack_scratch stack;
	struct wait_place place; /* of the stack that is walked */
	bool plain;		 /* it can be remembered, so far */
	__u64 word;		 /* where the return address is to which the walk has come */
	__u32 taken;		 /* of script->words: see is_next_function() */
	__u64 window_at;
	__u64 window[WAIT_WINDOW_WORDS];
};

/* Bound: size. */
MAP(ARRAY, wait_scratch, POSSIBLE_CPUS, __u32, struct wait_scratch);

/* What begin_waits() works on: it may be preempted, and so needs scratch memory of its own. */
struct wait_begin {
	struct stack stack;
	struct wait_before before;
	struct context_scratch context;
};

/* Bound: size. */
MAP(ARRAY, wait_begin, 1, __u32, struct wait_begin);

/* Set by user space before the load. */
const volatile __u8 wait_reasons[WAIT_SYSTEM_CALLS] = {}; /* by the number of the system call */
const volatile __u32 wait_percent = 0;	      /* how much of each CPU's time it may take; 0: any */
const volatile bool keeps_every_wait = false; /* each has a record of its own */

const volatile __s64 interrupt_stack_distance = 0; /* see interrupt_stack_caller() */
const volatile __s64 preempt_count_distance = 0;   /* see preempt_count() */

/*
 * Where the stacks of waits are in the arena, and for how many words there is room. With windows
 * there are two such parts, in turn, and waits have no more records than this.
 */
const volatile __u64 wait_position = 0, wait_words = STACK_ARENA_WORDS;
const volatile __u32 wait_records = 0; /* 0: any number */

/* Written by user space after the load. */
/* The code in which interrupts enter the kernel; size 0: unknown. */
volatile __u64 interrupt_entry = 0, interrupt_entry_size = 0;

/* The code that handles them first, and changes to their stack; size 0: unknown. */
volatile __u64 interrupt_code = 0, interrupt_code_size = 0;

/* Written by user space: the number of the window, and that one ends: then no wait is added. */
volatile __u32 wait_window = 0;
volatile __u32 waits_paused = 0;

/* Written by user space before it runs the iterators: CLOCK_MONOTONIC to the scheduler's clock. */
volatile __s64 wait_clock_offset = 0;

/* The same, to 100 us, kept right by the switches: these clocks drift apart. */
volatile __s64 waker_clock_offset = 0;

/* --- Reasons --- */

#define S_ANON_INODE 0x80000 /* in i_flags: an event, timer, poll set and the like; or no type */

/*
 * Returns the file of a descriptor; NULL: none. By helpers: for each pointer that a program follows
 * by itself, newer kernels search all their types four times, on each path to it.
 */
static __always_inline struct file *file_of(const struct task_struct *task, __u32 number)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = NULL;

	if (number < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), &files[number]);
	return file;
}

static __always_inline __u16 reason_of_file(struct file *file)
{
	struct inode *inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	__u32 mode, major;

	if (!inode)
		return WAIT_OTHER;
	mode = BPF_CORE_READ(inode, i_mode) & 0170000;
	if (!mode || BPF_CORE_READ(inode, i_flags) & S_ANON_INODE)
		return WAIT_EVENT;
	switch (mode) {
	case 0140000:
		return WAIT_SOCKET;
	case 0010000:
		return WAIT_PIPE;
	case 0020000:
		major = BPF_CORE_READ(inode, i_rdev) >> 20;
		/* tty, console, and the slaves of pseudo terminals */
		return major == 4 || major == 5 || (major >= 136 && major < 144) ? WAIT_TERMINAL
										 : WAIT_FILE;
	default:
		return WAIT_FILE;
	}
}

#define AF_UNIX	      1
#define AF_INET	      2
#define AF_INET6      10
#define SOCK_STREAM   1
#define SOCK_DGRAM    2
#define TCP_LISTEN    10 /* of unix sockets, too */
#define BOUND_BY_CALL 8	 /* in sk_userlocks: bind() has set the port */
#define TCP_CONNECTED 1	 /* of datagrams: connect() was called */

/*
 * Which end of a connection a socket is. One that was accepted has what it takes from its listener:
 * of TCP the length of that one's queue, of unix sockets its address. The kernel has no address for
 * the ends of a socketpair().
 */
static __noinline int role_of_socket(struct file *file)
{
	struct socket *socket = (struct socket *)BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);
	__u8 state = BPF_CORE_READ(sock, __sk_common.skc_state);
	__u16 type = BPF_CORE_READ(sock, sk_type);

	if (state == TCP_LISTEN)
		return WAIT_SERVES;
	if (family == AF_UNIX && bpf_core_type_exists(struct unix_sock)) {
		struct unix_sock *own = (struct unix_sock *)sock, *peer;

		if (BPF_CORE_READ(own, addr))
			return WAIT_SERVES;
		peer = (struct unix_sock *)BPF_CORE_READ(own, peer);
		return peer && BPF_CORE_READ(peer, addr) ? WAIT_ASKS : WAIT_NO_ROLE;
	}
	if (family != AF_INET && family != AF_INET6)
		return WAIT_NO_ROLE;
	if (type == SOCK_STREAM)
		return BPF_CORE_READ(sock, sk_max_ack_backlog) ? WAIT_SERVES : WAIT_ASKS;
	if (type != SOCK_DGRAM)
		return WAIT_NO_ROLE;
	return state != TCP_CONNECTED &&
			       BPF_CORE_READ_BITFIELD_PROBED(sock, sk_userlocks) & BOUND_BY_CALL
		       ? WAIT_SERVES
		       : WAIT_ASKS;
}

static __always_inline void map_address(__u64 to[2], __be32 address)
{
	to[0] = 0;
	to[1] = (__u64)address << 32 | 0xffff0000;
}

/* Notes whom a wait for this file is for. Of several, that they are several. */
static __noinline int note_peer(struct file *file, __u32 slot)
{
	struct socket *socket = (struct socket *)BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);
	struct wait_peer *known = bpf_map_lookup_elem(&wait_peers, &slot), peer = { 0 };
	struct pid *pid;

	if (!known || slot < WAIT_KINDS || BPF_CORE_READ(sock, __sk_common.skc_state) == TCP_LISTEN)
		return 0;
	peer.family = family == AF_INET ? AF_INET6 : family;
	peer.port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
	peer.own_port = BPF_CORE_READ(sock, __sk_common.skc_num);
	if (family == AF_UNIX) {
		peer.port = peer.own_port = 0;
		pid = BPF_CORE_READ(sock, sk_peer_pid);
		if (!pid)
			return 0;
		peer.pid = BPF_CORE_READ(pid, numbers[0].nr);
	} else if (!peer.port) {
		return 0;
	} else if (family == AF_INET) {
		map_address(peer.address, BPF_CORE_READ(sock, __sk_common.skc_daddr));
		map_address(peer.own_address, BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr));
	} else if (family == AF_INET6 && bpf_core_field_exists(sock->__sk_common.skc_v6_daddr)) {
		bpf_core_read(peer.address, sizeof(peer.address), &sock->__sk_common.skc_v6_daddr);
		bpf_core_read(peer.own_address, sizeof(peer.own_address),
			      &sock->__sk_common.skc_v6_rcv_saddr);
	} else {
		return 0;
	}
	if (!known->family)
		*known = peer;
	else if (known->pid != peer.pid || known->port != peer.port ||
		 known->address[0] != peer.address[0] || known->address[1] != peer.address[1])
		known->several = 1;
	return 0;
}

struct poll_descriptor {
	__s32 fd;
	__s16 events, revents;
};
#define POLL_READS 1 /* in events, of epoll, too: there is something to be read */

/*
 * Of poll(), select() or epoll_wait() for more descriptors than this, it is not known for what they
 * wait. Bound: users: descriptors of one set whose roles are looked at; then: it has no role, and
 * the place where the thread waits decides; again: never; share: each thread's own; seen: not seen.
 */
#define POLL_DESCRIPTORS 8

/* What is in a set of descriptors: bits. */
#define SET_ASKS   1 /* connected sockets */
#define SET_SERVES 2 /* sockets that were accepted, or listen */
#define SET_EVENTS 4 /* by which a program wakes itself, and timers */
#define SET_OTHERS 8 /* and too many */

/* These are verified once each, not for each call: address of a struct file. */
__noinline int kind_in_set(__u64 address)
{
	struct file *file = (struct file *)address;
	__u16 reason = reason_of_file(file);
	int role;

	if (reason != WAIT_SOCKET)
		return reason == WAIT_EVENT ? SET_EVENTS : SET_OTHERS;
	role = role_of_socket(file);
	return role == WAIT_ASKS ? SET_ASKS : role == WAIT_SERVES ? SET_SERVES : SET_OTHERS;
}

/* The same of a descriptor of the current thread. */
__noinline int kind_of_descriptor(__u32 number)
{
	return kind_in_set((__u64)file_of(bpf_get_current_task_btf(), number));
}

/* Who waits for answers alone asks; who waits for clients, or to be woken for one, serves. */
static __always_inline __u16 role_of_set(int kinds)
{
	if (kinds == SET_ASKS)
		return WAIT_ASKS;
	return (kinds & ~SET_EVENTS) == SET_SERVES ? WAIT_SERVES : WAIT_NO_ROLE;
}

/* The number of the one bit that is set. */
__noinline int bit_number(__u64 bit)
{
	int number = 0;

	for (int half = 32; half; half /= 2)
		if (bit >> half) {
			bit >>= half;
			number += half;
		}
	return number;
}

__noinline int kinds_in_poll(__u64 at, __u64 count)
{
	int kinds = count > POLL_DESCRIPTORS ? SET_OTHERS : 0;

	for (__u64 i = 0; i < POLL_DESCRIPTORS && i < count; i++) {
		struct poll_descriptor one;

		if (bpf_probe_read_user(&one, sizeof(one), (void *)(at + i * sizeof(one))))
			return SET_OTHERS;
		if (one.fd >= 0)
			kinds |= one.events & POLL_READS ? kind_of_descriptor(one.fd) : SET_OTHERS;
	}
	return kinds;
}

/*
 * Who waits until it can write to some does not only wait for these. Of descriptors from 64 on it
 * is not known for what they wait.
 */
__noinline int kinds_in_select(__u64 count, __u64 reads, __u64 writes)
{
	__u64 read = 0, written = 0, bit;
	int kinds = 0;

	if (count > 64 || (writes && bpf_probe_read_user(&written, 8, (void *)writes)) ||
	    (reads && bpf_probe_read_user(&read, 8, (void *)reads)) || written)
		return SET_OTHERS;
	if (count < 64)
		read &= (1ULL << count) - 1;
	for (int i = 0; i < POLL_DESCRIPTORS && read; i++) {
		bit = read & -read;
		read ^= bit;
		kinds |= kind_of_descriptor(bit_number(bit));
	}
	return read ? SET_OTHERS : kinds;
}

/* A struct rb_node, whose layout is old: the last two bits of the parent are a color. */
struct tree_node {
	__u64 parent, right, left;
};

struct tree_walk {
	__u64 from, at;
	__u32 found, kinds;
};

/* A step from a node of the tree to one of its children, or back. */
static long walk_epoll(__u32 step, void *context)
{
	struct tree_walk *walk = context;
	struct epitem *item =
		(struct epitem *)(walk->at - bpf_core_field_offset(struct epitem, rbn));
	struct tree_node node;
	__u64 next;

	(void)step;
	if (bpf_probe_read_kernel(&node, sizeof(node), (void *)walk->at))
		return 1;
	node.parent &= ~3ULL;
	next = node.parent;
	if (walk->from == node.parent) {
		if (++walk->found > POLL_DESCRIPTORS)
			return 1;
		walk->kinds |= BPF_CORE_READ(item, event.events) & POLL_READS
				       ? kind_in_set((__u64)BPF_CORE_READ(item, ffd.file))
				       : SET_OTHERS;
		next = node.left ?: node.right ?: node.parent;
	} else if (walk->from == node.left && node.right) {
		next = node.right;
	}
	walk->from = walk->at;
	walk->at = next;
	return !next;
}

__noinline int kinds_in_epoll(__u64 file)
{
	struct eventpoll *set =
		(struct eventpoll *)BPF_CORE_READ((struct file *)file, private_data);
	struct tree_walk walk = { .at = (__u64)BPF_CORE_READ(set, rbr.rb_root.rb_node) };

	if (walk.at)
		bpf_loop(3 * POLL_DESCRIPTORS, walk_epoll, &walk, 0);
	return walk.at ? SET_OTHERS : walk.kinds;
}

/* The TID of the process's first thread, as the process knows it. */
static __always_inline __u32 first_number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level), number = 0;

	bpf_core_read(&number, sizeof(number), &pid->numbers[level].nr);
	return number;
}

#define FUTEX_COMMAND	  0x7f
#define FUTEX_PRIVATE	  0x80
#define FUTEX_WAIT	  0
#define FUTEX_LOCK_PI	  6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2	  13
#define FUTEX_WAITERS	  0x80000000 /* in the value of a lock that has its owner's TID */
#define FUTEX_CONTENDED	  2	     /* the value of a lock that others want, of glibc and Go */

/*
 * For what a thread waits by futex(): the operation, and the value that it expects. glibc waits for
 * a thread's end until the kernel clears the thread's TID, which is no private futex; for all but
 * these and its plain locks with FUTEX_WAIT_BITSET.
 */
static __always_inline __u16 reason_of_futex(struct task_struct *task, const struct pt_regs *regs)
{
	__u32 operation = system_call_argument(regs, 1), value = system_call_argument(regs, 2);
	__u32 command = operation & FUTEX_COMMAND;

	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		return WAIT_LOCK;
	if (command == FUTEX_WAIT && (value == FUTEX_CONTENDED || value & FUTEX_WAITERS))
		return WAIT_LOCK;
	/* Counters in memory that is shared are smaller. */
	if (command == FUTEX_WAIT_BITSET && !(operation & FUTEX_PRIVATE) &&
	    value > first_number(task))
		return WAIT_JOIN;
	return WAIT_CONDITION;
}

static __always_inline bool is_futex(const struct pt_regs *regs)
{
	long number = system_call_number(regs);

	asm("" : "+r"(number)); /* makes the compiler use the register that it checks */
	return (unsigned long)number < WAIT_SYSTEM_CALLS && wait_reasons[number] == WAIT_BY_FUTEX &&
	       !is_32_bit_mode(regs->MODE_REGISTER);
}

#define TASK_STOPPED_OR_TRACED (4 | 8)

/* Why a thread with this state leaves its CPU; perhaps WAIT_BY_DESCRIPTOR and the like. */
static __always_inline __u16 wait_reason(struct task_struct *task, const struct pt_regs *regs,
					 __u32 state)
{
	long number = system_call_number(regs);
	__u16 reason;

	if (state & TASK_STOPPED_OR_TRACED)
		return WAIT_STOPPED;
	if (task->flags & PF_KTHREAD)
		return WAIT_KERNEL;
	if (number < 0)
		return WAIT_FAULT;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return WAIT_DISK;
	asm("" : "+r"(number)); /* makes the compiler use the register that it checks */
	if ((unsigned long)number >= WAIT_SYSTEM_CALLS)
		return WAIT_OTHER;
	reason = wait_reasons[number];
	if (reason == WAIT_DISK_OF_FILE)
		return WAIT_DISK;
	return reason == WAIT_BY_FUTEX ? reason_of_futex(task, regs) : reason;
}

/* The file on which the reason depends, perhaps NULL. is_current: its memory can be read. */
static __always_inline struct file *wait_file(struct task_struct *task, const struct pt_regs *regs,
					      __u16 reason, bool is_current)
{
	struct poll_descriptor one;

	if (reason == WAIT_BY_DESCRIPTOR || reason == WAIT_BY_SENDING)
		return file_of(task, system_call_argument(regs, 0));
	if (reason != WAIT_BY_POLL || !is_current || system_call_argument(regs, 1) != 1 ||
	    bpf_probe_read_user(&one, sizeof(one), (void *)system_call_argument(regs, 0)) ||
	    one.fd < 0)
		return NULL;
	return file_of(task, one.fd);
}

/* Whether a thread waits for a set of descriptors. */
static __always_inline bool is_set(__u16 reason)
{
	return reason == WAIT_BY_POLL || reason == WAIT_BY_SELECT || reason == WAIT_BY_EPOLL;
}

/* The reason, with the role. file: as wait_file() has it. */
static __always_inline __u16 reason_and_role(struct task_struct *task, const struct pt_regs *regs,
					     __u16 reason, struct file *file, bool is_current)
{
	if (reason == WAIT_BY_EPOLL)
		return wait_with_role(WAIT_POLL, role_of_set(kinds_in_epoll((__u64)file_of(
							 task, system_call_argument(regs, 0)))));
	if (is_set(reason) && !is_current)
		return WAIT_POLL;
	if (reason == WAIT_BY_POLL)
		return wait_with_role(WAIT_POLL,
				      role_of_set(kinds_in_poll(system_call_argument(regs, 0),
								system_call_argument(regs, 1))));
	if (reason == WAIT_BY_SELECT)
		return wait_with_role(WAIT_POLL,
				      role_of_set(kinds_in_select(system_call_argument(regs, 0),
								  system_call_argument(regs, 1),
								  system_call_argument(regs, 2))));
	if (reason == WAIT_BY_SENDING)
		return wait_with_role(reason_of_file(file), WAIT_SENDS);
	if (reason != WAIT_BY_DESCRIPTOR)
		return reason;
	reason = reason_of_file(file);
	return reason == WAIT_SOCKET ? wait_with_role(reason, role_of_socket(file)) : reason;
}

/* Where the programs have taken too much time: the role of a file that the thread remembers. */
static __always_inline __u16 reason_in_haste(const struct wait_task *wait, __u16 reason,
					     struct file *file)
{
	for (int i = 0; file && i < WAIT_PLACES; i++)
		if (wait->places[i].file == (__u64)file && wait->places[i].reason == reason)
			return wait->places[i].facts;
	if (is_set(reason))
		return WAIT_POLL;
	return reason == WAIT_BY_DESCRIPTOR || reason == WAIT_BY_SENDING ? reason_of_file(file)
									 : reason;
}

/* --- Shares of users --- */

static __always_inline struct wait_share *share_of(__u32 uid)
{
	__u32 key = 1 + (uid * 0x9e3779b1 >> 16) % (WAIT_SHARES - 1);

	return bpf_map_lookup_elem(&wait_shares, &key);
}

static __always_inline struct wait_share *share_of_all(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&wait_shares, &key);
}

/* Whether a user who has so much may have more where so much is free. */
static __always_inline bool is_within_share(__u64 has, __u64 free)
{
	return !everyone || by_user || has < free;
}

/* --- Stacks --- */

/* Of an entry in a table where one is searched. */
enum probe {
	PROBE_OTHER, /* it is another's */
	PROBE_FOUND, /* it is the one, perhaps since now */
	PROBE_NO_ROOM,
};

/* Whether an entry in `waits` is the stack's, which a free one becomes: see enum probe. */
__noinline int probe_wait(struct stack *stack, __u32 key, __u64 hash, __u32 uid)
{
	struct wait_entry *entry = bpf_map_lookup_elem(&waits, &key);
	__u64 part = wait_position + (wait_window & 1) * wait_words;
	__u64 position, before, words, *used = words_at(part);
	struct wait_share *own, *all;
	__u32 factor;

	if (!stack || !entry || !used)
		return PROBE_NO_ROOM;
	if (entry->hash)
		return entry->hash == hash && entry->position && is_stack_at(stack, entry->position)
			       ? PROBE_FOUND
			       : PROBE_OTHER;
	own = share_of(uid);
	all = share_of_all();
	if (!own || !all)
		return PROBE_NO_ROOM;
	words = stack_words(stack);
	factor = words > STACK_HEAD_WORDS ? 1 : 2;
	if (*used + STACK_WORDS_MAX >= wait_words ||
	    !is_within_share(own->words, factor * (wait_words - *used)) ||
	    !is_within_share(own->entries, factor * (WAIT_ENTRIES - all->entries)))
		return PROBE_NO_ROOM;
	if (__sync_val_compare_and_swap(&entry->hash, 0, hash))
		return PROBE_OTHER;
	__sync_fetch_and_add(&own->entries, 1);
	__sync_fetch_and_add(&own->words, words);
	__sync_fetch_and_add(&all->entries, 1);
	before = __sync_fetch_and_add(used, words);
	position = part + before + 1;
	if (before + STACK_WORDS_MAX >= wait_words || !write_stack(stack, position))
		return PROBE_NO_ROOM;
	entry->first_ns = bpf_ktime_get_ns();
	write_in_order(&entry->position, position);
	return PROBE_FOUND;
}

/*
 * Returns the number of the stack's entry in `waits`; if the user has no room, that of its reason.
 */
__noinline __u32 find_wait(struct stack *stack, __u32 uid)
{
	int probe = PROBE_OTHER;
	__u64 hash;
	__u32 key;

	if (!stack)
		return 0;
	hash = hash_stack(stack);
	for (__u32 i = 0; i < WAIT_PROBES && probe == PROBE_OTHER; i++) {
		key = WAIT_KINDS + ((hash >> 32) + i * probe_step(hash)) % WAIT_HASHED;
		probe = probe_wait(stack, key, hash, uid);
	}
	if (probe == PROBE_FOUND)
		return key;
	return (stack->cpu & 0xff) < WAIT_KINDS ? stack->cpu & 0xff : 0;
}

/* The entry for waits of the thread with this ID without a stack. */
static __always_inline __u32 find_wait_without_stack(struct stack *stack, __u32 uid, __u64 id,
						     __u16 reason, __u16 context)
{
	stack->id = id;
	stack->context = context;
	stack->kernel_depth = stack->user_depth = 0;
	stack->end = stack->by_frame_pointer = 0;
	stack->cpu = reason;
	return find_wait(stack, uid);
}

/*
 * Whether WAIT_BLOCK_FRAMES return addresses of the place's stack, from number `first` on, or those
 * that there are, are where they were. `stack` is in the arena.
 */
__noinline int are_at_place(struct wait_scratch *scratch, struct wait_place *place,
			    struct stack *stack, __u32 first)
{
	const __u64 *words = (const __u64 *)stack;
	__u64 begin;

	if (!scratch || !place || !stack)
		return 0;
	begin = STACK_HEAD_WORDS + stack->kernel_depth;
	for (__u32 i = 0; i < WAIT_BLOCK_FRAMES; i++) {
		__u64 number = first + i, caller = begin + number, at, index;

		if (number >= place->frames)
			break;
		/*
		 * Makes the compiler use the registers that it checks; and check them last: Linux
		 * 6.12 forgets the limit of a number when the one that follows it is compared.
		 */
		asm("" : "+r"(number), "+r"(caller));
		if (number >= WAIT_FRAMES)
			break;
		if (place->words[number] == WAIT_NO_WORD)
			continue;
		at = place->sp + place->words[number] * 8ULL;
		index = (at - scratch->window_at) / 8;
		if (index >= WAIT_WINDOW_WORDS) {
			index = 0;
			scratch->window_at = at;
			if (bpf_probe_read_user(scratch->window, sizeof(scratch->window),
						(void *)at) && /* near the end of the stack */
			    bpf_probe_read_user(scratch->window, 8, (void *)at))
				return 0;
		}
		asm("" : "+r"(index));
		if (index >= WAIT_WINDOW_WORDS || caller >= STACK_WORDS_MAX)
			return 0;
		if (scratch->window[index] != words[caller])
			return 0;
	}
	return 1;
}

/* In the arena. */
static __always_inline struct stack *stack_at_place(const struct wait_place *place)
{
	__u32 key = place->slot;
	const struct wait_entry *entry = bpf_map_lookup_elem(&waits, &key);

	return entry ? (struct stack *)words_at(entry->position) : NULL;
}

/* Whether all return addresses of the place's stack are where they were. */
__noinline int is_at_place(struct wait_scratch *scratch, struct wait_place *place)
{
	struct stack *stack;

	if (!scratch || !place)
		return 0;
	stack = stack_at_place(place);
	if (!stack)
		return 0;
	scratch->window_at = 1; /* none is there */
	for (__u32 i = 0; i < WAIT_FRAMES && i < place->frames; i += WAIT_BLOCK_FRAMES)
		if (!are_at_place(scratch, place, stack, i))
			return 0;
	return 1;
}

/*
 * Whether frame `number` of a stack, which is in the arena, is the next function that the script
 * runs, at the same instruction; or no function of a script.
 */
__noinline int is_next_function(struct wait_scratch *scratch, struct stack *stack, __u32 number)
{
	const __u64 *words = (const __u64 *)stack;
	struct script_walk *script;
	__u64 at, taken;

	if (!scratch || !stack)
		return 0;
	script = &scratch->stack.script;
	at = STACK_HEAD_WORDS + stack->kernel_depth + (__u64)number;
	asm("" : "+r"(at)); /* makes the compiler use the register that it checks */
	if (at >= STACK_WORDS_MAX)
		return 0;
	if (!language_of_word(words[at]))
		return 1;
	if (scratch->taken >= script->count) {
		read_script_frames(script);
		scratch->taken = 0;
	}
	taken = scratch->taken++;
	asm("" : "+r"(taken));
	return taken < script->count && taken < LANGUAGE_FRAMES_MAX &&
	       script->words[taken] == words[at];
}

/* Reads the first functions of the script that the thread runs now. Returns 0 if there is none. */
__noinline int begin_place_script(struct wait_scratch *scratch, struct wait_place *place)
{
	if (!scratch || !place)
		return 0;
	scratch->taken = 0;
	scratch->stack.walk.sp = place->sp;
	begin_stack_walk(&scratch->stack, native_frames);
	return take_own_process(&scratch->stack.walk, scratch->stack.sample.stack.id) &&
	       begin_own_script(&scratch->stack);
}

/* Whether the script runs the functions in the stack of place `number` - 1, if any, and no others.
 */
__noinline int is_script_at_place(struct wait_scratch *scratch, struct wait_task *own, __u32 number)
{
	struct wait_place *place;
	struct stack *stack;

	if (!scratch || !own)
		return 0;
	place = &own->places[(number - 1) & (WAIT_PLACES - 1)];
	if (!place->script)
		return 1;
	stack = stack_at_place(place);
	if (!stack || !begin_place_script(scratch, place))
		return 0;
	for (__u32 i = 0; i < WAIT_FRAMES && i < place->frames; i++)
		if (!is_next_function(scratch, stack, i))
			return 0;
	return scratch->taken == scratch->stack.script.count &&
	       !has_python_frames(&scratch->stack.script);
}

/*
 * Returns the number + 1 of the place, from number `first` on, where the current thread, `own`,
 * waits, which scratch->place is without its stack, but for its script; 0: it is not remembered.
 */
__noinline int find_place(struct wait_scratch *scratch, struct wait_task *own, __u32 first)
{
	struct wait_place *wanted;

	if (!scratch || !own)
		return 0;
	wanted = &scratch->place;
	for (__u32 i = 0; i < WAIT_PLACES; i++) {
		struct wait_place *place = &own->places[i];

		if (i >= first && place->frames && place->pc == wanted->pc &&
		    place->sp == wanted->sp && place->reason == wanted->reason &&
		    place->file == wanted->file &&
		    (!place->until_ns || bpf_ktime_get_ns() < place->until_ns) &&
		    is_at_place(scratch, place))
			return i + 1;
	}
	return 0;
}

/* Remembers scratch->place and the stack that was walked there, if it can be found by them. */
__noinline int keep_place(struct wait_scratch *scratch, struct wait_task *own)
{
	struct wait_place *place;
	struct stack *stack;

	if (!scratch || !own)
		return 0;
	place = &scratch->place;
	stack = &scratch->stack.sample.stack;
	if (!place->frames || place->slot < WAIT_KINDS || !is_at_place(scratch, place))
		return 0;
	/* What is in a set changes, too. */
	place->until_ns = stack->end == UNWIND_COMPLETE && !stack->by_frame_pointer &&
					  (place->file || !is_set(place->reason))
				  ? 0
				  : bpf_ktime_get_ns() + WAIT_DOUBT_NS;
	own->places[own->next_place & (WAIT_PLACES - 1)] = *place;
	own->next_place++;
	return 0;
}

/* The entry for the kernel frames in the scratch memory and the user frames of a place's stack. */
__noinline __u32 find_wait_at_place(struct wait_scratch *scratch, struct wait_place *place,
				    __u32 uid)
{
	const struct stack *from;
	struct stack *stack;
	__u64 index, first, size;

	if (!scratch || !place)
		return 0;
	stack = &scratch->stack.sample.stack;
	from = stack_at_place(place);
	if (!from)
		return 0;
	stack->cpu = from->cpu;
	stack->end = from->end;
	stack->by_frame_pointer = from->by_frame_pointer;
	stack->user_depth = from->user_depth;
	index = stack->kernel_depth;
	first = from->kernel_depth;
	size = from->user_depth * sizeof(*stack->pcs);
	asm("" : "+r"(index), "+r"(first), "+r"(size));
	if (index > STACK_DEPTH_MAX || first > STACK_DEPTH_MAX ||
	    size > STACK_DEPTH_MAX * sizeof(*stack->pcs) ||
	    bpf_probe_read_kernel(&stack->pcs[index], size, &from->pcs[first]))
		return 0;
	return find_wait(stack, uid);
}

/* As walk_frame(), and notes where the frame's return address is. */
__noinline int walk_wait_frame(struct wait_scratch *scratch)
{
	struct wait_place *place;
	struct walk *walk;
	__u64 depth, index, pc, word;
	bool ended;

	if (!scratch)
		return 1;
	walk = &scratch->stack.walk;
	place = &scratch->place;
	depth = scratch->stack.depth;
	index = scratch->stack.sample.stack.kernel_depth + depth;
	pc = walk->pc;
	ended = put_next_frame(&scratch->stack);
	/* In place of an interpreter's frame there may be none, or its script's functions. */
	asm("" : "+r"(depth), "+r"(index));
	if (depth < WAIT_FRAMES && index < 2 * STACK_DEPTH_MAX && scratch->stack.depth > depth &&
	    scratch->stack.sample.stack.pcs[index] == pc)
		place->words[depth] = scratch->word;
	if (ended)
		return 1;
	word = (walk->sp - 8 - place->sp) / 8;
	if (walk->mark || word >= WAIT_NO_WORD)
		scratch->plain = false;
	scratch->word = word;
	return 0;
}

/* As walk_frames(), and notes where the return addresses are. */
__noinline int walk_wait_frames(struct wait_scratch *scratch)
{
	const struct script_walk *script;
	struct wait_place *place;

	if (!scratch)
		return 0;
	script = &scratch->stack.script;
	place = &scratch->place;
	begin_stack_walk(&scratch->stack, native_frames);
	__builtin_memset(place->words, 0xff, sizeof(place->words));
	scratch->plain = true;
	scratch->word = WAIT_NO_WORD;
	for (__u32 i = 0; i < STACK_STEPS_MAX; i++)
		if (walk_wait_frame(scratch))
			break;
	put_last_frames(&scratch->stack);
	place->script = script->wrote;
	/* Which functions of other languages run is known by the walk alone. */
	if (scratch->stack.depth > WAIT_FRAMES ||
	    (place->script && script->image.language != LANGUAGE_PYTHON))
		scratch->plain = false;
	place->frames = scratch->plain ? scratch->stack.depth : 0;
	return scratch->stack.depth;
}

/* The entry for a wait whose user stack user space walks. */
static __always_inline __u32 find_copied_wait(struct stack *stack, __u32 uid)
{
	__u64 index = stack->kernel_depth;

	asm("" : "+r"(index));
	if (index > STACK_DEPTH_MAX)
		return 0;
	stack->user_depth = 1;
	stack->end = UNWIND_NO_PROCESS;
	stack->by_frame_pointer = 0;
	stack->cpu |= WAIT_COPIED;
	stack->pcs[index] = bpf_ktime_get_ns();
	return find_wait(stack, uid);
}

/*
 * Walks the thread's user stack, or sends a copy of it where its mappings are not published, as
 * walk_user_stack() does; kernel_size bytes of kernel frames are there already. Returns the entry
 * for its wait.
 */
static __always_inline __u32 walk_wait(void *ctx, struct wait_scratch *scratch,
				       struct wait_task *own, const struct pt_regs *regs,
				       long kernel_size, bool cfi)
{
	__u32 uid = own->uid;
	struct stack *stack = &scratch->stack.sample.stack;
	struct walk *walk = &scratch->stack.walk;
	struct wait_place *place = &scratch->place;
	__u32 slot;

	stack->user_depth = 0;
	stack->by_frame_pointer = 0;
	stack->end = UNWIND_BY_KERNEL;
	place->frames = 0;
	if (cfi && !is_32_bit_mode(regs->MODE_REGISTER)) {
		take_registers(walk, regs);
		if (begin_user_walk(walk, stack->id)) {
			if (walk->process.contexts[0] && !own->has_context) {
				own->has_context = true;
				stack->context = read_context(walk, &scratch->stack.context,
							      sample_id_process(stack->id));
			}
			stack->user_depth = walk_wait_frames(scratch);
			stack->end = walk->end;
			stack->by_frame_pointer = walk->by_frame_pointer;
			if (stack->end != UNWIND_NO_MAPPING ||
			    (!is_reading_rows && !may_be_outdated(stack->id)))
				return find_wait(stack, uid);
		}
		place->frames = 0;
		slot = find_copied_wait(stack, uid);
		if (slot >= WAIT_KINDS && send_copy(&scratch->stack, slot))
			return slot;
		stack->cpu &= ~WAIT_COPIED;
	}
	/* Masked here: Linux 6.1 forgets of a number that was kept that it is not below 0. */
	stack->user_depth = get_frames(ctx, (void *)stack->pcs + (kernel_size & STACK_BYTES_MASK),
				       BPF_F_USER_STACK) /
			    sizeof(__u64);
	return find_wait(stack, uid);
}

/* The context of the current thread, where waits have seen that its process has any. */
static __noinline __u16 wait_context(struct wait_scratch *scratch, const struct wait_task *own,
				     __u64 id, bool cfi)
{
	struct walk *walk = &scratch->stack.walk;

	if (!cfi || !own->has_context || !take_own_process(walk, id))
		return 0;
	return read_context(walk, &scratch->stack.context, sample_id_process(id));
}

/* The entry that was found for the stack; if that is its reason's, the one of the thread. */
static __noinline __u32 place_or_thread(struct stack *stack, __u32 uid, __u32 slot)
{
	struct wait_share *own = share_of(uid);
	__u32 key;

	if (slot >= WAIT_KINDS || !own)
		return slot;
	key = find_wait_without_stack(stack, uid, stack->id, slot, stack->context);
	if (slot < WAIT_REASONS && key >= WAIT_KINDS) {
		__sync_fetch_and_add(&own->refused, 1);
		own->uid = uid;
	}
	return key;
}

/*
 * The entry for the stack with which the current thread, `own` and `id`, has entered the kernel,
 * below kernel_size bytes of kernel frames. file: see struct wait_place. walks: it may be walked;
 * else, if it is not remembered, SLOT_LATER is returned.
 */
static __always_inline __u32 find_own_stack(void *ctx, struct wait_scratch *scratch,
					    struct task_struct *task, struct wait_task *own,
					    __u64 id, __u16 reason, struct file *file,
					    long kernel_size, bool cfi, bool walks,
					    struct wait_counters *counters)
{
	const struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct stack *stack = &scratch->stack.sample.stack;
	struct wait_place *place = &scratch->place;
	int known = 0;

	stack->id = id;
	stack->context = wait_context(scratch, own, id, cfi);
	stack->kernel_depth = kernel_size / sizeof(__u64);
	place->pc = regs->PC_REGISTER;
	place->sp = regs->sp;
	place->reason = reason;
	place->file = (__u64)file;
	/* From here, not from find_place(): for Linux 6.1, which adds up what all calls take. */
	for (int i = 0; i <= WAIT_PLACES; i++) {
		known = find_place(scratch, own, known);
		if (!known || !cfi || is_script_at_place(scratch, own, known))
			break;
	}
	if (known) {
		place = &own->places[(known - 1) & (WAIT_PLACES - 1)];
		own->reason = place->facts;
		return kernel_size || place->context != stack->context
			       ? place_or_thread(stack, own->uid,
						 find_wait_at_place(scratch, place, own->uid))
			       : place->slot;
	}
	if (!walks)
		return SLOT_LATER;
	counters->walks++;
	place->facts = stack->cpu = own->reason = reason_and_role(task, regs, reason, file, true);
	place->slot = walk_wait(ctx, scratch, own, regs, kernel_size, cfi);
	place->context = stack->context;
	if (file && reason_of_file(file) == WAIT_SOCKET)
		note_peer(file, place->slot);
	keep_place(scratch, own);
	return place_or_thread(stack, own->uid, place->slot);
}

static __always_inline struct wait_counters *own_wait_counters(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&wait_counters, &cpu);
}

/*
 * Whether the programs have taken so many quarters of what they may take of this CPU's time. They
 * then spare stacks: first those of wakers, and walks of waits that will be short, then all stacks
 * of these, then all. The time of all switches is estimated by that of one in 8.
 */
static __always_inline bool is_over_budget(struct wait_counters *counters, __u64 now,
					   __u32 quarters)
{
	const __u64 burst_ns = 10000000;

	if (!counters->begin_ns)
		counters->begin_ns = now;
	return wait_percent &&
	       counters->timed_ns * WAIT_TIMED_PART >
		       (now - counters->begin_ns) / 400 * wait_percent * quarters + burst_ns;
}

/* --- Whom waits are for --- */

#define FUTEX_TID_MASK 0x3fffffff /* in the value of a lock that has its owner's TID */
#define MUSL_TAKEN     16	  /* is there, in musl's plain locks, instead of a TID */

/* Of 64 numbers each: TIDs have at most 22 bits. Bound: size. */
#define XARRAY_LEVELS 4

/*
 * pthread_mutex_t of glibc, where it has its futex at its begin: users counts who has or wants it.
 * What else has a futex has other numbers there.
 */
struct glibc_mutex {
	__u32 futex, count, owner, users, kind;
};
#define GLIBC_MUTEX_USERS 0x10000
#define GLIBC_MUTEX_KINDS 0x400

/*
 * Returns the struct task_struct of the thread of the current one's process that this one knows by
 * a number; 0: there is none.
 */
static __noinline __u64 find_own_thread(struct task_struct *task, __u32 number)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level), found = 0;
	struct pid_namespace *ns = NULL;
	struct task_struct *thread;
	__u64 at;

	bpf_core_read(&ns, sizeof(ns), &pid->numbers[level].ns);
	at = (__u64)BPF_CORE_READ(ns, idr.idr_rt.xa_head);
	for (int i = 0; i < XARRAY_LEVELS && (at & 3) == 2; i++) {
		struct xa_node *node = (struct xa_node *)(at - 2);
		__u32 index = number >> (BPF_CORE_READ(node, shift) & 31);

		at = 0;
		if (i || index < 64)
			bpf_core_read(&at, sizeof(at), &node->slots[index & 63]);
	}
	pid = (struct pid *)at;
	bpf_core_read(&found, sizeof(found), &pid->numbers[level].nr);
	at = (__u64)BPF_CORE_READ(pid, tasks[0].first);
	thread = (struct task_struct *)(at - bpf_core_field_offset(struct task_struct, pid_links));
	return at && found == number && BPF_CORE_READ(thread, tgid) == task->tgid ? (__u64)thread
										  : 0;
}

/* Makes an entry the one of whom waits are for. Returns it; 0: it is that of many. */
static __always_inline __u32 make_whom(__u32 key, const struct wait_peer *peer)
{
	struct wait_peer *known = bpf_map_lookup_elem(&wait_peers, &key);

	if (!known || key < WAIT_KINDS)
		return 0;
	if (!known->family)
		*known = *peer;
	return key;
}

/*
 * The entry of the thread that has the lock for which the current one begins to wait by futex();
 * 0: unknown. The kernel has its TID in the futex of locks with priority inheritance, libraries in
 * those of robust ones, and glibc's other mutexes behind it, most kinds of them. Another number
 * there is none of the process's threads, but by chance.
 */
static __noinline __u32 find_holder(struct task_struct *task, struct wait_task *wait,
				    struct stack *stack)
{
	const struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 command = system_call_argument(regs, 1) & FUTEX_COMMAND;
	__u32 number = system_call_argument(regs, 2);
	void *futex = (void *)system_call_argument(regs, 0);
	struct wait_peer peer = { .family = WAIT_PEER_THREAD };
	struct glibc_mutex mutex;
	struct task_struct *holder;

	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2) {
		if (bpf_probe_read_user(&number, sizeof(number), futex))
			return 0;
	} else if (!(number & FUTEX_WAITERS)) {
		if (bpf_probe_read_user(&mutex, sizeof(mutex), futex) || !mutex.users ||
		    mutex.users >= GLIBC_MUTEX_USERS || mutex.kind >= GLIBC_MUTEX_KINDS)
			return 0;
		number = mutex.owner;
	} else if ((number & FUTEX_TID_MASK) == MUSL_TAKEN) {
		return 0;
	}
	number &= FUTEX_TID_MASK;
	holder = number ? (struct task_struct *)find_own_thread(task, number) : NULL;
	if (!holder)
		return 0;
	/* tid_of() is of the current task alone. */
	peer.tid = pid_namespace ? search_number(holder) : BPF_CORE_READ(holder, pid);
	peer.pid = tgid_of(task);
	return make_whom(
		find_wait_without_stack(stack, wait->uid,
					sample_id_make(task->self_exec_id, peer.pid, peer.tid),
					WAKER_THREAD, 0),
		&peer);
}

/* The entry of a block device; 0: it has none. */
static __always_inline __u32 find_device(struct stack *stack, __u32 uid, __u32 device)
{
	const struct wait_peer peer = { .family = WAIT_PEER_DEVICE, .device = device };

	stack->id = SAMPLE_ID_VALID;
	stack->context = 0;
	stack->kernel_depth = 1;
	stack->user_depth = 0;
	stack->end = stack->by_frame_pointer = 0;
	stack->cpu = WAKER_NONE;
	stack->pcs[0] = device;
	return make_whom(find_wait(stack, uid), &peer);
}

/*
 * A thread that waits for a disk is woken so soon after that one has answered, by the same
 * interrupt. Bound: pace.
 */
#define COMPLETION_NS 1000000

/*
 * The device of a wait for a disk that ends now: by an interrupt, the one that has just answered;
 * else that of the file in the system call, if its file system is on one.
 */
static __always_inline __u32 device_of_wait(struct task_struct *woken, bool interrupt,
					    const struct wait_counters *counters)
{
	const struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(woken);
	long number = system_call_number(regs);
	struct file *file;
	__u32 device;

	if (interrupt)
		return bpf_ktime_get_ns() - counters->completed_ns < COMPLETION_NS
			       ? counters->completed_device
			       : 0;
	asm("" : "+r"(number)); /* as in wait_reason() */
	if ((unsigned long)number >= WAIT_SYSTEM_CALLS ||
	    (wait_reasons[number] != WAIT_DISK_OF_FILE &&
	     wait_reasons[number] != WAIT_BY_DESCRIPTOR && wait_reasons[number] != WAIT_BY_SENDING))
		return 0;
	file = file_of(woken, system_call_argument(regs, 0));
	device = file ? BPF_CORE_READ(file, f_inode, i_sb, s_dev) : 0;
	return device >= wait_device(1, 0) ? device : 0;
}

/* Whether a thread has a signal to handle, which ends its wait. */
static __always_inline bool has_signal(struct task_struct *task)
{
	__u64 signals = BPF_CORE_READ(task, pending.signal.sig[0]) |
			BPF_CORE_READ(task, signal, shared_pending.signal.sig[0]);

	return signals & ~BPF_CORE_READ(task, blocked.sig[0]);
}

/*
 * Whom a wait is for that `task`, which has the entry wait->waker, ends now; 0: unknown. At the
 * other end of a pipe or socket is who has written or read; a child wakes its parent.
 */
static __noinline __u32 find_whom(struct task_struct *task, struct task_struct *woken,
				  struct wait_task *wait, bool interrupt,
				  struct wait_counters *counters)
{
	__u16 reason = wait->reason;
	__u32 cpu = bpf_get_smp_processor_id(), device;
	struct wait_scratch *scratch = bpf_map_lookup_elem(&wait_scratch, &cpu);

	switch (reason & WAIT_REASON_MASK) {
	case WAIT_DISK:
	case WAIT_FAULT:
		device = device_of_wait(woken, interrupt, counters);
		return device && scratch
			       ? find_device(&scratch->stack.sample.stack, wait->uid, device)
			       : 0;
	case WAIT_POLL:
		if (wait_role_of(reason) != WAIT_ASKS)
			return 0;
		break;
	case WAIT_CHILD:
		if (BPF_CORE_READ(task, real_parent, tgid) != BPF_CORE_READ(woken, tgid))
			return 0;
		break;
	case WAIT_LOCK:
	case WAIT_PIPE:
	case WAIT_SOCKET:
		break;
	default:
		return 0;
	}
	/* A child's end is signalled, too. */
	if ((reason & WAIT_REASON_MASK) != WAIT_CHILD && has_signal(woken))
		return 0;
	return !interrupt && wait->waker >= WAIT_KINDS ? wait->waker : 0;
}

/* --- Waits --- */

/* Adds a time of the user's to an entry in `wakes`, if it is that of the key: see enum probe. */
__noinline int probe_wake(__u32 number, __u64 key, __u32 uid, __u64 ns)
{
	struct wake_entry *wake = bpf_map_lookup_elem(&wakes, &number);
	__u64 before;

	if (!wake)
		return PROBE_NO_ROOM;
	before = wake->key;
	if (!before) {
		struct wait_share *own = share_of(uid), *all = share_of_all();

		if (!own || !all || !is_within_share(own->wakes, WAKE_ENTRIES - all->wakes))
			return PROBE_NO_ROOM;
		before = __sync_val_compare_and_swap(&wake->key, 0, key);
		if (!before) {
			__sync_fetch_and_add(&own->wakes, 1);
			__sync_fetch_and_add(&all->wakes, 1);
		}
	}
	if (before && before != key)
		return PROBE_OTHER;
	__sync_fetch_and_add(&wake->blocked_ns, ns);
	return PROBE_FOUND;
}

/* Adds a time of the user's with its ends: to the waker's entry, and to that of all of them. */
__noinline int add_wake(__u32 wait, __u32 ends, __u32 uid, __u64 ns)
{
	__u32 waker = wait_ends_waker(ends);
	struct wait_entry *entry = bpf_map_lookup_elem(&waits, &waker);
	__u64 key = wake_key(wait, ends), home = key * 0x9e3779b97f4a7c15 >> 32;
	struct wait_counters *counters;
	int probe = PROBE_OTHER;

	if (!entry)
		return 0;
	if (waker) {
		__sync_fetch_and_add(&entry->count, 1);
		__sync_fetch_and_add(&entry->blocked_ns, ns);
	}
	for (__u32 i = 0; i < WAIT_PROBES && probe == PROBE_OTHER; i++)
		probe = probe_wake((home + i * probe_step(home)) % WAKE_ENTRIES, key, uid, ns);
	if (probe == PROBE_FOUND)
		return 1;
	counters = own_wait_counters();
	if (counters)
		counters->wakes_lost++;
	return 0;
}

/*
 * Records that are counted at once. Each by itself would have all CPUs write to the same memory at
 * each wait; so the user whose record is the first of these on its CPU has them all. Bound: size.
 */
#define WAIT_RECORDS_COUNTED 64

/* Whether a window has room for a record of the user, which has this number on its CPU. */
static __always_inline bool window_has_room(__u32 uid, __u64 number)
{
	struct wait_share *own = share_of(uid), *all = share_of_all();

	if (!own || !all || all->records >= wait_records ||
	    !is_within_share(own->records, wait_records - all->records))
		return false;
	if (number % WAIT_RECORDS_COUNTED == 0) {
		__sync_fetch_and_add(&own->records, WAIT_RECORDS_COUNTED);
		__sync_fetch_and_add(&all->records, WAIT_RECORDS_COUNTED);
	}
	return true;
}

/* wake: wake_key() */
__noinline int write_wait(__u64 wake, __u64 end_ns, __u64 blocked_ns, __u64 runnable_ns, __u32 uid)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct wait_ring *ring = bpf_map_lookup_elem(&wait_rings, &cpu);
	struct wait_record *record;
	__u64 written;

	if (!ring)
		return 0;
	written = ring->written;
	if (written - *(volatile __u64 *)&ring->read >= WAIT_RECORDS ||
	    (wait_records && !window_has_room(uid, written))) {
		struct wait_counters *counters = bpf_map_lookup_elem(&wait_counters, &cpu);

		if (counters)
			counters->records_lost++;
		return 0;
	}
	record = &ring->records[written % WAIT_RECORDS];
	record->end_ns = end_ns;
	record->blocked_ns = blocked_ns;
	record->runnable_ns = runnable_ns;
	record->slot = wake >> 32;
	record->ends = wake;
	write_in_order(&ring->written, written + 1);
	return 0;
}

/* Writes when a wait was that ends now, or keeps it with others of its bucket of time. */
static __always_inline void keep_wait(struct wait_entry *entry, __u32 slot, __u32 ends, __u32 uid,
				      __u64 now, __u64 blocked_ns, __u64 runnable_ns)
{
	__u64 kept = entry->kept_end_ns;

	if (keeps_every_wait) {
		write_wait(wake_key(slot, ends), now, blocked_ns, runnable_ns, uid);
		return;
	}
	if (kept && kept / WAIT_BUCKET_NS != now / WAIT_BUCKET_NS) {
		write_wait(wake_key(slot, 0), kept, entry->kept_blocked_ns, entry->kept_runnable_ns,
			   uid);
		entry->kept_end_ns = entry->kept_blocked_ns = entry->kept_runnable_ns = 0;
	}
	if (blocked_ns + runnable_ns >= WAIT_BUCKET_NS) {
		write_wait(wake_key(slot, ends), now, blocked_ns, runnable_ns, uid);
	} else {
		entry->kept_end_ns = now;
		entry->kept_blocked_ns += blocked_ns;
		entry->kept_runnable_ns += runnable_ns;
	}
}

/* Whether somebody may end the wait that is under way: not of waits for a CPU, nor for work. */
static __always_inline bool may_have_waker(const struct wait_task *wait)
{
	return wait->slot != wait->own_slots.runnable &&
	       wait->slot != wait->own_slots.kernel_thread && wait->slot != WAIT_CPU &&
	       wait->slot != WAIT_KERNEL;
}

static __always_inline void add_wait(struct wait_entry *entry, __u32 key, __u32 ends, __u32 uid,
				     __u64 blocked_ns, __u64 runnable_ns)
{
	__sync_fetch_and_add(&entry->count, 1);
	if (runnable_ns)
		__sync_fetch_and_add(&entry->runnable_ns, runnable_ns);
	if (blocked_ns)
		__sync_fetch_and_add(&entry->blocked_ns, blocked_ns);
	if (blocked_ns && ends)
		add_wake(key, ends, uid, blocked_ns);
}

static __always_inline __u32 *short_place(struct wait_task *wait)
{
	return &wait->short_places[wait->place % WAIT_SHORT_PLACES];
}

/*
 * Adds up the wait that is under way, and has ended now or before. seq: where to write when it was;
 * NULL: in a switch, which writes to the CPU's ring.
 *
 * The kernel does not report all switches. Where it has not reported that with which the wait
 * ended, its account says when the thread got a CPU, and how long it has run since then.
 */
static __noinline void end_wait(const struct task_struct *task, struct wait_task *wait, __u64 now,
				struct seq_file *seq)
{
	__u32 key = wait->slot;
	struct wait_entry *entry = bpf_map_lookup_elem(&waits, &key);
	__u64 since = wait->since_ns, arrived = task->sched_info.last_arrival, all, runnable;
	__u32 ends = wait_ends(wait->waker, wait->whom);

	wait->since_ns = 0;
	wait->waker = wait->whom = 0;
	if (!entry || wait->window != wait_window)
		return;
	if (seq) {
		wait->position = key < WAIT_KINDS ? 0 : entry->position;
		if (arrived <= since && !ends && may_have_waker(wait))
			wait->cut_ns = now;
	}
	if (arrived > since) {
		now -= task->se.sum_exec_runtime - wait->ran_ns;
		if (now > arrived)
			now = arrived;
	}
	all = now > since ? now - since : 0;
	runnable = key == wait->own_slots.runnable || key == WAIT_CPU
			   ? all
			   : runnable_ns(task, now) - wait->runnable_ns;
	if (runnable > all)
		runnable = all;
	add_wait(entry, key, ends, wait->uid, all - runnable, runnable);
	if (wait->place)
		*short_place(wait) = all - runnable < WAIT_BUCKET_NS ? wait->place : 0;
	if (key < WAIT_REASONS)
		return;
	if (seq) {
		const struct wait_record record = { now, all - runnable, runnable, key, ends };

		bpf_seq_write(seq, &record, sizeof(record));
	} else {
		keep_wait(entry, key, ends, wait->uid, now, all - runnable, runnable);
	}
}

/* Whether waits of the thread are recorded; `from_exec`: or will be, once it has called exec. */
static __always_inline bool has_waits(struct task_struct *task, bool from_exec)
{
	const struct member *member;

	if (!everyone) {
		if (!may_be_member(task))
			return false;
		member = find_member(one_thread ? tid_of(task) : tgid_of(task));
		if (!member || (member->state != MEMBER_COUNTS && !from_exec))
			return false;
		if (has_owner && !is_owners(task))
			return false;
	}
	return is_wanted(task);
}

/* A thread may become another user's at any time. */
static __always_inline void note_user(struct wait_task *wait, struct task_struct *task)
{
	__u64 cred = (__u64)BPF_CORE_READ(task, real_cred);

	if (wait->cred == cred)
		return;
	wait->cred = cred;
	wait->uid = user_of(task);
}

/*
 * Returns the wait of a thread of which waits are recorded; NULL: they are not. Not inlined, as
 * place_or_thread(): switch_stacks_cfi and what it calls have 512 bytes of stack together.
 */
static __noinline struct wait_task *own_wait(struct task_struct *task,
					     struct wait_counters *counters)
{
	struct wait_task *wait;

	if (!has_waits(task, false))
		return NULL;
	wait = bpf_task_storage_get(&wait_tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!wait) {
		counters->no_storage++;
		return NULL;
	}
	if (wait->exited)
		return NULL;
	note_user(wait, task);
	if (wait->window != wait_window) {
		/* A wait that is under way, and was not ended with its window, is lost. */
		wait->window = wait_window;
		wait->since_ns = 0;
		wait->waker = wait->whom = 0;
		wait->exec = ~(__u32)task->self_exec_id;
	}
	if (wait->exec != (__u32)task->self_exec_id) {
		/* Another program, or window: none of the stacks are its. */
		wait->exec = task->self_exec_id;
		wait->own_slots = (struct wait_own_slots){ 0 };
		wait->has_context = false;
		for (int i = 0; i < WAIT_PLACES; i++)
			wait->places[i].frames = 0;
	}
	return wait;
}

/* Whether the reason alone does not say for what the thread waits: its kernel frames do. */
static __always_inline bool has_kernel_stack(__u16 reason, __u32 state)
{
	return reason == WAIT_OTHER || state & TASK_UNINTERRUPTIBLE;
}

static __always_inline void begin_wait(void *ctx, struct task_struct *task, __u32 state, __u64 now,
				       bool cfi)
{
	const struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 cpu = bpf_get_smp_processor_id();
	struct wait_scratch *scratch = bpf_map_lookup_elem(&wait_scratch, &cpu);
	struct wait_counters *counters = own_wait_counters();
	struct wait_task *wait;
	struct stack *stack;
	struct file *file;
	long kernel_size = 0;
	__u64 id;
	__u32 slot;
	__u16 reason, context;
	bool walks, is_short;

	if (!scratch || !counters)
		return;
	wait = own_wait(task, counters);
	if (!wait)
		return;
	counters->waits++;
	stack = &scratch->stack.sample.stack;
	id = sample_id_make(task->self_exec_id, tgid_of(task), tid_of(task));
	if (wait->since_ns && task->sched_info.last_arrival > wait->since_ns)
		end_wait(task, wait, now, NULL);
	wait->waker = wait->whom = wait->place = 0;
	wait->runnable_ns = task->sched_info.run_delay;
	wait->ran_ns = task->se.sum_exec_runtime;
	if (!state) {
		context = wait_context(scratch, wait, id, cfi);
		if (!wait->own_slots.runnable || wait->runnable_context != context)
			wait->own_slots.runnable =
				find_wait_without_stack(stack, wait->uid, id, WAIT_CPU, context);
		wait->runnable_context = context;
		wait->slot = wait->own_slots.runnable;
		wait->since_ns = now;
		return;
	}
	reason = wait_reason(task, regs, state);
	if (reason == WAIT_KERNEL) {
		if (!wait->own_slots.kernel_thread)
			wait->own_slots.kernel_thread =
				find_wait_without_stack(stack, wait->uid, id, WAIT_KERNEL, 0);
		wait->slot = wait->own_slots.kernel_thread;
		wait->since_ns = now;
		return;
	}
	/* Another CPU may end the wait from now on. */
	wait->slot = SLOT_LATER;
	wait->reason = WAIT_OTHER;
	write_in_order(&wait->since_ns, now);
	file = wait_file(task, regs, reason, true);
	wait->place = (regs->PC_REGISTER ^ regs->sp * 0x9e3779b97f4a7c15) >> 24 ^ reason;
	slot = SLOT_LATER;
	is_short = *short_place(wait) == wait->place;
	if (!is_over_budget(counters, now, is_short ? 3 : 4)) {
		if (has_kernel_stack(reason, state))
			kernel_size = get_frames(ctx, stack->pcs, 0);
		walks = !is_short || !is_over_budget(counters, now, 2);
		slot = find_own_stack(ctx, scratch, task, wait, id, reason, file, kernel_size, cfi,
				      walks, counters);
	}
	if (slot == SLOT_LATER) {
		counters->spared++;
		context = wait_context(scratch, wait, id, cfi);
		wait->reason = reason_in_haste(wait, reason, file);
		wait->slot = find_wait_without_stack(stack, wait->uid, id, wait->reason, context);
		return;
	}
	wait->slot = slot;
	if (reason == WAIT_LOCK && is_futex(regs))
		wait->whom = find_holder(task, wait, stack);
}

/*
 * Adds the first waits of a thread that runs for the first time: for its creator, which makes it
 * and then lets it run, and for a CPU. Of threads that were there before the recording,
 * begin_waits() has made an entry.
 */
static __always_inline void add_first_wait(struct task_struct *task, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct wait_scratch *scratch = bpf_map_lookup_elem(&wait_scratch, &cpu);
	struct wait_counters *counters = own_wait_counters();
	__u64 since = task->sched_info.last_queued;
	struct wait_task *wait;
	__s64 created_ns;

	if (!scratch || !counters || !since)
		return;
	wait = own_wait(task, counters);
	if (!wait)
		return;
	/* Its life by the one clock, without the time since it could run by the other. */
	created_ns = bpf_ktime_get_ns() - task->start_time - (now - since);
	wait->slot = find_wait_without_stack(
		&scratch->stack.sample.stack, wait->uid,
		sample_id_make(task->self_exec_id, tgid_of(task), tid_of(task)), WAIT_START, 0);
	wait->since_ns = since - (created_ns > 0 ? created_ns : 0);
	wait->runnable_ns = 0;
	counters->waits++;
	end_wait(task, wait, now, NULL);
}

static __always_inline void note_switch(__u64 *ctx, bool cfi)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	__u32 state = ctx[3];
	__u64 start = begin_timing(), now = next->se.cfs_rq->rq->clock;
	struct wait_counters *counters;
	struct wait_task *wait = bpf_task_storage_get(&wait_tasks, next, NULL, 0);

	if (waits_paused)
		return;
	if (wait && wait->since_ns)
		end_wait(next, wait, now, NULL);
	else if (!next->nvcsw && !next->nivcsw && next->pid)
		add_first_wait(next, now);
	/* A thread that was preempted can run, whatever its state. */
	if (prev->pid && !(state & TASK_DEAD))
		begin_wait(ctx, prev, ctx[0] ? 0 : state, now, cfi);
	counters = start ? own_wait_counters() : NULL;
	if (counters) {
		__s64 offset = now - start, moved = offset - waker_clock_offset;

		if (moved > 100000 || moved < -100000)
			waker_clock_offset = offset;
		counters->timed++;
		counters->timed_ns += bpf_ktime_get_ns() - start;
	}
}

/* The entry of a thread that wakes others, or makes them, without a stack. */
static __always_inline __u32 own_waker(struct task_struct *task, struct wait_task *own,
				       struct stack *stack)
{
	if (!own->own_slots.waker)
		own->own_slots.waker = find_wait_without_stack(
			stack, own->uid,
			sample_id_make(task->self_exec_id, tgid_of(task), tid_of(task)),
			WAKER_THREAD, 0);
	return own->own_slots.waker;
}

/*
 * Makes the storage of a new thread, with its creator as who ends its first wait. At a switch the
 * kernel cannot always: it takes the memory from what it has ready for the CPU, which is little,
 * and gets more when the switch is over.
 */
SEC("?tp_btf/sched_process_fork")
int prepare_waits(const __u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 cpu = bpf_get_smp_processor_id();
	struct wait_scratch *scratch = bpf_map_lookup_elem(&wait_scratch, &cpu);
	struct wait_counters *counters = own_wait_counters();
	struct wait_task *wait, *own;

	/* The child itself may not be among the members yet. */
	if (one_thread || !has_waits(parent, true) ||
	    !(everyone || inherit || parent->tgid == child->tgid))
		return 0;
	wait = bpf_task_storage_get(&wait_tasks, child, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	own = wait && scratch && counters && !waits_paused ? own_wait(parent, counters) : NULL;
	if (own) {
		wait->window = wait_window;
		wait->exec = ~(__u32)child->self_exec_id;
		wait->waker = own_waker(parent, own, &scratch->stack.sample.stack);
	}
	return 0;
}

/* The account of wall time ends here: the rest of the exit may wait, too. */
SEC("?tp_btf/sched_process_exit")
int end_of_waits(const __u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct wait_task *wait = bpf_task_storage_get(&wait_tasks, task, NULL, 0);

	if (!wait)
		return 0;
	wait->exited = true;
	if (!waits_paused && wait->since_ns && task->sched_info.last_arrival > wait->since_ns)
		end_wait(task, wait, task->se.cfs_rq->rq->clock, NULL);
	return 0;
}

/* --- Wakers --- */

/* Of waits as long as this, or longer, the waker's stack is taken. Bound: pace. */
#define WAKER_STACK_NS 1000000

/* In the preempt count: an interrupt of a device or an NMI is being served; a softirq is. */
#define IN_INTERRUPT 0xff0000
#define IN_SOFTIRQ   0x100

/* How many kernel frames there are up to that of an interrupt's entry; 0: there is none. */
__noinline int find_interrupt_entry(struct stack *stack)
{
	if (!stack)
		return 0;
	for (__u32 i = 0; i < STACK_DEPTH_MAX && i < stack->kernel_depth; i++)
		if (stack->pcs[i] - interrupt_entry < interrupt_entry_size)
			return i + 1;
	return 0;
}

/*
 * Whether it is no thread that wakes one now. A softirq may be served at the end of an interrupt;
 * or in a system call, for what the thread itself has sent: then it is the waker. Both run on the
 * stack of interrupts.
 */
static __always_inline bool is_interrupt(struct task_struct *task)
{
	__u32 count = preempt_count(task, preempt_count_distance);

	if (count & IN_INTERRUPT || !task->pid)
		return true;
	return count & IN_SOFTIRQ &&
	       (task->flags & PF_KTHREAD ||
		!is_in_system_call((struct pt_regs *)bpf_task_pt_regs(task)) ||
		!interrupt_code_size ||
		interrupt_stack_caller(task, interrupt_stack_distance) - interrupt_code <
			interrupt_code_size);
}

/*
 * The entry in `waits` of who wakes now a thread that waits. *interrupt receives whether it is no
 * thread that does.
 */
static __always_inline __u32 find_waker(void *ctx, struct task_struct *task,
					const struct wait_task *woken,
					struct wait_counters *counters, bool cfi, bool *interrupt)
{
	__u64 now = bpf_ktime_get_ns() + waker_clock_offset, id;
	__u32 cpu = bpf_get_smp_processor_id();
	struct wait_scratch *scratch = bpf_map_lookup_elem(&wait_scratch, &cpu);
	bool kernel_thread = task->flags & PF_KTHREAD;
	bool takes_stack = (__s64)(now - woken->since_ns) >= WAKER_STACK_NS;
	struct wait_task *own;
	struct stack *stack;
	long size = 0;
	int entry;

	*interrupt = is_interrupt(task);
	if (!scratch)
		return 0;
	stack = &scratch->stack.sample.stack;
	/* These are spared first. */
	if (takes_stack && is_over_budget(counters, now, 2))
		takes_stack = false;
	if (*interrupt && !takes_stack)
		return WAKER_INTERRUPT;
	if (takes_stack)
		size = get_frames(ctx, stack->pcs, 0);
	if (*interrupt) {
		stack->kernel_depth = size / sizeof(__u64);
		entry = find_interrupt_entry(stack);
		if (entry)
			stack->kernel_depth = entry;
		stack->id = SAMPLE_ID_VALID;
		stack->context = 0;
		stack->user_depth = 0;
		stack->end = stack->by_frame_pointer = 0;
		stack->cpu = WAKER_INTERRUPT;
		return find_wait(stack, woken->uid);
	}
	/* One that has waited is recorded: that is cheaper to see. */
	own = bpf_task_storage_get(&wait_tasks, task, NULL, 0);
	if (!own || own->exec != (__u32)task->self_exec_id || own->window != wait_window ||
	    (has_owner && !is_owners(task)))
		own = own_wait(task, counters);
	if (own && !takes_stack && own->own_slots.waker)
		return own->own_slots.waker;
	id = sample_id_make(task->self_exec_id, tgid_of(task), tid_of(task));
	if (!own) {
		stack->id = id;
		stack->context = 0;
		stack->kernel_depth = SAMPLE_COMM_SIZE / sizeof(*stack->pcs);
		stack->user_depth = 0;
		stack->end = stack->by_frame_pointer = 0;
		stack->cpu = WAKER_OTHER_THREAD;
		bpf_get_current_comm(stack->pcs, SAMPLE_COMM_SIZE);
		return find_wait(stack, woken->uid);
	}
	if (!takes_stack)
		return own_waker(task, own, stack);
	if (kernel_thread || has_no_stack(task)) {
		stack->id = id;
		stack->context = 0;
		stack->kernel_depth = size / sizeof(__u64);
		stack->user_depth = 0;
		stack->end = stack->by_frame_pointer = 0;
		stack->cpu = WAKER_THREAD;
		return find_wait(stack, own->uid);
	}
	return find_own_stack(ctx, scratch, task, own, id, WAKER_THREAD, NULL, size, cfi, true,
			      counters);
}

/* Notes who ends now a wait while a window is cut. */
static __noinline int note_cut_waker(struct task_struct *task, struct wait_task *wait)
{
	__u64 waker = WAKER_INTERRUPT;

	if (!is_interrupt(task)) {
		if (!has_waits(task, false))
			return 0;
		waker = sample_id_make(task->self_exec_id, tgid_of(task), tid_of(task));
	}
	wait->cut_end_ns = bpf_ktime_get_ns() + wait_clock_offset;
	write_in_order(&wait->cut_waker, waker);
	return 0;
}

static __always_inline void note_waking(__u64 *ctx, bool cfi)
{
	struct task_struct *task = bpf_get_current_task_btf(), *woken = (void *)ctx[0];
	__u64 start = begin_timing();
	struct wait_task *wait = bpf_task_storage_get(&wait_tasks, woken, NULL, 0);
	struct wait_counters *counters = own_wait_counters();
	bool interrupt;

	if (!counters)
		return;
	/* It has not run since. */
	if (wait &&
	    (wait->since_ns ? waits_paused && !wait->waker && may_have_waker(wait)
			    : wait->cut_ns) &&
	    woken->se.sum_exec_runtime == wait->ran_ns)
		note_cut_waker(task, wait);
	if (waits_paused)
		return;
	if (wait && wait->since_ns && !wait->waker && may_have_waker(wait)) {
		wait->waker = find_waker(ctx, task, wait, counters, cfi, &interrupt);
		if (wait->waker && !wait->whom)
			wait->whom = find_whom(task, woken, wait, interrupt, counters);
	}
	if (start)
		counters->timed_ns += bpf_ktime_get_ns() - start;
}

/* For user space, by BPF_PROG_TEST_RUN: to read /proc/kallsyms takes a thousand times as long. */
SEC("?syscall")
int find_symbols(struct wait_symbols *symbols)
{
	for (int i = 0; i < WAIT_SYMBOLS; i++) {
		struct wait_symbol symbol = symbols->list[i];

		if (!bpf_kallsyms_lookup_name(symbol.name, sizeof(symbol.name), 0, &symbol.address))
			symbols->list[i].address = symbol.address;
	}
	return 0;
}

/* Notes which disk has answered: those who waited for it are woken next. */
SEC("?tp_btf/block_rq_complete")
int note_completion(const __u64 *ctx)
{
	const struct request *request = (const void *)ctx[0];
	struct wait_counters *counters = own_wait_counters();
	struct gendisk *disk;

	if (!counters)
		return 0;
	disk = bpf_core_field_exists(struct request_queue, disk) ? BPF_CORE_READ(request, q, disk)
								 : BPF_CORE_READ(request, rq_disk);
	counters->completed_device =
		disk ? wait_device(BPF_CORE_READ(disk, major), BPF_CORE_READ(disk, first_minor))
		     : 0;
	counters->completed_ns = bpf_ktime_get_ns();
	return 0;
}

/* --- At both ends --- */

/* The entry of who has ended a wait while a window was cut. */
static __always_inline __u32 find_cut_waker(struct stack *stack, const struct wait_task *wait)
{
	__u64 waker = wait->cut_waker;

	return waker < WAIT_KINDS
		       ? waker
		       : find_wait_without_stack(stack, wait->uid, waker, WAKER_THREAD, 0);
}

/*
 * Adds to the new window what is left of a wait that went on when the last one ended, and has ended
 * since then: *ended receives when it was. Its thread may wait again by now, or run.
 */
static __noinline int add_cut_wait(struct task_struct *task, struct wait_task *wait,
				   struct wait_begin *begin, __u64 now)
{
	struct wait_record *ended = &begin->before.ended;
	const struct stack *old;
	struct wait_entry *entry;
	__u64 runnable;
	__u32 key, ends;

	if (!wait->position || wait->cut_end_ns <= wait->cut_ns)
		return 0;
	old = (const struct stack *)words_at(wait->position);
	if (!old)
		return 0;
	ends = wait_ends(find_cut_waker(&begin->stack, wait), 0);
	/* User space has walked the stack of a copy: it is not here. */
	if (bpf_probe_read_kernel(&begin->stack, sizeof(begin->stack), old) ||
	    begin->stack.cpu & WAIT_COPIED)
		return 0;
	if (begin->stack.context)
		begin->stack.context = carry_context(&begin->context, begin->stack.context,
						     sample_id_process(begin->stack.id));
	key = find_wait(&begin->stack, wait->uid);
	entry = bpf_map_lookup_elem(&waits, &key);
	if (!entry)
		return 0;
	runnable = runnable_ns(task, now) - wait->runnable_ns;
	/* A next wait has begun: how long it could run before that is not known. */
	if (wait->since_ns || runnable > now - wait->cut_end_ns)
		runnable = 0;
	ended->end_ns = wait->cut_end_ns + runnable;
	ended->blocked_ns = wait->cut_end_ns - wait->cut_ns;
	ended->runnable_ns = runnable;
	ended->slot = key;
	ended->ends = ends;
	add_wait(entry, key, ends, wait->uid, ended->blocked_ns, runnable);
	return key >= WAIT_REASONS;
}

/*
 * At the beginning, for each thread: makes its storage, see prepare_waits(). One that waits already
 * has done so at least since now. Writes the registers of those that may have a stack; and waits
 * that went on when the last window ended, and have ended since then.
 */
SEC("?iter/task")
int begin_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wait_counters *counters = own_wait_counters();
	struct wait_before *before;
	struct wait_begin *begin;
	const struct pt_regs *regs;
	const struct stack *old;
	bool is_known;
	struct file *file;
	struct wait_task *wait;
	__u64 now = bpf_ktime_get_ns() + wait_clock_offset;
	__u32 zero = 0, state;
	__u16 reason = WAIT_CPU;
	long size;

	begin = bpf_map_lookup_elem(&wait_begin, &zero);
	if (!task || !begin || !counters || task->__state & TASK_DEAD || !has_waits(task, true))
		return 0;
	wait = bpf_task_storage_get(&wait_tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	before = &begin->before;
	before->id = 0;
	if (wait && wait->cut_waker && wait->cut_ns && add_cut_wait(task, wait, begin, now))
		bpf_seq_write(ctx->meta->seq, before, sizeof(*before));
	before->ended.end_ns = 0;
	if (wait)
		wait->cut_waker = wait->cut_ns = 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	wait = BPF_CORE_READ_BITFIELD(task, on_cpu) ? NULL : own_wait(task, counters);
	if (!wait || wait->since_ns)
		return 0;
	state = task->__state;
	if (state)
		reason = wait_reason(task, regs, state);
	old = wait->position && task->se.sum_exec_runtime == wait->ran_ns
		      ? (const struct stack *)words_at(wait->position)
		      : NULL;
	wait->position = 0;
	is_known = old && !bpf_probe_read_kernel(&begin->stack, sizeof(begin->stack), old);
	if (is_known && !(begin->stack.cpu & WAIT_COPIED)) {
		/* The same wait as at the end of the last window. */
		wait->runnable_ns = runnable_ns(task, now);
		begin->context.user = wait->uid;
		if (begin->stack.context)
			begin->stack.context = carry_context(&begin->context, begin->stack.context,
							     sample_id_process(begin->stack.id));
		wait->reason = begin->stack.cpu;
		wait->slot = find_wait(&begin->stack, wait->uid);
		if (!state)
			wait->own_slots.runnable = wait->slot;
		wait->since_ns = now;
		return 0;
	}
	file = wait_file(task, regs, reason, false);
	reason = reason_and_role(task, regs, reason, file, false);
	before->id = sample_id_make(task->self_exec_id, tgid_of(task), tid_of(task));
	wait->runnable_ns = runnable_ns(task, now);
	wait->ran_ns = task->se.sum_exec_runtime;
	begin->stack.id = before->id;
	begin->stack.context = 0;
	begin->stack.cpu = wait->reason = reason;
	/* User space walks the stacks of those alone that have waited since before the recording.
	 */
	if (reason == WAIT_CPU || reason == WAIT_KERNEL || (wait_window && !is_known) ||
	    is_32_bit_mode(regs->MODE_REGISTER)) {
		wait->slot =
			find_wait_without_stack(&begin->stack, wait->uid, before->id, reason, 0);
		if (reason == WAIT_CPU)
			wait->own_slots.runnable = wait->slot;
		wait->since_ns = now;
		return 0;
	}
	begin->stack.kernel_depth = 0;
	if (has_kernel_stack(reason, state)) {
		size = bpf_get_task_stack(task, begin->stack.pcs, STACK_DEPTH_MAX * sizeof(__u64),
					  0);
		if (size > 0)
			begin->stack.kernel_depth = size / sizeof(__u64);
	}
	wait->slot = before->slot = find_copied_wait(&begin->stack, wait->uid);
	if (file && (reason & WAIT_REASON_MASK) == WAIT_SOCKET)
		note_peer(file, wait->slot);
	wait->since_ns = now;
	copy_registers(before->registers, regs);
	before->registers[UNWIND_REGISTERS] = regs->PC_REGISTER;
	before->thread_pointer = thread_pointer_of(task);
	bpf_seq_write(ctx->meta->seq, before, sizeof(*before));
	return 0;
}

/*
 * At the end: adds up the waits that are under way, and writes when they were. A thread that has
 * exited or runs does not wait: the switch with which its wait ended was not reported.
 */
SEC("?iter/task")
int end_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wait_begin *begin;
	struct wait_task *wait;
	__u32 zero = 0;

	begin = bpf_map_lookup_elem(&wait_begin, &zero);
	wait = task ? bpf_task_storage_get(&wait_tasks, task, NULL, 0) : NULL;
	if (wait && wait->since_ns && !task->exit_state &&
	    (!BPF_CORE_READ_BITFIELD(task, on_cpu) ||
	     task->sched_info.last_arrival > wait->since_ns)) {
		/* These clocks differ a little. */
		if (begin && wait->cut_waker && !wait->waker &&
		    wait->cut_end_ns + WAIT_BUCKET_NS > wait->since_ns)
			wait->waker = find_cut_waker(&begin->stack, wait);
		wait->cut_waker = wait->cut_ns = 0;
		end_wait(task, wait, bpf_ktime_get_ns() + wait_clock_offset, ctx->meta->seq);
	}
	return 0;
}

#endif
