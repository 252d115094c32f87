/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROCESS_H
#define PROFIL_CAPTURE_PROCESS_H

#include <time.h>

#include "capture/capture.h"
#include "capture/sideband.h"
#include "util/index.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN, with its NUL */

/*
 * A target may map whatever it likes, and each mapping is a file to open, a path to keep, and a
 * search among all others: those of one address space have a budget. This is 10,000 of usual
 * length; the largest browsers and Java programs have 2,000.
 */
#define SPACE_BYTES_MAX ((size_t)1024 * 1024)

/*
 * What one program had mapped, from its exec (or birth, or our arrival) on. A child begins with
 * its parent's mappings, and refers to them: most children exec or end soon.
 */
struct address_space {
	uint64_t since_ns;
	uint32_t parent;		  /* a process's number in the table, or INDEX_NONE */
	uint32_t parent_space;		  /* the number of that process's address space then, */
	uint32_t parent_count;		  /* and how many mappings it had itself */
	struct capture_mapping *mappings; /* in the order of time */
	size_t count, room;
	size_t bytes;  /* of its own mappings, with their paths */
	uint32_t exec; /* how many times exec was called: modulo, as in sample_id_exec() */
};

#define EXEC_UNKNOWN UINT32_MAX

/* The file with the names of code that the process has generated: see capture/jit_file.h. */
struct jit {
	uint32_t image; /* its memory without a file, or INDEX_NONE */
	uint32_t dump;	/* the jit-PID.dump that it has mapped, or INDEX_NONE */
	int root;	/* see image_root() */
	bool has_root;	/* and whether it is to be had */
	pid_t pid;	/* its own number in its innermost PID namespace */
	uid_t uid;	/* its effective user */
	time_t start;	/* when it began, since the epoch; 0: not known */
};

struct process {
	pid_t pid;
	uint32_t younger; /* the number of the next process with this pid, or INDEX_NONE */
	bool reuses_pid;  /* an earlier process had this pid */
	bool ended;
	bool changed;		      /* it is in process_table.changed */
	struct address_space *spaces; /* one more with each exec; at least one */
	size_t count, room;
	struct jit jit;
};

struct thread {
	pid_t tid;
	char comm[COMM_SIZE];
};

/* The root folder of a process, as its mount namespace has it. */
struct root {
	int fd;
	uint64_t namespace, device, inode;
};

/*
 * The processes that are followed, the files that they map for execution and the names of their
 * threads. Zero-initialised is empty.
 */
struct process_table {
	bool everyone; /* take in all processes that appear */
	bool inherit;  /* take in the children of those that are there */
	struct process *processes;
	size_t count, room;
	struct thread *threads;
	size_t thread_count, thread_room;
	struct capture_image *images;
	size_t image_count, image_room;
	struct root *roots; /* of processes that have another than ours */
	size_t root_count, root_room;
	bool notes_changes;
	uint32_t *changed; /* processes whose mappings have changed, by their numbers */
	size_t changed_count, changed_room;
	pid_t crowded; /* a process of which mappings were dropped, as its budget is used up; or 0
			*/
	struct index by_pid; /* the oldest process of each pid */
	struct index by_tid;
	struct index by_path; /* images */
};

void process_table_free(struct process_table *table);

/* Takes in a process of which nothing is known yet. */
int process_add(struct process_table *table, pid_t pid, uint64_t time_ns);

/* Applies a record of the kernel's. Records of strangers are passed over. */
int process_record(struct process_table *table, const struct sideband_record *record);

/* Adds it to those that have changed, if notes_changes. Returns 0 or -ENOMEM. */
int process_note_change(struct process_table *table, struct process *process);

/* The process that has, or had last, this pid; or NULL. */
struct process *process_find(const struct process_table *table, pid_t pid);

/* The one that had it at a time; the first to have it when none had it yet. */
struct process *process_at(const struct process_table *table, pid_t pid, uint64_t time_ns);

/* The address space that is in use now. */
struct address_space *process_space(struct process *process);

/* Adds a mapping (a SIDEBAND_MMAP record) to it, unless it is known or its budget is used up. */
int process_map(struct process_table *table, struct process *process,
		const struct sideband_record *record);

/* Whether the budget is used up for the mappings that it has now. */
bool process_is_crowded(struct process *process);

int process_name_thread(struct process_table *table, pid_t tid, const char *comm);

/* The address space that was in use at a time. */
struct address_space *process_space_at(struct process *process, uint64_t time_ns);

/* What held a pc at a time, and from when until when it did. */
struct mapping_answer {
	const struct capture_mapping *mapping; /* NULL: none */
	uint64_t since_ns, until_ns;	       /* [since_ns, until_ns) */
};

/* The mapping that held pc at a time: the youngest then; else the first to come. */
struct mapping_answer space_mapping_at(const struct process_table *table,
				       const struct address_space *space, uint64_t pc,
				       uint64_t time_ns);

/* The name of a thread: as recorded, as it is now, or its process's; "" when nothing is known. */
const char *thread_comm(struct process_table *table, pid_t pid, pid_t tid);

#endif
