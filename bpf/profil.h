/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the profil program and user space share. Included by both, so it includes nothing. 32-bit
 * programs map the same memory: every field lies where it lies in 64-bit ones.
 */
#ifndef PROFIL_BPF_PROFIL_H
#define PROFIL_BPF_PROFIL_H

/*
 * A run of addresses whose ticks are counted by one offset and scale. Those of a process are in
 * the order of their addresses and do not overlap.
 */
struct profil_range {
	unsigned long long first, last; /* addresses, both of the range */
	unsigned long long offset;	/* of profil(2): at most `first` */
	unsigned int scale;
	unsigned int base; /* the cell that is the first of the region's */
	unsigned int wide; /* 1: a cell is 32 bits of the buffer (PROF_UINT), else 0 */
	unsigned int unused;
};

/* A power of two. 512 regions can overlap so that they make up almost as many. */
#define PROFIL_RANGES 1024

/* All cells of a process; they are 64 bits wide here, whatever they are in a buffer: 1 GiB. */
#define PROFIL_CELLS (1U << 27)

/* Bits that tell where a count changed. */
#define PROFIL_DIRTY_BITS  4096
#define PROFIL_DIRTY_WORDS (PROFIL_DIRTY_BITS / 64)

/*
 * The counts of a client beside its cells. Every tick is in a cell, out of range, or lost. A tick
 * of a client with one range touches the first cache line, that of its dirty bit, which most often
 * is the next, and that of its cell.
 *
 * To end it, range_count becomes 0 first; then, as soon as `done` is as many as `ticks`, no count
 * changes any more.
 *
 * Who reads the cells takes away a dirty bit first, then reads the cells that it stands for: the
 * program counts first and sets the bit then.
 */
struct profil_state {
	unsigned long long ticks; /* that began to be counted */
	unsigned long long done;  /* and were */
	/* Set by user space. As long as it is 0, no tick is counted in any way. */
	unsigned int range_count;
	unsigned int dirty_shift;  /* a dirty bit stands for 1 << dirty_shift cells */
	struct profil_range range; /* the only one, if there is one only; others are in a map */

	unsigned long long dirty[PROFIL_DIRTY_WORDS];

	unsigned long long out_of_range;
	unsigned long long lost;   /* ticks whose cell the map does not have */
	unsigned long long kernel; /* of those in a cell: came while it was in the kernel */
	unsigned long long timed;  /* ticks whose run time was taken */
	unsigned long long timed_ns;
};

/* Those that are counted at once, each by a number that user space chooses. */
#define PROFIL_CLIENTS 16384

/* Of one process; each of its ticks is looked at for all of them. */
#define PROFIL_CLIENTS_OF_PROCESS 32

/* The clock of a client: the period of its perf events in nanoseconds, or one of these. */
#define PROFIL_ANY_CLOCK      0
#define PROFIL_SCHEDULER_TICK 1

/* What the program knows of a client, out of that one's reach. */
struct profil_client_entry {
	unsigned long long clock; /* whose ticks it counts */
	unsigned int process;	  /* that it is about; 0: any that is a member for it */
	unsigned int except;	  /* a thread that is not counted; 0: none */
	unsigned int next;	  /* the next client of the process; 0: none */
	unsigned int unused;
};

/*
 * All that a client itself has is one array of pages: first its state, then its ranges if they are
 * more than one, then its cells.
 */
#define PROFIL_PAGE_BYTES  4096
#define PROFIL_PAGE_CELLS  (PROFIL_PAGE_BYTES / 8)
#define PROFIL_PAGE_RANGES 64 /* a power of two: the verifier can follow */

struct profil_page {
	unsigned long long cells[PROFIL_PAGE_CELLS];
};

/* The first page of the cells. */
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
