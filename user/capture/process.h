/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROCESS_H
#define PROFIL_CAPTURE_PROCESS_H

#include <time.h>

#include "capture/capture.h"
#include "capture/opener.h"
#include "capture/sideband.h"
#include "util/index.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN, with its NUL */

/*
 * Budget for the mappings of an address space, since a target may map as much as it likes, and each
 * mapping costs an open file, a path, and a search among the others. It allows 10,000 mappings with
 * paths of usual length; the largest browsers and Java programs have 2,000.
 * Bound: users: bytes of a process's mappings; less as those of all processes come near their
 * limit; then: further mappings are dropped: their ticks have no image; again: they are read again
 * as time allows (CROWDED_PART); share: the process's own, of which all have 1 / SPACE_SHARE of
 * what is left; seen: crowded_windows, and a process's name in the summary.
 */
#define SPACE_BYTES_MAX ((size_t)1024 * 1024)

/*
 * Budget for the mappings of all processes: 1 / this of the memory that is available when recording
 * begins. A user may have thousands of processes with many mappings each. Always on it is 128 MiB
 * at most, as with the 512 MiB of profil-continuous.service, where 5,000 processes with 200
 * mappings each need 46 MiB. Arrays have room to grow, so that up to half as much again is
 * allocated.
 * Bound: users: the part of the memory that is free at the start which the mappings of all
 * processes may take, and what it is always on at most; then: further mappings are dropped: their
 * ticks have no image; again: as processes end; the limit is that of the start; share: as
 * SPACE_BYTES_MAX; seen: crowded_windows, and a process's name in the summary.
 */
#define TABLE_SHARE	      4
#define TABLE_BYTES_ALWAYS_ON ((size_t)128 << 20)

/*
 * No process gets more than 1 / this of the remaining budget: 1,000 processes that map as much as
 * they can leave 120 KiB of 128 MiB to each of the others, which is enough for most.
 * Bound: as SPACE_BYTES_MAX.
 */
#define SPACE_SHARE 64

/*
 * Cost of an image without its path: its state here and in the unwinder, and an open file.
 * Bound: pace.
 */
#define IMAGE_BYTES 1024

/*
 * The mappings of one program, from its exec, its fork or the start of the recording on. A child
 * starts with its parent's mappings and refers to them, as most children soon exec or exit. The
 * parent's outlive its process for that long.
 */
struct address_space {
	unsigned int references; /* of its process, its children, and capture/unwind/ */
	uint64_t since_ns;
	/* Later than since_ns: the exec's record was lost, it came between these two times. */
	uint64_t sure_ns;
	uint64_t read_ns; /* when /proc showed its mappings last; 0: never since the start */
	struct address_space *parent; /* NULL: it began with no mappings */
	size_t inherited; /* how many of the parent's mappings, after those that it has absorbed */
	size_t absorbed;  /* how many of the mappings, the first ones, were its ancestors' */
	struct capture_mapping *mappings; /* ordered by time */
	size_t count, room;
	size_t bytes; /* of its own mappings and their paths, for the budget */
	/* Bound: as SPACE_BYTES_MAX. */
	bool crowded; /* some were dropped, over the budget: see snapshot_if_crowded() */
	/*
	 * When /proc may be read again for a stack through unknown mappings, and how long after the
	 * last time that was: twice as long each time.
	 */
	uint64_t next_scan_ns, scan_wait_ns;
	uint32_t exec;	     /* as sample_id_exec(), or EXEC_UNKNOWN */
	uint64_t checked_ns; /* for capture/forget.h */
};

#define EXEC_UNKNOWN UINT32_MAX

/* Code that the process has generated, and the file with its names: capture/jit_file.h. */
struct jit {
	uint32_t image;	  /* its memory without a file, or INDEX_NONE */
	uint32_t dump;	  /* the jit-PID.dump that it has mapped, or INDEX_NONE */
	int root;	  /* see image_root() */
	bool has_root;	  /* `root` is valid */
	pid_t pid;	  /* in its innermost PID namespace */
	uid_t uid;	  /* the effective user */
	time_t start;	  /* when it started, since the epoch; 0: unknown */
	uint64_t exec_ns; /* when the program began, since the epoch; 0: with the process, or before
			     the recording */
	unsigned int programs;	/* how many programs with such memory it ran before this one */
	uint64_t next_look_ns;	/* when to look for the file again */
	uint64_t look_again_ns; /* how much later the next time: twice as much each time */
	/* The perf-PID.map that was taken; inode 0: none, or a dump. Another may take its place. */
	uint64_t map_device, map_inode;
};

