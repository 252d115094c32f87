/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the programs use, with only the fields that they use. Field offsets are
 * CO-RE relocations: libbpf fills in those of the running kernel when it loads a program.
 */
#ifndef PROFIL_BPF_VMLINUX_H
#define PROFIL_BPF_VMLINUX_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum {
	false,
	true,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_F_INNER_MAP = 1U << 12,
};

enum {
	BPF_F_USER_STACK = 1U << 8,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1U << 0,
};

enum {
	BPF_RB_NO_WAKEUP = 1U << 0,
	BPF_RB_FORCE_WAKEUP = 1U << 1,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

/* In task_struct.flags: the thread is exiting. */
#define PF_EXITING 0x00000004

/* In task_struct.__state: the thread waits, and no signal ends that. */
#define TASK_UNINTERRUPTIBLE 0x00000002

/* In task_struct.__state: the thread runs no more once it has left its CPU. */
#define TASK_DEAD 0x00000080

/* In task_struct.flags: a kernel thread. */
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

/* Numbers of threads: a tree of struct xa_node, and struct pid at its leaves. */
struct pid_namespace {
	struct ns_common ns;
	struct {
		struct {
			void *xa_head;
		} idr_rt;
	} idr;
};

struct xa_node {
	unsigned char shift;
	void *slots[64];
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct hlist_node {
	struct hlist_node *next;
};

struct pid {
	unsigned int level;
	struct {
		struct hlist_node *first;
	} tasks[1]; /* of the thread: its pid_links[0] */
	struct upid numbers[1];
};

struct hrtimer_cpu_base {
	unsigned int cpu;
};

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base;
};

struct hrtimer {
	struct hrtimer_clock_base *base;
};

struct tick_sched {
	struct hrtimer sched_timer;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

struct signal_struct {
	atomic_t live;	/* threads that have not called exit */
	int nr_threads; /* threads that have not been released */
	struct sigpending shared_pending;
};

struct rq;

/*
 * A queue of threads that are runnable, or of groups of them. The first counts that follow are of
 * the threads in it and in all groups below it. Since 6.12, a thread that goes to sleep may stay in
 * the queue for a while (sched_delayed).
 */
struct cfs_rq {
	unsigned int h_nr_queued,
		h_nr_runnable;	   /* since 6.14: with those that sleep, and without */
	unsigned int h_nr_delayed; /* in 6.13 and late 6.12: those that sleep */
	struct rq *rq;		   /* of the CPU; with CONFIG_FAIR_GROUP_SCHED */
};

struct list_head {
	struct list_head *next;
};

/* What runs on a CPU, and waits for it. */
struct rq {
	unsigned int nr_running;    /* threads of all scheduling classes, but the idle one */
	struct cfs_rq cfs;	    /* the uppermost */
	struct list_head cfs_tasks; /* all of its threads, by se.group_node */
	int cpu;
	__u64 clock;	  /* the scheduler's, when it was last looked at */
	__u64 clock_task; /* without the time that interrupts and the host took */
};

struct sched_entity {
	__u64 exec_start;	/* by clock_task: up to when a running thread's time is summed up */
	__u64 sum_exec_runtime; /* CPU time: ns */
	struct cfs_rq *cfs_rq;	/* of its CPU, also of a thread of another class */
	struct list_head group_node;
	unsigned char sched_delayed; /* since 6.12: it sleeps, and is still in the queue */
};

struct sched_info {
	__u64 run_delay;    /* for how long it was runnable and waited for a CPU: ns */
	__u64 last_arrival; /* by clock: when it last got a CPU */
	__u64 last_queued;  /* by clock: since when it waits; 0: it does not */
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	__u16 i_mode;
	__u32 i_flags;
	__u32 i_rdev;
	struct super_block *i_sb;
};

struct gendisk {
	int major, first_minor;
};

struct request_queue {
	struct gendisk *disk; /* since 5.15 */
};

struct request {
	struct request_queue *q;
	struct gendisk *rq_disk; /* before 5.17 */
};

struct file {
	struct inode *f_inode;
	void *private_data; /* of a socket: struct socket */
};

struct eventpoll {
	struct {
		struct {
			void *rb_node;
		} rb_root;
	} rbr; /* of struct epitem */
};

struct epitem {
	struct {
		void *unused;
	} rbn; /* struct rb_node */
	struct {
		struct file *file;
	} ffd;
	struct {
		__u32 events;
	} event;
};

struct in6_addr {
	__u64 words[2];
};

struct sock_common {
	unsigned short skc_family;
	unsigned char skc_state;
	__be32 skc_daddr, skc_rcv_saddr; /* the peer's address, and its own */
	__be16 skc_dport;
	__u16 skc_num; /* its own port */
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	struct pid *sk_peer_pid;
	__u16 sk_type;
	__u32 sk_max_ack_backlog;
	unsigned char sk_userlocks : 4;
};

struct socket {
	struct sock *sk;
};

struct unix_sock {
	void *addr;
	struct sock *peer;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct kernfs_node {
	__u64 id;
	const char *name;
};

struct cgroup {
	int level; /* 0: the root */
	struct kernfs_node *kn;
	struct cgroup *ancestors[]; /* by level, itself included */
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

/* The quota of a control group, with CONFIG_CFS_BANDWIDTH. Times are in ns. */
struct cfs_bandwidth {
	__s64 period;
	__u64 quota; /* ~0: none */
	int nr_periods, nr_throttled;
	__u64 throttled_time;
};

/* A control group with the controller cpu, with CONFIG_CGROUP_SCHED. */
struct task_group {
	struct cgroup_subsys_state css; /* without a cgroup: of autogroup */
	struct task_group *parent;	/* NULL: it is the root */
	struct cfs_bandwidth cfs_bandwidth;
};

/* The numbers differ between kernels: read with bpf_core_enum_value(). */
enum cgroup_subsys_id {
	perf_event_cgrp_id,
};

/* The numbers of users are those in the initial user namespace. */
struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: the initial one */
	struct {
		unsigned int val;
	} owner;
};

struct cred {
	struct {
		unsigned int val;
	} uid, euid;
	struct user_namespace *user_ns;
};

struct css_set {
	struct cgroup_subsys_state *subsys[16]; /* by controller, in the hierarchy that has it */
	struct cgroup *dfl_cgrp;		/* in cgroup v2 */
};

/* arm64 has the preempt count in it. */
struct thread_info {
	struct {
		__u32 count;
	} preempt;
};

/*
 * Read the pointers in it with BPF_CORE_READ(). For each direct dereference the verifier searches
 * the whole BTF of the kernel to see whether the pointer is trusted, which adds some 3 ms to the
 * load.
 */
struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	/* 4 bytes, or 1 as in Linux 7.2: read it as a bit field, which finds the size. */
	unsigned int on_cpu;
	struct sched_entity se;
	struct sched_info sched_info;
	struct task_group *sched_task_group;
	unsigned int exit_state; /* not 0: it has ended, or is about to */
	unsigned long nvcsw;	 /* how often it gave up its CPU by itself */
	unsigned long nivcsw;	 /* how often it had to give up its CPU */
	const __u64 *cpus_ptr;	 /* a bit for each CPU */
	const struct cred *real_cred;
	char comm[16];
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	struct files_struct *files;
	int pid;
	int tgid;
	struct task_struct *real_parent, *group_leader;
	struct pid *thread_pid;
	struct hlist_node pid_links[1];
	struct signal_struct *signal;
	sigset_t blocked;
	struct sigpending pending; /* of the thread alone */
	struct css_set *cgroups;
	__u64 start_time;		    /* CLOCK_MONOTONIC */
	__u64 parent_exec_id, self_exec_id; /* parent_exec_id: the parent's at the fork */
	struct {
		unsigned long fsbase; /* x86-64: the thread pointer */
		struct {
			unsigned long tp_value; /* arm64: the same, as of the last switch */
		} uw;
	} thread;
};

#pragma clang attribute pop

/*
 * The types below are ABI and are read at fixed offsets: each type that libbpf has to find in the
 * kernel's BTF adds some 2 ms to the load.
 */

#include "arch.h"

/* The context of perf_event programs (linux/bpf_perf_event.h). */
struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session, number;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL: the iteration has ended */
};

static inline bool in_kernel(const struct bpf_perf_event_data *ctx)
{
	return is_kernel_mode(ctx->regs.MODE_REGISTER);
}

#endif
