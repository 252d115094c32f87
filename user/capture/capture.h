/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CAPTURE_H
#define PROFIL_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/unwind/unwind_rows.h"
#include "util/error.h"

/*
 * Recording: has the sample program on the clock of each CPU, tells it whose ticks count, follows
 * the targets' children and mappings, and accounts for every tick. It never stops, traces or
 * signals a target. The calls of one capture come from one thread.
 */

enum capture_event {
	CAPTURE_AUTO, /* cycles when there is a PMU, else cpu-clock */
	CAPTURE_CPU_CLOCK,
	CAPTURE_CYCLES,
	CAPTURE_TICK, /* the scheduler's own, at its own rate */
};

enum capture_stacks {
	CAPTURE_NO_STACKS,
	CAPTURE_STACKS_AUTO, /* CFI where the kernel takes that, else FP */
	CAPTURE_STACKS_CFI,  /* by call frame information, which read_rows reads */
	CAPTURE_STACKS_FP,   /* by frame pointers */
};

enum capture_target {
	CAPTURE_PROCESSES, /* pids: all threads of each */
	CAPTURE_THREAD,	   /* pids[0] is one thread, alone */
	CAPTURE_COMMAND,   /* a program to start */
	CAPTURE_SYSTEM,	   /* every CPU that is online */
	CAPTURE_CGROUP,	   /* a control group and those below it, on every CPU that is online */
};

struct capture_options {
	enum capture_target target;
	const pid_t *pids;
	size_t pid_count;
	char *const *command; /* argv, NULL at its end */
	const char *cgroup;   /* see capture/cgroup.h */
	enum capture_event event;
	unsigned int frequency;	    /* Hz; of the tick 0 will do, or the kernel's */
	bool inherit;		    /* follow children; threads to come are always followed */
	bool user, kernel;	    /* which sides' pcs; neither: all ticks, at the user pc */
	enum capture_stacks stacks; /* ticks in the kernel are then at the kernel's pc */
	unwind_reader *read_rows;
	/*
	 * Not 0: profil(2)'s histogram with this scale instead of exact pcs, of one process at the
	 * user pc. It ends at exec. With bufsiz 0 it covers the program's own text.
	 */
	uint32_t scale;
	uint64_t offset, bufsiz;
};

struct capture;

/*
 * Writes the list of CPUs that have no tick while a single task runs there ("2-7"): CAPTURE_TICK
 * then misses it. "" where there are none.
 */
void capture_tickless_cpus(char *list, size_t size);

/*
 * Starts recording: when it returns 0, ticks are being counted, and a command runs.
 * *c is the caller's, to capture_free().
 */
int capture_start(const struct capture_options *options, struct capture **c, struct error *e);

/* A file descriptor that becomes readable when there is something for capture_handle(). */
int capture_fd(const struct capture *c);

/* Takes in what has come: mappings, processes, samples through the ring. Call it when
 * capture_fd() is readable and ten times a second besides. */
int capture_handle(struct capture *c, struct error *e);

/* Whether all targets have ended. */
bool capture_ended(const struct capture *c);

/*
 * While it goes on: has the calls below tell what has been counted so far. Counts are since the
 * beginning; they only go up. What was unknown may be known the next time: mappings, names. It does
 * what capture_handle() does, too; images and mappings are valid until the next call of either.
 */
int capture_read(struct capture *c, struct error *e);

/* Stops counting and completes the account. Mappings are read once more. */
int capture_stop(struct capture *c, struct error *e);

void capture_free(struct capture *c);

/* How many ticks came so far. */
uint64_t capture_ticks(const struct capture *c);

/* How many processes and threads it keeps in mind; those that have ended, too. */
size_t capture_tasks(const struct capture *c);

/* --- What was captured: after capture_stop(), some after capture_read(). --- */

struct capture_totals {
	uint64_t ticks;	       /* every run of the program; told apart from what became of it */
	uint64_t counted;      /* the sum of all samples */
	uint64_t kernel;       /* of them: in the kernel */
	uint64_t out_of_range; /* at a pc that has no cell */
	uint64_t excluded;     /* on the side that was not asked for */
	uint64_t ring_full;    /* lost */
	uint64_t no_cell;      /* lost */
	uint64_t ring;	       /* of the counted: came through the ring buffer */
	uint64_t mapping_records_lost; /* of the kernel's records of mappings */
	uint64_t dropped;	       /* child processes that are not recorded: too many at once */
	pid_t crowded;		  /* a process that has more mappings of code than are kept, or 0 */
	uint64_t bpf_ns_per_tick; /* 0: not measured */
	uint64_t interrupt_ns;	  /* one tick's interrupt without the program; 0: unknown */
	uint64_t interrupts;	  /* of the clock, on all CPUs; 0: unknown, or they come anyway */
	uint64_t machine_ns;	  /* CPUs that had the clock, times how long */
	uint64_t cpu_ns;	  /* CPU time of the targets, by the kernel's account */
	uint64_t start_time_ns;	  /* since the epoch */
	uint64_t duration_ns;
	uint64_t first_tick_ns; /* from capture_start()'s beginning; 0: there was none */
	/* Of the counted, when they have call stacks: */
	uint64_t stack_limit;	   /* frames of user space and of the kernel, each; 0: no stacks */
	uint64_t stacks_truncated; /* cut off there, at the root's end */
	uint64_t stacks_user;	   /* with a stack in user space */
	uint64_t stacks_complete;  /* of these: that reach the program's start; 0 with FP */
};

