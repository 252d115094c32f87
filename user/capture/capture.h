/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CAPTURE_H
#define PROFIL_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "bpf/wait.h"
#include "capture/context.h"
#include "capture/refusal.h"
#include "capture/unwind/unwind_rows.h"
#include "util/account.h"
#include "util/error.h"

/*
 * Recording: runs the sample program at each tick of every CPU, sets whose ticks are counted,
 * follows the targets' children and mappings, and accounts for every tick. It never stops, traces
 * or signals a target; record/ask_runtimes.h does on request. One thread makes all calls for one
 * capture.
 */

/*
 * Events that are no ticks of a clock: each is a sample. X(NUMBER, name, type, config): the name is
 * what -e takes, type and config are those of perf_event_open(2).
 */
#define CAPTURE_COUNTED_LIST(X)                                                             \
	X(PAGE_FAULTS, "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS)        \
	X(MINOR_FAULTS, "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN)  \
	X(MAJOR_FAULTS, "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ)  \
	X(SWITCHES, "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES) \
	X(MIGRATIONS, "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS)

enum capture_event {
	CAPTURE_AUTO, /* cycles when there is a PMU, else cpu-clock */
	CAPTURE_CPU_CLOCK,
	CAPTURE_CYCLES,
	CAPTURE_TICK, /* the scheduler's own tick, at its own rate */
#define CAPTURE_ENUM(number, name, type, config) CAPTURE_##number,
	CAPTURE_COUNTED_LIST(CAPTURE_ENUM)
#undef CAPTURE_ENUM
	CAPTURE_EVENTS,
	CAPTURE_POINT = CAPTURE_EVENTS, /* options.point, with stacks */
};

/* False: it is of CAPTURE_COUNTED_LIST. */
static inline bool capture_is_clock(enum capture_event event)
{
	return event <= CAPTURE_TICK;
}

/* Whether options.frequency sets the rate of an event. */
static inline bool capture_has_rate(enum capture_event event)
{
	return event < CAPTURE_TICK;
}

extern const char *const capture_event_names[CAPTURE_EVENTS]; /* as -e has them */

enum capture_stacks {
	CAPTURE_NO_STACKS,
	CAPTURE_STACKS_AUTO, /* CFI where the kernel accepts that program, else FP */
	CAPTURE_STACKS_CFI,  /* by call frame information, which options.read_rows reads */
	CAPTURE_STACKS_FP,   /* by frame pointers */
	/*
	 * AUTO if one of the processes that are recorded has an interpreter now whose scripts'
	 * functions can be named, which takes stacks; else none. Of a command, and of the
	 * whole machine: none.
	 */
	CAPTURE_STACKS_SCRIPTS,
};

enum capture_target {
	CAPTURE_PROCESSES, /* all threads of each of pids */
	CAPTURE_THREAD,	   /* only the thread pids[0] */
	CAPTURE_COMMAND,   /* a program to start: command */
	CAPTURE_SYSTEM,	   /* everything on all online CPUs */
	CAPTURE_CGROUP,	   /* the threads in control groups and in those below them */
	CAPTURE_USER,	   /* the threads whose effective user is uid */
};

/* Whose waits for a CPU are counted. */
enum capture_victim {
	CAPTURE_ALL_VICTIMS,
	CAPTURE_VICTIM_PID,    /* a process's */
	CAPTURE_VICTIM_COMM,   /* those of threads of one name */
	CAPTURE_VICTIM_CGROUP, /* those in a control group and in those below it */
};

/* Bound: caller: MiB of --unwind-memory; then: the option is refused. */
#define CAPTURE_UNWIND_MIB_MAX 4096

struct language_code; /* bpf/script/language.h */

/*
 * Bound: files: places at which a function returns; then: its calls are not recorded, which is an
 * error.
 */
#define CAPTURE_RETURNS_MAX 128

/* A function of a program or library. */
struct capture_function {
	int file;			       /* open for reading */
	uint64_t offset;		       /* of the function in it */
	uint64_t returns[CAPTURE_RETURNS_MAX]; /* of the instructions that end it */
	size_t return_count;
};

/* What threads come to. */
struct capture_point {
	const char *name; /* of a tracepoint, "sched:sched_switch"; of a function as it is said */
	int file;	  /* that has the function, open until capture_start() ends; -1: none */
	uint64_t offset;  /* of the function in it */
};

struct capture_options {
	enum capture_target target;
	const pid_t *pids;
	size_t pid_count;
	char *const *command;	    /* argv, ending with NULL */
	bool command_to_stderr;	    /* the command's standard output is standard error */
	const char *const *cgroups; /* see capture/cgroup.h; valid until capture_free() */
	size_t cgroup_count;
	uid_t uid;
	enum capture_event event;
	const struct capture_point *point; /* valid until capture_free(), but for its file */
	unsigned int frequency; /* Hz; with CAPTURE_TICK, 0 or the kernel's; 0 of no clock */
	enum capture_victim victim;
	pid_t victim_pid;
	const char
		*victim_name; /* of the threads, or as cgroup; valid until capture_start() ends */
	bool children;	      /* of pids: also their descendants that run already */
	bool inherit;	      /* follow child processes; new threads are always followed */
	bool user, kernel;    /* which ticks to count; neither: all, at the user pc */
	enum capture_stacks stacks; /* ticks in the kernel then have the kernel's pc */
	unwind_reader *read_rows;
	struct parser *parser;		/* for it */
	bool (*is_interpreter)(int fd); /* the file of an image: for CAPTURE_STACKS_SCRIPTS */
	void (*trim_code)(struct language_code *code); /* see struct scripts; NULL: nothing */
	unsigned int unwind_mib; /* room for what is mapped later, in MiB of rows; 0: the default */
	bool native;		 /* stacks of scripts keep the frames of their interpreter */
	bool windows;		 /* capture_cut() will be called; no cells */
	size_t window_bytes;	 /* of memory: capture_is_full(); 0: a part of what is available */
	bool wall;		 /* account for the wall time of each thread: capture_wall() */
	bool waits;		 /* also of threads, by stack and reason; with stacks */
	bool every_wait;	 /* waits have their times, also short ones */
	/* Its calls are recorded, with waits; valid until capture_start() ends. NULL: none. */
	const struct capture_function *calls;
	bool origins; /* samples have the control group and the title of their process */
	bool cpus;    /* and the CPU */
	/*
	 * On behalf of the calling user, who has no right to more: only while the processes are
	 * this user's, as bpf/owner.h has it. No frame of the kernel, nor the name of another
	 * process, is in what record/from_capture.h makes of it.
	 */
	bool owned;
	bool from_exec; /* each of pids counts once it has called exec */
	bool always_on; /* little memory and CPU time, at some 100 Hz; implies both but the title */
	/* Labels whose text is a variable's value; with CFI; NULL: none. */
	const struct context_wishes *wishes;
	unsigned int waits_percent; /* of the CPUs that following waits may take; 0: any */
	/*
	 * Not 0: count in cells of profil(2) with this scale, not at exact pcs; for one process, at
	 * the user pc, until it calls exec. With bufsiz 0 they cover the program's own text.
	 */
	uint32_t scale;
	uint64_t offset, bufsiz;
};

struct capture;

/*
 * Starts recording. On success ticks are being counted, the command runs, and the caller owns *c:
 * see capture_free(). Returns 0 or a negative errno with *e set, as do the calls below.
 */
int capture_start(const struct capture_options *options, struct capture **c, struct error *e);

/* Returns a descriptor that becomes readable when capture_handle() has work; owned by c. */
int capture_fd(const struct capture *c);

/*
 * Reads new records of mappings and processes, and samples from the ring buffer. Call it when
 * capture_fd() is readable, and ten times a second in any case.
 */
int capture_handle(struct capture *c, struct error *e);

/* True if all targets have ended. */
bool capture_ended(const struct capture *c);

/*
 * Ends a window and begins the next; requires options.windows. The result below is that of the
 * ended window until the next cut or capture_stop(), which ends the last one. Each tick is in
 * exactly one window. Includes capture_handle(). Forgets ended processes and unused images, so that
 * memory does not grow with the number of processes that ever ran: image numbers and descriptors
 * are valid until the next cut.
 */
int capture_cut(struct capture *c, struct error *e);

/*
 * Whether the window has as many processes, names of threads and different stacks as there is to be
 * memory for: users may start thousands of processes a second. A cut is due.
 */
bool capture_is_full(const struct capture *c);

/*
 * Whether the time of day was set since the window began, or the machine was suspended: the times
 * of ticks of one window all follow from that of its begin.
 */
bool capture_clock_moved(const struct capture *c);

/* Stops counting, and ends the last window, or the only one. */
int capture_stop(struct capture *c, struct error *e);

/*
 * Looks again for files with the names of code made at run time, which may have been written since
 * capture_stop(). Before it reads the result.
 */
int capture_find_names(struct capture *c, struct error *e);

/*
 * Calls visit for each running process that has code made at run time and has announced no
 * jit-PID.dump with its names. generation: see struct capture_sample.
 */
void capture_each_nameless(const struct capture *c,
			   void (*visit)(pid_t pid, uint32_t generation, void *context),
			   void *context);

void capture_free(struct capture *c);

/* How many ticks there were so far in this window. */
uint64_t capture_ticks(const struct capture *c);

/* --- The result: of the last window, after capture_cut() or capture_stop() --- */

struct capture_totals {
	ACCOUNT_MEMBERS;
	uint64_t ring_full; /* ticks lost: no room in the ring buffer */
	/* Events lost, also of others: within another BPF program, or in SAMPLE_PLACES of them. */
	uint64_t nested;
	uint64_t ring;		 /* of the counted: through the ring buffer */
	uint64_t waits_refused;	 /* of waits_no_room: of the one user who has the most */
	uid_t waits_refused_uid; /* that user */
	uint64_t start_time_ns;	 /* since the epoch */
	uint64_t start_ns;	 /* the same by CLOCK_MONOTONIC */
	uint64_t duration_ns;
	uint64_t first_tick_ns; /* from the call of capture_start(); 0: there was none */
};

void capture_totals(const struct capture *c, struct capture_totals *totals);

/* State of an image's call frame information. */
enum capture_rows {
	CAPTURE_ROWS_NONE,    /* it has none */
	CAPTURE_ROWS_READ,    /* it is in the tables */
	CAPTURE_ROWS_UNREAD,  /* its file could not be opened or read */
	CAPTURE_ROWS_NO_ROOM, /* the tables have no room for it */
};

/*
 * Returns the state of an image's call frame information. *why: why it could not be used, valid
 * until the next capture_handle(), capture_cut() or capture_stop(); NULL if it could.
 */
enum capture_rows capture_rows(const struct capture *c, uint32_t image, const char **why);

/* The size of the tables for walking stacks; all 0 without CAPTURE_STACKS_CFI. */
struct capture_tables {
	size_t images, rows; /* images with rows, and their rows */
	size_t bytes;	     /* kernel memory that these take */
	size_t size_bytes;   /* that the tables take now */
	size_t room_bytes;   /* that rows may take at most */
	size_t no_room;	     /* mapped images whose rows have no room */
	size_t too_large;    /* those of them that never have */
	size_t deferred;     /* mapped images that are not read yet, for lack of time */
	uint64_t evicted;    /* times that rows made room for others, since the start */
	/* What is kept of the processes and files of users other than root, and may be at most. */
	size_t users_bytes, users_room_bytes;
};

void capture_tables(const struct capture *c, struct capture_tables *tables);

/*
 * The options as they came to be, valid until capture_free(). stacks: how they are walked, _FP or
 * _CFI, or CAPTURE_NO_STACKS; waits: whether they are recorded, see capture_no_waits().
 */
const struct capture_options *capture_options(const struct capture *c);

/*
 * Opens a file by its path as file_open_regular() does, for a user whose file system may never
 * answer; 0: root's. See capture/opener.h. -ETIMEDOUT: it did not.
 */
int capture_open(struct capture *c, uid_t user, int root, const char *path, struct stat *status);

/* What was refused in the window, to which users; without times. */
const struct refusals *capture_refusals(const struct capture *c);

/* Why some user stacks do not reach the program's start. */
struct capture_stack_end {
	enum unwind_end end; /* not UNWIND_COMPLETE, not UNWIND_TRUNCATED */
	uint32_t image;	     /* of their last frame; UINT32_MAX: unknown */
	uint64_t count;	     /* of samples */
};

/*
 * Returns *count of them, one for each cause in each image, the most frequent first. Valid until
 * the next capture_cut() or capture_stop().
 */
const struct capture_stack_end *capture_stack_ends(const struct capture *c, size_t *count);

/* The event in use: one of capture_event_names, never "auto". */
const char *capture_event_name(const struct capture *c);
uint64_t capture_tick_ns(const struct capture *c); /* 0: it is no clock */

/* True if `runnable` of ticks is known: the kernel lets ticks read it. */
bool capture_knows_waiting(const struct capture *c);

/* 32 when the first target runs in 32-bit mode, else 64. */
unsigned int capture_bits(const struct capture *c);

/* The command's status as from wait(2); -1: it has not ended, or there is none. */
int capture_command_status(const struct capture *c);

/* The command's PID; 0: it has ended, or there is none. */
pid_t capture_command_pid(const struct capture *c);

/* Bound: format. */
#define CAPTURE_BUILD_ID_MAX 20

/* A file that was mapped for execution, or memory without a file. */
struct capture_image {
	char *path; /* NULL: this number belongs to no image now */
	uint8_t build_id[CAPTURE_BUILD_ID_MAX];
	unsigned int build_id_size; /* 0: unknown */
	int fd;			    /* open for reading, or -1; owned by the capture */
	int root;  /* root directory of the process, if not ours, else -1; owned by the capture */
	char *why; /* why its file is not open, or its code has no names; NULL: no known reason */
	uint64_t device, inode;	  /* of the file; inode 0: unknown */
	off_t size;		  /* of the open file when it was opened */
	struct timespec modified; /* when it was last modified then */
	struct timespec changed;  /* when it was last changed then, which no user can set back */
	uid_t provider;	   /* the user who chose what the file holds; 0: root or the caller */
	uint64_t serial;   /* of no other image of the recording, whatever its number */
	unsigned int bits; /* 32 or 64 of an ELF file whose file could be opened, else 0 */
	/* Private to the capture: */
	bool copied;	  /* fd is a copy, in the share of */
	uid_t copied_for; /* this user */
	uint64_t group;	  /* hash of the control group of the first process; 0: unknown */
	uid_t user; /* of all processes that mapped it while it was unread; 0: root, or several */
	/*
	 * Bound: users: an image whose file could not be opened; then: its code has no names and
	 * stacks end there; again: it is tried again when another process maps it, and at intervals
	 * that grow with what a failure costs; share: none: 1 / AGAIN_PART of the time for all;
	 * seen: as images without symbols, with the reason.
	 */
	bool is_unread;	      /* its file could not be opened so far */
	uint64_t next_try_ns; /* it is not tried again before */
	bool is_reopened;     /* it was opened later: for capture/unwind/ */
	bool is_left; /* open through a root directory that no process has any more, see forget.c */
	uint64_t until_ns; /* since the epoch, not 0: the program whose code it is ended then */
};

struct capture_mapping {
	uint64_t start, limit, offset;
	uint32_t image;
	uint64_t time_ns; /* CLOCK_MONOTONIC when it was mapped; 0: before the recording */
	/* Earlier than time_ns: the record was lost, and it was mapped between these two times. */
	uint64_t maybe_ns;
	bool executable; /* of the program itself, not of a library */
};

const struct capture_image *capture_images(const struct capture *c, size_t *count);

struct timed_wait;

struct capture_frame {
	uint64_t pc;			       /* in a caller: the return address */
	const struct capture_mapping *mapping; /* NULL: unknown, or in the kernel */
	/* Of a script: pc is a word of bpf/script/language.h, and this its function; NULL: unknown
	 */
	const struct language_code *code;
};

#define PROCESS_TITLE_SIZE 128 /* longer ones are cut */

enum capture_kind {
	CAPTURE_TICKS,
	CAPTURE_WAITS,
	CAPTURE_WAKERS,
	CAPTURE_CALLS, /* its `waits`: how many, and when */
};

struct capture_ticks {
	uint64_t count;	       /* in the window, for which all of the sample is true */
	const uint64_t *times; /* CLOCK_MONOTONIC, of each; NULL: they were lost */
	uint64_t runnable;     /* how many threads waited for the CPU, summed over the ticks */
	uint32_t cpu;	       /* with options.origins and cpus; UINT32_MAX: unknown */
};

struct capture_waits {
	enum wait_reason reason;
	enum wait_role role;
	uint32_t entry, whom;		/* for capture_peer() */
	uint32_t waker;			/* the number of who ended them; 0: unknown */
	uint64_t count, length_ns;	/* how many, and how long all of them took */
	const struct timed_wait *timed; /* by CLOCK_MONOTONIC; may be a part of them, or NULL */
	size_t timed_count;
};

struct capture_waker {
	enum waker_kind kind;
	uint32_t number;   /* as capture_waits.waker */
	uint64_t waits_ns; /* how long the waits took that it ended */
};

/* A pc, or a stack, of one thread in one mode, and what was met there. */
struct capture_sample {
	const struct capture_frame *frames; /* the leaf first; valid during the visit */
	uint32_t depth;			    /* 1 at least; 0: of a waker without a stack */
	uint32_t user_depth;		    /* how many of them, the last ones, are in user space */
	enum capture_kind kind;
	union {
		struct capture_ticks ticks;
		struct capture_waits waits;
		struct capture_waker waker;
	};
	bool in_doubt; /* it may be another by then: records or times were lost */
	pid_t pid, tid;
	uint32_t generation; /* how many processes had this pid before, as far as is known */
	bool kernel;
	enum unwind_end end;	  /* why the user frames end */
	uint16_t context;	  /* for capture_context() */
	const char *comm;	  /* the thread's name; "": unknown */
	const char *process_comm; /* its process's name, the leader's; "": unknown */
	uint32_t uid;		  /* the process's effective user; UINT32_MAX: unknown */
	/* With options.origins: */
	const char *cgroup; /* of the process: a path as in /proc/PID/cgroup; NULL: unknown */
	const char *title;  /* that it gave itself: "nginx: worker process"; NULL: none */
	const struct otel_process *otel; /* with options.wishes; NULL: unknown */
	/* With options.always_on: */
	bool is_older; /* the process already ran when the window began */
};

/*
 * Always on, what no tick came to for so many windows is given back: names of scripts' functions
 * and symbols. Ten minutes, with windows of one. Bound: users: windows for which unused names and
 * symbols are kept; then: they are read again; again: at the next tick in them; share: their own;
 * seen: not seen, but as CPU time.
 */
#define CAPTURE_KEEP_WINDOWS 10

/* Bound: as STACK_DEPTH_MAX. */
#define CAPTURE_DEPTH_MAX 127 /* most frames of a stack in user space, and in the kernel */

/* Calls visit for each sample of a kind. Stops when it returns non-zero, and returns that. */
int capture_each_sample(struct capture *c, enum capture_kind kind,
			int (*visit)(const struct capture_sample *sample, void *context),
			void *context);

/*
 * Writes the labels of a sample to texts[]: for whom its thread worked, as far as the process's
 * variables say, and its service. Returns their number.
 */
size_t capture_context(const struct capture *c, const struct capture_sample *sample,
		       struct context_text texts[static CONTEXT_TEXTS_MAX]);

/* Whether some image that was mapped has the variable of a wish. */
bool capture_has_label(const struct capture *c, size_t wish);

/* Whether thread-local variables were not read, as their C library is unknown. */
bool capture_lacks_thread_locals(const struct capture *c);

/*
 * The interpreter whose script the stack runs: the mapping of the frame before the script's first;
 * NULL: none, or unknown.
 */
const struct capture_mapping *capture_interpreter(const struct capture_sample *sample);

/*
 * Whom a wait was for: the thread with its lock, its disk, the other end of its socket. NULL:
 * unknown, or there were several; if wait->whom is not 0, it was for the process of that waker.
 */
const struct wait_peer *capture_peer(const struct capture *c, const struct capture_waits *wait);

/*
 * The wall time of a thread in the window: from its start or the window's begin to its exit or the
 * window's end. wall_ns = on_cpu_ns + runnable_ns + blocked_ns + unknown_ns, by the scheduler's
 * clock.
 */
struct capture_wall {
	pid_t pid, tid;	       /* as in capture_sample */
	uint32_t generation;   /* 0 if the process is unknown */
	char comm[16];	       /* the thread's name at the end */
	char process_comm[16]; /* its leader's */
	uint32_t uid;
	const char *cgroup;
	char title[PROCESS_TITLE_SIZE]; /* "": none */
	bool is_older;
	uint64_t wall_ns;
	uint64_t on_cpu_ns;   /* CPU time */
	uint64_t runnable_ns; /* no CPU was free */
	uint64_t blocked_ns;  /* it slept, idle or not, or was stopped */
	uint64_t unknown_ns;  /* at most this long: its end was lost */
};

/*
 * A control group that its quota stopped in the window. While all of its threads wait, the kernel
 * counts the time once for each CPU on which some of them do.
 */
struct capture_throttled {
	char *cgroup;		     /* path below the root, of the controller cpu */
	uint64_t quota_ns, every_ns; /* at the end; quota_ns 0: none any more */
	uint64_t periods, throttled_periods, throttled_ns;
};

/* As capture_wall(): those to which threads of the target belonged, or above them. */
const struct capture_throttled *capture_throttled(const struct capture *c, size_t *count);

/* Returns *count of them; 0 without options.wall. Valid until the next cut or capture_stop(). */
const struct capture_wall *capture_wall(const struct capture *c, size_t *count);

/* If options.waits asked for waits in vain, why, else NULL. */
const char *capture_no_waits(const struct capture *c);

/* The numbers of wakers are less. Bound: as WAIT_ENTRIES. */
#define CAPTURE_WAKERS_MAX 32768

/* The same for the mappings of the first target, those of its own executable first. */
int capture_each_mapping(const struct capture *c,
			 int (*visit)(const struct capture_mapping *mapping, void *context),
			 void *context);

#endif