/* A free slot of the table has no address spaces, and has ended. */
struct process {
	pid_t pid;
	uint32_t next_with_pid;	   /* the number of the next process with this PID, or INDEX_NONE */
	uint32_t generation;	   /* how many processes had this PID before */
	uint64_t begin_ns;	   /* when it was forked, or before; 0: before the recording */
	uint64_t sure_ns;	   /* until then it may have been the one before; 0: it was not */
	uint64_t start_ns;	   /* see target_start_ns(); 0: unknown */
	uint64_t shown_ns;	   /* when /proc has shown its names and mappings last; 0: never */
	uint32_t group, uid;	   /* see capture/origin.h; INDEX_NONE, UINT32_MAX: unknown */
	char *title;		   /* likewise; NULL: none */
	struct otel_process *otel; /* of its program, if notes_otel; NULL: it was not looked at */
	/* Bound: state. */
	bool title_is_sure; /* it is not read again */
	bool ended;
	uint64_t ended_ns;	       /* when its leader ended */
	bool sampled;		       /* for capture/forget.h */
	bool forgotten;		       /* forget_processes() will free its slot */
	bool changed;		       /* is in process_table.changed */
	uint64_t crowded_ns;	       /* when its mappings may be read again, had it too many */
	unsigned int crowded_count;    /* how often it had too many */
	struct address_space **spaces; /* each exec adds one; at least one */
	size_t count, room;
	struct jit jit;
};

/*
 * A thread under one of its names. So that a thread that changes its name all the time costs
 * little, there are at most THREAD_NAMES_MAX of a TID, and THREADS_MAX of all: then a new name
 * replaces the last, and is in doubt.
 * Bound: users: names of one thread, and of all threads; then: the new name replaces the last,
 * which is in doubt; again: when the window ends; share: 64 of a thread; of all, no user has more
 * than are still free; seen: samples in doubt.
 */
#define THREAD_NAMES_MAX 64
#define THREADS_MAX	 (1U << 17)

/*
 * Bound: users: users whose names of threads are counted apart; then: those whose numbers collide
 * have a share together; again: when the window ends; share: is none; seen: samples in doubt.
 */
#define THREAD_SHARES 256

struct thread {
	pid_t tid;
	uint32_t younger;  /* the number of the next one with this tid, or INDEX_NONE */
	uint64_t since_ns; /* when it was forked or got the name; 0: before the recording */
	uint64_t maybe_ns; /* since_ns; or before, where records were lost: it may have had the name
			    */
	uint64_t ended_ns; /* 0: it runs, as far as is known */
	uint32_t older;	   /* how many are older, with this tid */
	uint8_t share;	   /* whose names it is among: process_table.renamed; 0: its first name */
	bool sampled;	   /* for capture/forget.h */
	bool in_doubt;	   /* it had other names meanwhile */
	char comm[COMM_SIZE];
};

/* A time in which sideband records were lost. */
struct gap {
	uint64_t from_ns, to_ns;
};

/*
 * When there are more, the two that are closest are one, with the time between them.
 * Bound: users: times without records of mappings; then: the two that are closest become one, with
 * the time between them; again: at the next window, when /proc has shown all processes since;
 * share: none; seen: samples in doubt.
 */
#define GAPS_MAX 256

/* The root directory of a process. */
struct root {
	int fd;
	pid_t pid; /* that has it, or had it last */
	uint64_t namespace, device, inode;
};

/*
 * The processes that are followed, the files that they have mapped for execution, and the names of
 * their threads. Zero-initialised is empty. Processes, images and control groups keep their numbers
 * until they are forgotten (capture/forget.h): then their slots are free, and are used again.
 */