void capture_totals(const struct capture *c, struct capture_totals *totals);

/* Why an image's call frame information is not used, where it has some; NULL: nothing is wrong. */
const char *capture_why_no_rows(const struct capture *c, uint32_t image);

/* The tables by which stacks are walked; all 0 without CAPTURE_STACKS_CFI. */
struct capture_tables {
	size_t images, rows; /* images that have rows */
	size_t bytes;	     /* of the kernel's memory that rows, their rules and directory take */
};

void capture_tables(const struct capture *c, struct capture_tables *tables);

/* How stacks are walked: FP or CFI; NO_STACKS: there are none. */
enum capture_stacks capture_stacks(const struct capture *c);

/* Why stacks in user space do not reach the program's start. */
struct capture_stack_end {
	enum unwind_end end; /* none of UNWIND_COMPLETE, UNWIND_TRUNCATED */
	uint32_t image;	     /* of the frame that they end with, or UINT32_MAX: not known */
	uint64_t count;
};

/* Each cause in each image, once, the most frequent first; valid until the next capture_read() or
 * capture_stop(). */
const struct capture_stack_end *capture_stack_ends(const struct capture *c, size_t *count);

/* The name of the event in use: "cpu-clock", "cycles" or "tick". */
const char *capture_event_name(const struct capture *c);
uint64_t capture_period_ns(const struct capture *c);
unsigned int capture_frequency(const struct capture *c); /* that was asked; 0: none */

/* 32 when the first target runs in 32-bit mode, else 64. */
unsigned int capture_bits(const struct capture *c);

/* Status of the command as wait(2) gives it, or -1: none, or it has not ended. */
int capture_command_status(const struct capture *c);

/* The process of the command, or 0: there is none, or it has ended. */
pid_t capture_command_pid(const struct capture *c);

#define CAPTURE_BUILD_ID_MAX 20 /* as the kernel's records have it */

/* A file that was mapped for execution. */
struct capture_image {
	char *path;
	uint8_t build_id[CAPTURE_BUILD_ID_MAX];
	unsigned int build_id_size; /* 0: not known */
	int fd;			    /* open for reading, or -1; owned by the capture */
	int root;  /* the root folder of who mapped it, if not ours, or -1; owned by the capture */
	char *why; /* why nothing in it can have a name; NULL: it may */
	uint64_t device, inode; /* of fd; inode 0: not known */
};

struct capture_mapping {
	uint64_t start, limit, offset;
	uint32_t image;
	uint64_t time_ns; /* CLOCK_MONOTONIC since when; 0: before recording began */
	bool executable;  /* the program itself, not a library */
};

const struct capture_image *capture_images(const struct capture *c, size_t *count);

struct capture_frame {
	uint64_t pc; /* of a caller: the address to which the call returns */
	const struct capture_mapping *mapping; /* NULL: none is known, or it is the kernel's */
};

/* One pc, or stack, of one thread in one mode, with its count. */
struct capture_sample {
	const struct capture_frame *frames; /* the leaf first; valid during the visit */
	uint32_t depth;			    /* 1 at least */
	uint32_t user_depth; /* the last of them, in user space. Each side: CAPTURE_DEPTH_MAX at
				most */
	uint64_t count;	     /* since recording began */
	size_t number;	     /* the same in each visit, and dense */
	pid_t pid, tid;
	bool kernel;
	enum unwind_end end; /* of the frames in user space */
	const char *comm;    /* the thread's name, "" when not known */
};

#define CAPTURE_DEPTH_MAX 127 /* frames of a stack, of user space and kernel each */

/* Calls visit for each; stops when it returns non-zero, and returns that. */
int capture_each_sample(struct capture *c,
			int (*visit)(const struct capture_sample *sample, void *context),
			void *context);

/* The same for the mappings of the first target, its own executable's first. */
int capture_each_mapping(const struct capture *c,
			 int (*visit)(const struct capture_mapping *mapping, void *context),
			 void *context);

#endif
