/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CHANGES_DATA_H
#define PROFIL_REPORT_CHANGES_DATA_H

#include "report/changes/changes.h"
#include "util/index.h"

/* What is kept of windows: private to user/report/changes/. */

/* For how long threads were on a CPU, and runnable: in windows that have the account of that. */
struct changes_waits {
	uint64_t on_cpu_ns, waited_ns;
	/* In windows in which delay was recorded: CPU time by ticks, too. */
	int64_t delay_ns, delay_cpu_ns;
};

/* Windows of less are added up to blocks of this length. Bound: pace. */
#define BLOCK_S 300

struct changes_block {
	uint32_t host; /* its number */
	uint64_t start_ns, limit_ns;
	uint64_t recorded_ns;
	uint64_t ticks, lost; /* of windows with an account of their ticks */
	uint64_t waits_ns;    /* as recorded_ns: of windows with waits by their reason */
	struct changes_waits
		waits; /* of the system: of its services, the kernel and what has no unit */
};

/* What a function took in a block, in ns of CPU time. */
struct changes_cell {
	uint32_t block;
	float self, total;
};

struct changes_cells {
	struct changes_cell *cells; /* in the order of blocks */
	size_t count, room;
};

/* What a service took in a block. */
struct changes_service_cell {
	uint32_t block;
	int64_t cpu_ns;
	uint64_t ticks;
	uint64_t cut;	   /* of these: whose stack does not reach the program's start */
	uint64_t nameless; /* whose function has a name in brackets, which stands for others */
};

/* A build of an image, and when it had a real part of the service's ticks. */
struct changes_build {
	char *image;
	char id[BUILD_ID_TEXT_SIZE];
	uint64_t first_ns, last_ns;
	uint64_t ticks, all; /* in these windows: with it in their stack, and of the service */
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

/*
 * Whose services are: the system's, which root alone makes; a user's; or a container's. What one
 * has takes nothing from another: memory, the number of services and deploys, and the correction
 * for being many.
 */
struct changes_owner {
	uint32_t host;
	char *name;   /* NULL: the system */
	size_t bytes; /* that its functions take here */
	size_t service_count, change_count;
	size_t samples; /* scratch: of one window */
	uint64_t limit; /* scratch: bytes that it may keep */
	int64_t few;	/* scratch: functions with fewer ticks are left out; 0: none */
	bool omitted;	/* it had more than is compared */
};

struct changes_service {
	uint32_t host;
	uint32_t owner;
	char *name;
	char *user; /* whose processes these are, in a unit of the system's; NULL: root's, or all */
	bool container;
	struct changes_service_cell *cells; /* in the order of blocks */
	size_t cell_count, cell_room;
	struct changes_account *accounts; /* in the order of blocks */
	size_t account_count, account_room;
	uint64_t accounted_ns; /* the end of the last window that has an account */
	struct changes_build *builds;
	size_t build_count, build_room;
	struct index build_index; /* by image and ID */
	struct changes_process *processes;
	size_t process_count, process_room;
	struct index process_index; /* by pid */
	/* Its functions in changes_data.order, once these are there: those of waits last. */
	size_t first, count, wait_count;
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
	char *reason; /* of waits in it: its cells have the time of these; NULL: CPU time */
	struct changes_cells cells;
	int64_t total; /* of all cells */
	struct changes_caller *callers;
	size_t caller_count, caller_room;
};

struct changes_data {
	struct changes_reading *reading;
	char **hosts;
	size_t host_count, host_room;
	struct changes_block *blocks;
	size_t block_count, block_room;
	struct changes_owner *owners;
	size_t owner_count, owner_room;
	struct index owner_index;
	struct changes_service *services;
	size_t service_count, service_room;
	struct index service_index;
	struct changes_function *functions;
	size_t function_count, function_room;
	struct index function_index;
	size_t bytes[2];	/* that functions of this host take: of the system, of all others */
	size_t others_services; /* of this host */
	uint32_t *order; /* numbers of functions, by service, kind and image; NULL: not yet */
};

/*
 * A process that was there so long is one of the service's own, not one that it runs for a job.
 * Bound: pace.
 */
#define LASTING_NS (120 * NS_PER_S)

static inline bool changes_lasts(const struct changes_process *p)
{
	return p->last_start_ns - p->first_ns >= LASTING_NS;
}

static inline bool changes_is_system(const struct changes_data *d, const struct changes_service *s)
{
	return !d->owners[s->owner].name;
}

/* judge.c: compares the time before and after each change from number first on. The same. */
int changes_judge(struct changes *c, const struct changes_options *o, size_t first);

#endif
