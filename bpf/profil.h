/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the profil program and user space share. Included by both, so it includes nothing. 32-bit
 * programs map the same memory: every field has the same offset in them.
 */
#ifndef PROFIL_BPF_PROFIL_H
#define PROFIL_BPF_PROFIL_H

/*
 * A range of addresses whose ticks are counted with one offset and scale. The ranges of a client
 * are sorted by address and do not overlap.
 */
struct profil_range {
	unsigned long long first, last; /* both inclusive */
	unsigned long long offset;	/* profil(2)'s, at most `first` */
	unsigned int scale;
	unsigned int base; /* the number of the region's first cell */
	unsigned int wide; /* 1: the buffer's cells have 32 bits (PROF_UINT); 0: 16 bits */
	unsigned int unused;
};

/*
 * Ranges of a client, a power of two. 512 overlapping regions split into almost as many.
 * Bound: caller: ranges of addresses of one profil(); then: the call fails: EINVAL.
 */
#define PROFIL_RANGES 1024

/*
 * Cells of a client. Each has 64 bits here, whatever it has in the buffer: 1 GiB.
 * Bound: caller: cells of one histogram; then: the call fails.
 */
#define PROFIL_CELLS (1U << 27)

/* Bits that mark the cells whose count has changed. Bound: size. */
#define PROFIL_DIRTY_BITS  4096
#define PROFIL_DIRTY_WORDS (PROFIL_DIRTY_BITS / 64)

/*
 * What a client has besides its cells. Every tick is counted in a cell, in out_of_range or in lost.
 * With one range, a tick touches three cache lines: the first of this struct, that of the dirty bit
 * (usually the second), and that of the cell.
 *
 * To stop counting, user space sets range_count to 0. Once `done` equals `ticks`, no count changes
 * any more.
 *
 * The program counts in a cell before it sets the dirty bit. So a reader clears the bit before it
 * reads the cells of that bit.
 */
struct profil_state {
	unsigned long long ticks; /* whose counting has begun */
	unsigned long long done;  /* and has ended */
	/* Set by user space. While it is 0, ticks are ignored. */
	unsigned int range_count;
	unsigned int dirty_shift;  /* each dirty bit covers 1 << dirty_shift cells */
	struct profil_range range; /* if there is only one; else all of them are in the pages */

	unsigned long long dirty[PROFIL_DIRTY_WORDS];

	unsigned long long out_of_range;
	unsigned long long lost; /* ticks whose cell is beyond the map */
};

/*
 * Clients at once. User space gives each a number.
 * Bound: users: histograms at once, of all users of profild; then: the call fails: EAGAIN; again:
 * when others end; share: --max-processes and --max-memory of each user; seen: in the client's
 * error, and profild's log.
 */
#define PROFIL_CLIENTS 16384

/*
 * Clients of one process: each of its ticks visits all of them.
 * Bound: caller: histograms of one process; then: the call fails: EAGAIN; again: when another ends;
 * share: the process's own; seen: in the error.
 */
#define PROFIL_CLIENTS_OF_PROCESS 32

/* The clock of a client: the period of its perf events in nanoseconds, or this. */
#define PROFIL_SCHEDULER_TICK 1

/* A client as the program sees it; the client itself cannot write it. */
struct profil_client_entry {
	unsigned long long clock; /* whose ticks it counts */
	unsigned int process;	  /* whose ticks are counted */
	unsigned int except;	  /* a thread whose ticks are ignored; 0: none */
	unsigned int next;	  /* the next client of the process; 0: none */
	unsigned int unused;
};

/*
 * The memory of a client is one array of pages: its state, then its ranges if there are several,
 * then its cells.
 * Bound: size.
 */
#define PROFIL_PAGE_BYTES  4096
#define PROFIL_PAGE_CELLS  (PROFIL_PAGE_BYTES / 8)
#define PROFIL_PAGE_RANGES 64 /* a power of two, so that the verifier can bound the remainder */

struct profil_page {
	unsigned long long cells[PROFIL_PAGE_CELLS];
};

/* The number of the first page that holds cells. */
static inline unsigned int profil_first_page(unsigned int range_count)
{
	if (range_count <= 1)
		return 1;
	return 1 + (range_count + PROFIL_PAGE_RANGES - 1) / PROFIL_PAGE_RANGES;
}

static inline unsigned long long profil_pages(unsigned int range_count, unsigned long long cells)
{
	return profil_first_page(range_count) + (cells + PROFIL_PAGE_CELLS - 1) / PROFIL_PAGE_CELLS;
}

#endif
