/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PERF_TASKS_H
#define PROFIL_FORMAT_PERF_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "util/index.h"

/* Processes, threads and mappings at the time of the sample that is being read. */

/* A part of a mapping: what later mappings have left of it. */
struct perf_map {
	uint64_t start, limit;
	uint32_t mapping;  /* of the profile */
	uint32_t function; /* all of it is this function; PROFILE_NONE: it has many */
};

/* An address space. A child shares its parent's until one of them changes. */
struct perf_space {
	uint32_t users;
	uint64_t stamp;	       /* another one after each change; equal ones have equal mappings */
	struct perf_map *maps; /* sorted, without overlap */
	size_t count, room;
};

struct perf_process {
	uint32_t pid, generation;
	bool is_old; /* another process has the PID now */
	const char *comm;
	struct perf_space *space; /* NULL: empty */
};

struct perf_thread {
	uint32_t tid;
	uint32_t process;
	bool is_old;
	const char *comm;
	/* The labels of the last sample in user and in kernel mode, and what they were made of */
	struct perf_labels {
		const char *comm, *process_comm; /* NULL: there was no sample */
		uint32_t cpu;
		uint64_t cgroup;
		uint32_t labels;
	} labels[2];
};

struct perf_tasks {
	struct profile *p;
	struct perf_process *processes;
	size_t process_count, process_room;
	struct index process_index;
	struct perf_thread *threads;
	size_t thread_count, thread_room;
	struct index thread_index;
	struct perf_space kernel;
	uint64_t stamp;
	uint64_t map_records; /* so far */
	uint64_t moved;	      /* mappings that were copied or moved so far */
	uint32_t last;	      /* number of the thread found last */
};

/*
 * The functions return 0, -ENOMEM, or -E2BIG: the file has more changes of mappings than a
 * recording would have. Numbers are those of the arrays, which may move.
 */

/* Zero-initialised but for p, tasks are empty. */
void perf_tasks_free(struct perf_tasks *t);

/* Sets *thread to the thread with these numbers, which is a new one if there is none. */
int perf_find_thread(struct perf_tasks *t, uint32_t pid, uint32_t tid, uint32_t *thread);

/* was_running: the record was made of a process that ran before the recording. */
int perf_fork(struct perf_tasks *t, uint32_t pid, uint32_t tid, uint32_t parent_pid,
	      uint32_t parent_tid, bool was_running);
int perf_comm(struct perf_tasks *t, uint32_t pid, uint32_t tid, const char *comm, bool is_exec);

/* Puts a mapping into a process, or into the kernel for a pid of UINT32_MAX. */
int perf_map(struct perf_tasks *t, uint32_t pid, const struct perf_map *map);

/* The mapping of an address, or NULL. space: NULL is an empty one. */
const struct perf_map *perf_find_map(const struct perf_space *space, uint64_t address);

#endif