struct process_table {
	bool everyone; /* add each process that appears */
	bool inherit;  /* add the children of processes in the table */
	bool of_user;  /* all that is counted is one user's: uid's */
	uid_t uid;     /* with of_user: whatever /proc says later */
	struct process *processes;
	size_t count, room;  /* slots */
	size_t next_process; /* no slot before it is free */
	struct thread *threads;
	size_t thread_count, thread_room;
	uint32_t renamed[THREAD_SHARES]; /* names that are not the first of their threads */
	struct capture_image *images;	 /* a free slot has no path */
	size_t image_count, image_room;
	size_t next_image;
	struct opener opener;
	struct refusals refusals; /* of this window */
	uint64_t serials;	  /* how many images there ever were */
	uint64_t next_open_ns;	  /* when image_open_again() goes on */
	size_t next_open;	  /* at which process image_open_again() goes on */
	size_t open_left;	  /* how many processes it has not asked yet */
	uint64_t next_jit_ns;	  /* when the next look of jit_look_soon() at a process is due */
	struct root *roots;	  /* that differ from ours */
	size_t root_count, root_room;
	bool notes_origins;    /* read the control groups of processes */
	bool notes_titles;     /* read the titles of processes */
	bool notes_otel;       /* see capture/otel_process.h */
	uint64_t next_otel_ns; /* when the next look of otel_look_soon() is due; 0: none is */
	char **groups;	       /* paths of control groups; NULL: a free slot */
	size_t group_count, group_room;
	bool notes_changes; /* fill `changed` */
	uint32_t *changed;  /* numbers of processes whose mappings have changed */
	size_t changed_count, changed_room;
	uint64_t records_lost; /* see snapshot_if_lost(); up to known_ns, none was */
	bool lacks_records;    /* some were lost since the mappings were read */
	uint64_t known_ns, next_again_ns;
	struct gap gaps[GAPS_MAX];
	size_t gap_count;
	pid_t crowded; /* a process whose mappings were dropped, over the budget; 0: none */
	/* Bound: state. */
	bool lacks_room;       /* there are such that are to be read again */
	size_t next_room;      /* at which process the search for them goes on */
	uint64_t next_room_ns; /* when the search goes on */
	uint32_t room_uid;     /* whose process the search found last */
	size_t bytes_max;      /* budget of all processes; 0: none */
	size_t mapping_count;  /* of all address spaces */
	size_t added; /* processes, and names of threads, since processes were last forgotten */
	size_t image_bytes;   /* of all images, with their paths */
	size_t copied_bytes;  /* of the mappings that capture/unwind/ has made of these */
	struct index by_pid;  /* the first process with each PID */
	struct index by_tid;  /* the oldest thread of each tid */
	struct index by_path; /* images */
	struct index by_group;
};

void process_table_free(struct process_table *table);

/* Adds a process, without mappings. Returns 0 or -ENOMEM, as do the calls below. */
int process_add(struct process_table *table, pid_t pid, uint64_t time_ns);

/* Applies a sideband record. Those of processes that are not followed are ignored. */
int process_record(struct process_table *table, const struct sideband_record *record);

/* The user of a process; 0: root, the caller, or unknown. */
uid_t process_user(const struct process *process);

/* Whether the process still has threads besides its leader, which may have ended. */
bool process_has_threads(pid_t pid);

/* Whether none of its threads runs any more, even if its end was not recorded. */
bool process_is_gone(const struct process *process);

/* Frees the slot of a process. */
void process_remove(struct process_table *table, struct process *process);

/* Keeps the threads that are marked as sampled only. Returns 0 or -ENOMEM. */
int process_keep_threads(struct process_table *table);

/* Adds the process to `changed`, if notes_changes. */
int process_note_change(struct process_table *table, struct process *process);

/* The last process with this PID, running or not; NULL: none. */
struct process *process_find(const struct process_table *table, pid_t pid);

/* The process that had this PID at a time, or else the first one after; NULL: none. */
struct process *process_at(const struct process_table *table, pid_t pid, uint64_t time_ns);

