/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_MEMBERS_H
#define PROFIL_CAPTURE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/member.h"
#include "util/error.h"

struct bpf_object;
struct kernel_types;
struct ring_buffer;

/* Bound: size. */
#define MEMBERS_PROGRAMS 3

/*
 * Members: the processes, or threads, whose ticks a BPF object with bpf/members.h counts. Its
 * programs keep the map of them up to date. Zero-initialised is none.
 */
struct members {
	bool one_thread; /* members are threads; set before members_begin() */
	int map, number_map;
	uint64_t *numbers;		/* number_map in our memory */
	struct member_account *account; /* the object's, in our memory */
	int links[MEMBERS_PROGRAMS];	/* descriptors that keep the programs attached */
	size_t link_count;
	int look;		     /* the link of the iterator over all threads; 0: none */
	struct ring_buffer *records; /* NULL: none */
	int (*visit)(const struct member_record *record, void *context); /* see members_read() */
	void *context;
};

/* Of all members since the account's begin, those that have exited included. */
struct member_times {
	uint64_t cpu_ns, runnable_ns, wall_ns;
	uint64_t threads;
};

/* Before the load: chooses the programs to load. `account`: times and records will be read. */
void members_choose(struct bpf_object *object, bool account);

/* After the load: starts to follow forks, execs and exits. Returns 0 or -errno with *e set. */
int members_begin(struct members *members, struct bpf_object *object, bool account,
		  struct error *e);

/* Maps number_map, which is set, to `numbers`. Returns 0 or a negative errno. */
int members_map_numbers(struct members *members);

/* How many words the bits of all CPUs need, for the object's settings. */
uint32_t members_cpu_words(void);

/* The inode of our PID namespace, for the object's settings; 0: the initial one. */
uint32_t members_pid_namespace(void);

/*
 * Adds a process, or a thread, by its PID; a member stays as it is. Returns 0 or a negative errno
 * with *e set. Check afterwards that it still exists, and else remove it: its PID may be used
 * again.
 */
int members_add(struct members *members, pid_t number, const struct member *member,
		struct error *e);

/* Sets a member's state and client. Returns 0, or -ESRCH: it is no member (any more). */
int members_change(struct members *members, pid_t number, const struct member *to);

/* Whether it is a member. */
bool members_has(const struct members *members, pid_t number);

void members_remove(struct members *members, pid_t number);

/* Whether a member's thread was allowed to run on the CPU at the last members_look(). */
bool members_may_run_on(const struct members *members, int cpu);

/* Updates times and allowed CPUs from all threads. Returns 0 or a negative errno with *e set. */
int members_look(struct members *members, struct error *e);

/* Starts the account of times. Returns 0 or a negative errno with *e set. */
int members_begin_account(struct members *members, struct error *e);

/* Stores the account so far. Returns 0 or a negative errno with *e set. */
int members_read_account(struct members *members, struct member_times *times, struct error *e);

/* Ends the account, and stores it. Returns 0 or a negative errno with *e set. */
int members_end_account(struct members *members, struct member_times *times, struct error *e);

/*
 * Visits the fork and exit records since the last call; there are none without `account`. Stops
 * when visit returns non-zero, and returns that, or a negative errno.
 */
int members_read(struct members *members,
		 int (*visit)(const struct member_record *record, void *context), void *context);

/* A descriptor that is readable when there are many records; owned by members. */
int members_fd(const struct members *members);

/* How many fork and exit records were lost, and threads dropped from the account. */
uint64_t members_lost(const struct members *members);

/* How many child processes were dropped because the map of members was full. */
uint64_t members_dropped(const struct members *members);

void members_free(struct members *members);

/*
 * Sets *owner to the calling process's real user and group, and to where this kernel has what
 * bpf/owner.h reads. Returns 0, or a negative errno with e set: without one of them nobody could
 * tell whose a process is.
 */
int owner_find(struct member_owner *owner, struct kernel_types *types, struct error *e);

#endif
