/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_MEMBERS_H
#define PROFIL_CAPTURE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/member.h"
#include "util/error.h"

struct bpf_object;
struct ring_buffer;

#define MEMBERS_PROGRAMS 3

/*
 * Whose ticks count in a BPF object that has bpf/members.h in it: processes, or threads. The kernel
 * keeps the list up to date by itself. Zero-initialised is none.
 */
struct members {
	bool one_thread; /* they are threads; set before members_begin() */
	int map, number_map;
	uint64_t *numbers;		/* of number_map: shared with the kernel */
	struct member_account *account; /* the kernel's own */
	int links[MEMBERS_PROGRAMS];	/* descriptors that keep the programs attached */
	size_t link_count;
	int look;		     /* the program that looks at all threads; 0: none */
	struct ring_buffer *records; /* NULL: none */
	int (*visit)(const struct member_record *record, void *context); /* during members_read() */
	void *context;
};

/* Chooses the programs to be loaded, before the load; `account`: CPU time will be asked for. */
void members_choose(struct bpf_object *object, bool account);

/* After the load: from now on forks, execs and exits are followed. */
int members_begin(struct members *members, struct bpf_object *object, bool account,
		  struct error *e);

/* Maps the numbers once number_map is set. Returns 0 or a negative errno. */
int members_map_numbers(struct members *members);

/* How many words of CPUs the kernel has, for the object's settings. */
uint32_t members_cpu_words(void);

/* The inode of our pid namespace, for the object's settings; 0: it is the initial one. */
uint32_t members_pid_namespace(void);

/*
 * Takes in a process, or a thread, by its number; one that is in already stays as it is. It may
 * have ended before: then the number may be a stranger's, and is to be removed again.
 */
int members_add(struct members *members, pid_t number, const struct member *member,
		struct error *e);

/* Gives a member another state and client. -ESRCH when it is none any more. */
int members_change(struct members *members, pid_t number, const struct member *to);

/* Whether it is one, counted for this client. */
bool members_has(const struct members *members, pid_t number, uint32_t client);

void members_remove(struct members *members, pid_t number);

/* Whether a thread of a member could run there, when it was last looked. */
bool members_may_run_on(const struct members *members, int cpu);

/* Looks at all threads of the machine. */
int members_look(struct members *members, struct error *e);

/* From now on, CPU time that members use is of the account. */
int members_begin_account(struct members *members, struct error *e);

/*
 * Ends the account. Stores the CPU time that all members have used since its begin, those that have
 * exited included, in nanoseconds.
 */
int members_end_account(struct members *members, uint64_t *ns, struct error *e);

/*
 * Reads the fork and exit records that have arrived since the last call. Returns what visit does
 * if that is not 0, or a negative errno. Only with an account.
 */
int members_read(struct members *members,
		 int (*visit)(const struct member_record *record, void *context), void *context);

/* Readable when there are many. */
int members_fd(const struct members *members);

/* Fork and exit records that were lost, and threads whose CPU time is unknown. */
uint64_t members_lost(const struct members *members);

/* Children that were dropped because the map of members was full. */
uint64_t members_dropped(const struct members *members);

/* Detaches the programs; records that have arrived can still be read. */
void members_end(struct members *members);
void members_free(struct members *members);

#endif