/* When another process got its PID; UINT64_MAX: none did. */
uint64_t process_until(const struct process_table *table, const struct process *process);

/* The current address space. */
struct address_space *process_space(struct process *process);

/* Begins another, after an exec. Returns 0 or -ENOMEM. */
int process_add_space(struct process *process, uint64_t since_ns);

/* Removes the first address spaces of a process, which its children may still refer to. */
void process_remove_spaces(struct process_table *table, struct process *process, size_t count);

/* Drops a reference to an address space, and frees it with the last one. */
void space_put(struct process_table *table, struct address_space *space);

/*
 * How many of its parent's mappings an address space has, the first ones; later ones came after the
 * fork. A space has a parent.
 */
static inline size_t space_inherited(const struct address_space *space)
{
	return space->parent->absorbed + space->inherited;
}

/*
 * Steps through the mappings of an address space and of those that it was forked from, the newest
 * first. Returns NULL at the end.
 */
struct space_walk {
	const struct address_space *space;
	size_t left; /* of its mappings; at first all: space->count */
};

static inline const struct capture_mapping *space_next(struct space_walk *walk)
{
	while (!walk->left) {
		if (!walk->space->parent)
			return NULL;
		walk->left = space_inherited(walk->space);
		walk->space = walk->space->parent;
	}
	return &walk->space->mappings[--walk->left];
}

/* Adds the mapping of a SIDEBAND_MMAP record to it, unless it is known or over the budget. */
int process_map(struct process_table *table, struct process *process,
		const struct sideband_record *record);

/* What the mappings of users' processes take, and the copies of users' files. */
size_t process_users_bytes(const struct process_table *table);

/* How many bytes of mappings a process may have now. */
size_t process_budget(const struct process_table *table);

/* Whether the budget of the current address space is used up. */
bool process_is_crowded(const struct process_table *table, struct process *process);

/* Notes that mappings of an address space of the process were dropped. */
void process_note_crowded(struct process_table *table, const struct process *process,
			  struct address_space *space);

/* The one that had this tid at a time; the first to have it when none had it yet; or NULL. */
struct thread *thread_at(const struct process_table *table, pid_t tid, uint64_t time_ns);

/*
 * Names the thread of a process (NULL: unknown) from time_ns on; maybe from maybe_ns on.
 * Returns 0 or -ENOMEM.
 */
int process_name_thread(struct process_table *table, const struct process *process, pid_t tid,
			const char *comm, uint64_t maybe_ns, uint64_t time_ns);

/* The address space at a time. */
struct address_space *process_space_at(struct process *process, uint64_t time_ns);

/* The mapping at a pc, and the time for which this is the answer. */
struct mapping_answer {
	const struct capture_mapping *mapping; /* NULL: none */
	uint64_t since_ns, until_ns;	       /* [since_ns, until_ns) */
	bool in_doubt;			       /* it may have been a newer one already */
};

/* Finds the mapping at pc at a time: the newest by then, or else the first one after. */
struct mapping_answer space_mapping_at(const struct address_space *space, uint64_t pc,
				       uint64_t time_ns);

/* Whether the space has had code of another image at pc, too. */
bool space_is_contested(const struct address_space *space, uint64_t pc, uint32_t image);

/*
 * What lost records may have changed at a time. doubtful: all about the process (NULL: unknown):
 * the records since its program began, or since /proc has shown it last, have a gap. in_gap: it is
 * in one, and /proc has shown the process after it.
 */
struct gap_answer {
	bool doubtful, in_gap;
	uint64_t until_ns; /* for which this is the answer */
};

struct gap_answer process_gaps_at(const struct process_table *table, struct process *process,
				  uint64_t time_ns);

/* The name of a thread, valid until the table changes, and the time for which this is the answer.
 */
struct name_answer {
	const char *comm;
	uint64_t until_ns;
	bool in_doubt; /* it may have had another one */
};

/*
 * The name at a time of the thread that had this TID: as recorded, else as /proc has it now, else
 * its process's, else "".
 */
struct name_answer thread_name_at(struct process_table *table, pid_t pid, pid_t tid,
				  uint64_t time_ns);

#endif
