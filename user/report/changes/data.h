/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CHANGES_DATA_H
#define PROFIL_REPORT_CHANGES_DATA_H

#include "report/changes/changes.h"
#include "util/index.h"

/* What is kept of windows: private to user/report/changes/. */

/* For how long threads ran, and waited for a CPU: in windows that have the account of that. */
struct changes_waits {
	uint64_t ran_ns, waited_ns;
	/* In windows in which delay was recorded: CPU time by ticks, too. */
	int64_t delay_ns, delay_cpu_ns;
};

/* Windows of less are added up to blocks of this length. Bound: pace. */
#define BLOCK_S 300

struct changes_block {
	uint32_t host; /* its number */
	uint64_t start_ns, limit_ns;
	uint64_t recorded_ns;
	struct changes_waits waits; /* of all that ran on the host */
};

/* What was counted in a block. */
struct changes_cell {
	uint32_t block;
	int64_t self, total; /* in ns of CPU time; of a service, both are all of it */
	uint64_t ticks;	     /* of a service */
};

struct changes_cells {
	struct changes_cell *cells; /* in the order of blocks */
	size_t count, room;
};

/* A build of an image, and when it had ticks. */
struct changes_build {
	char *image;
	char id[BUILD_ID_TEXT_SIZE];
	uint64_t first_ns, last_ns;
};

/* A process, and when it had ticks: the start of its first window, and of its last. */
struct changes_process {
	uint32_t pid;
	uint64_t first_ns, last_start_ns, last_ns;
};

/* What threads of a service did in a block. */
struct changes_account {
	uint32_t block;
	uint64_t recorded_ns; /* of the windows with wall times */
	uint64_t blocked_ns;
	struct changes_waits waits;
};

struct changes_service {
	uint32_t host;
	char *name;
	bool container;
	struct changes_cells cells;
	struct changes_account *accounts; /* in the order of blocks */
	size_t account_count, account_room;
	uint64_t accounted_ns; /* the end of the last window that has an account */
	struct changes_build *builds;
	size_t build_count, build_room;
	struct index build_index; /* by image and ID */
	struct changes_process *processes;
	size_t process_count, process_room;
	struct index process_index; /* by pid */
};

/* What a function took that another one had called, in ns of CPU time. */
struct changes_caller {
	uint32_t number; /* of the other function */
	int64_t total;
};

struct changes_function {
	uint32_t service;
	char *function; /* NULL: it has no name */
	char *image;
	struct changes_cells cells;
	struct changes_caller *callers;
	size_t caller_count, caller_room;
};

struct changes_data {
	char **hosts;
	size_t host_count, host_room;
	struct changes_block *blocks;
	size_t block_count, block_room;
	struct changes_service *services;
	size_t service_count, service_room;
	struct index service_index;
	struct changes_function *functions;
	size_t function_count, function_room;
	size_t function_limit; /* when there are more, rare ones are forgotten */
	struct index function_index;
};

/* Appends a change of a service. Returns it, or NULL: no memory. */
struct change *changes_append(struct changes *c, size_t *room, uint32_t service);

/* deploys.c: appends the deploys of a service, in the order of time. Returns 0 or -ENOMEM. */
int changes_find_deploys(struct changes *c, size_t *room, uint32_t service);

/* judge.c: compares the time before and after each change. Returns 0 or -ENOMEM. */
int changes_judge(struct changes *c, const struct changes_options *o);

#endif
