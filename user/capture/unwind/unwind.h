/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_H
#define PROFIL_CAPTURE_UNWIND_H

#include "capture/counts.h"
#include "capture/process.h"
#include "capture/scripts.h"
#include "capture/unwind/unwind_space.h"
#include "capture/unwind/unwind_tables.h"

struct ring_buffer;
struct waits;

enum {
	UNWIND_COPIES,
	UNWIND_CODES,
	UNWIND_RINGS
};

/* A ring buffer to which a larger one is added: GROWING_RING() in bpf/maps.h. */
struct unwind_ring {
	int rings;     /* the map that has the one in use; owned by the skeleton */
	int larger;    /* its descriptor; 0: there is none */
	uint32_t room; /* bytes of the first one */
	uint32_t read; /* bytes that were read at once */
	bool fills_up; /* more than half of its room was */
	int (*take)(void *unwind, void *data, size_t size);
};

/* The CPU time that reading files may take. */
struct unwind_time {
	int64_t left_ns;    /* below 0: overspent */
	uint64_t filled_ns; /* when it was last filled */
};

/*
 * Who pays for reading files, and what is left to it.
 * Bound: users: control groups and users whose time is kept; then: who has not asked for longest
 * is forgotten, and may have its part anew; again: at once; share: none; all parts together are
 * within the budget of all (TIME_NS); seen: not seen.
 */
#define UNWIND_PAYERS 64

struct unwind_payer {
	uint64_t payer; /* 0: none */
	struct unwind_time time;
};

/*
 * Fills the tables with which the BPF program walks stacks (bpf/unwind_table.h): the rows of each
 * image once, the mappings of each process whenever they change. Walks the stacks that the program
 * could not. Zero-initialised is empty.
 */
struct unwind {
	unwind_reader *read;
	void (*trim)(struct language_code *code); /* of struct scripts */
	struct parser *parser;			  /* for it */
	const struct context_wishes *wishes;	  /* NULL: no context is read */
	struct process_table *processes;
	struct counts *counts; /* receives the stacks of ticks that are walked here */
	struct waits *waits;   /* receives those of waits */
	bool always_on;	       /* the recording may take little time only */
	uint64_t tick_ns;      /* of the clock */
	bool native;	       /* stacks keep the frames of interpreters */

	/* Private to the files of this directory: */
	struct unwind_image_state *images; /* by the number of struct capture_image */
	size_t image_count, image_room;
	bool has_removed; /* some were removed from the tables, or found no room */
	uint32_t *wanted; /* numbers of those to read */
	size_t wanted_count, wanted_room;
	struct index contents;		 /* images that processes may share, by their contents */
	struct unwind_image_state *idle; /* in the tables, mapped by no known process */
	size_t idle_count, idle_room;
	uint32_t window;			  /* its number; 0: without windows */
	struct unwind_time root_time, users_time; /* for files of root, and of all other users */
	struct unwind_payer payers[UNWIND_PAYERS];
	struct unwind_process_state *states; /* by the number of struct process */
	size_t state_count, state_room;
	struct unwind_tables tables;
	unsigned int spare_mib; /* for the rows of images that are mapped later; 0: the default */
	struct unwind_demand *demands; /* by the number in the tables */
	size_t demand_room;
	uint64_t next_balance_ns;
	uint64_t evicted;      /* how often rows made room for others */
	char no_room_why[128]; /* for capture_rows() */
	struct {
		struct unwind_space space;
		const struct address_space *of; /* as in unwind_process_state */
		size_t taken;			/* how many of its mappings, absorbed or own */
		bool known;
	} past;		     /* the last address space that is no longer published */
	uint32_t *published; /* numbers of the published processes */
	size_t published_count, published_room;
	size_t next_check;	/* the next of them to check for whether it has ended */
	uint64_t next_check_ns; /* when to check */
	struct ring_buffer *ring;
	struct unwind_ring rings[UNWIND_RINGS];
	/* Of the BPF program: bpf/unwind.h, bpf/script/code_maps.h */
	volatile uint32_t *is_reading_rows;
	volatile unsigned long long *codes_replaced, *codes_since_ns;
	int language_sent;
	struct unwind_copy **copies; /* stacks to walk */
	size_t copy_count, copy_room;
	size_t copies_bytes; /* of their stacks */
	struct scripts scripts;
	int iterator; /* the descriptor of the program that lists exec numbers; 0: none */
};

/* Before the load: reads the rows of the known images, and sets the sizes of the maps. */
int unwind_prepare(struct unwind *u, struct sample_bpf *bpf);

/* After the load: publishes all processes. */
int unwind_begin(struct unwind *u, const struct sample_bpf *bpf, struct error *e);

/* A descriptor that is readable after a tick in a process or a mapping that is not published. */
int unwind_fd(const struct unwind *u);

/*
 * Publishes what has changed since the last call, and walks the stacks that were copied before
 * until_ns; the caller has read the mapping records up to then. Returns 0 or a negative errno.
 */
int unwind_update(struct unwind *u, uint64_t until_ns);

/*
 * Walks one more copy, of a process that is published. thread_pointer: of the thread, which still
 * has this stack, in this memory; 0: it may run. Returns 0 or -ENOMEM.
 */
struct opener_memory;
struct unwind_found;
int unwind_walk(struct unwind *u, const struct unwind_copy *copy,
		const struct opener_memory *memory, uint64_t thread_pointer,
		struct unwind_found *found);

/* Before forget_processes(): withdraws those that it will forget. Returns 0 or -ENOMEM. */
int unwind_forget(struct unwind *u);

/*
 * After it: keeps the rows of images that it forgot, until their room is needed; drops the code
 * objects of processes that it forgot. begin_ns: when the window began. Returns 0 or -ENOMEM.
 */
int unwind_forget_images(struct unwind *u, uint64_t begin_ns);

/* Sets *tables to what the tables contain. */
void unwind_used(const struct unwind *u, struct capture_tables *tables);

/* See capture_rows(). */
enum capture_rows unwind_rows_state(const struct unwind *u, uint32_t image, const char **why);

void unwind_free(struct unwind *u);

#endif
