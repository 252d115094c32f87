/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables that the stack walk uses to find callers. User space writes them, the BPF program
 * reads them. Included by both.
 *
 * A row covers the addresses from its own up to the next row's. Its rule says how to find the
 * caller of a frame with a pc in there. An image's call frame information is turned into rows once.
 */
#ifndef PROFIL_BPF_UNWIND_TABLE_H
#define PROFIL_BPF_UNWIND_TABLE_H

#include "context.h"
#include "registers.h"

/* How to find the canonical frame address (CFA): the caller's stack pointer. */
enum unwind_cfa {
	UNWIND_GAP,	 /* no call frame information: padding, or code without any */
	UNWIND_SP,	 /* sp + offset */
	UNWIND_BP,	 /* bp (x86-64: rbp, arm64: x29) + offset */
	UNWIND_BX,	 /* rbx + offset: at the dynamic linker's entry */
	UNWIND_DEREF_SP, /* *(sp + base) + add */
	UNWIND_DEREF_BP, /* *(bp + base) + add */
	UNWIND_REGISTER, /* DWARF register `base`, + add: known in a leaf only */
	UNWIND_RETURN,	 /* sp + add; DWARF register `base` holds the return address: in a leaf */
	UNWIND_PLT,	 /* sp + 8; sp + 16 from byte `offset` of each 16-byte entry on */
	UNWIND_SIGNAL,	 /* a signal frame: the kernel saved all registers at sp */
	UNWIND_END,	 /* the outermost frame: there is no caller */
	UNWIND_SWITCH,	 /* sp + base, but on another stack at a call: enum unwind_switch `add` */
	UNWIND_UNSUPPORTED, /* anything else */
};

/* How to find the caller's value of a register. */
enum unwind_saved {
	UNWIND_SAME,	     /* unchanged */
	UNWIND_SAVED_AT_CFA, /* saved `at` words from the CFA */
	UNWIND_SAVED_AT_BP,  /* saved `at` words from the callee's bp; only bp itself */
	UNWIND_LOST,	     /* unknown */
};

/*
 * Functions of Go's runtime that call others on the thread's own stack, called g0. There Go's call
 * frame information is wrong.
 */
enum unwind_switch {
	UNWIND_SWITCH_CALLED,	   /* the goroutine that runs on this thread has called it */
	UNWIND_SWITCH_INTERRUPTED, /* the goroutine goes on where its stack was too small */
	UNWIND_SWITCH_ENDS,	   /* it does not return to its caller: the outermost frame */
	UNWIND_SWITCH_BACK,	   /* C has called Go: the caller is what had called C */
	UNWIND_SWITCH_BP,	   /* bp is the function's frame pointer there */
};

/*
 * On x86-64 the return address is the word below the CFA, except in a signal frame and in the
 * outermost frame. Of the registers that functions save, the walk follows those that a CFA may
 * depend on, and on arm64 the return address.
 */
struct unwind_rule {
	unsigned char cfa : 4; /* enum unwind_cfa */
	unsigned char bp : 2;  /* enum unwind_saved */
	unsigned char bx : 2;  /* on arm64: of x30, the return address */
	signed char bx_at;     /* on arm64: from the word at bp_at, whatever bp is */
	short bp_at;
	union {
		int offset;
		struct {
			short base, add;
		};
	};
};

/* A row: an address within its page, and the number of a rule of its image. */
struct unwind_row {
	unsigned short address;
	unsigned short rule;
};

/*
 * A page is 2^shift bytes of an image's addresses. It finds the rows of an address. Small pages
 * make the search among its rows short: they share a cache line or two.
 * Bound: size.
 */
#define UNWIND_PAGE_SHIFT_MIN 8
#define UNWIND_PAGE_SHIFT_MAX 16
#define UNWIND_PAGE_ROWS      16 /* on average, at least, unless that needs a larger shift */

struct unwind_page {
	unsigned int first; /* its first row; the row before that covers the addresses up to it */
	unsigned int count;
};

/*
 * A map value holds many rows, since the kernel rounds the size of each value up to 8 bytes.
 * Bound: size.
 */
#define UNWIND_CHUNK_ROWS 16384

struct unwind_chunk {
	struct unwind_row rows[UNWIND_CHUNK_ROWS];
};

/*
 * Elements of the parts by which tables grow: each is a multiple of 64 KiB, so that parts can be
 * mapped one after the other, whatever the size of a page of memory.
 * Bound: size.
 */
#define UNWIND_PART_IMAGES   4096
#define UNWIND_PART_PAGES    16384
#define UNWIND_PART_CHUNKS   16
#define UNWIND_PART_RULES    8192
#define UNWIND_PART_MAPPINGS 4096

struct unwind_image {
	unsigned long long begin; /* ELF virtual address of its first row, and of its first page */
	unsigned int first_page, page_count;
	unsigned int first_rule;
	unsigned int page_shift;
	unsigned int used;	/* how often walks came to it: about one for each tick. It wraps */
	unsigned short context; /* the number of its variables in bpf/context.h; 0: none */
	struct context_vector vector;
};

#define UNWIND_NO_IMAGE 0 /* the mapping has no rows */

/* An executable mapping of a process. */
struct unwind_mapping {
	unsigned long long start, limit;
	unsigned long long bias; /* address - bias is the ELF virtual address */
	unsigned int image;	 /* or UNWIND_NO_IMAGE */
	unsigned int unused;
};

/* Of a process: whether a pc was met that is in none of its mappings. */
enum unwind_asked {
	UNWIND_NOT_ASKED,
	UNWIND_ASKED,	 /* and user space has not looked yet */
	UNWIND_ANSWERED, /* it knows no others */
};

/* A process and its mappings, sorted by address. The key is sample_id_make(exec, tgid, 0). */
struct unwind_process {
	unsigned int first, count;
	unsigned int asked;	      /* enum unwind_asked */
	unsigned int thread_specific; /* see struct language_image */
	unsigned int interpreter; /* the number of its mapping among these, from 1 on; 0: none */
	/* The same of images with variables that are read: bpf/context.h. */
	unsigned short contexts[2];
	struct context_vector vector; /* of its C library */
	unsigned short unused;
};

/*
 * Bound: users: processes whose stacks the kernel walks; then: ticks in others send copies, which
 * user space walks; again: when others end, and then at that process's next change; share: none;
 * seen: not seen, but as CPU time.
 */
#define UNWIND_PROCESSES 16384

/* The record that the iterator over all processes writes for each. */
struct unwind_exec_number {
	unsigned int tgid;
	unsigned int exec; /* as sample_id_exec() */
};

/*
 * A tick in a process of which no mappings, or not all, are published. User space publishes them,
 * and walks this copy of the registers and the stack.
 * Bound: format.
 */
#define UNWIND_COPY_REGISTERS (UNWIND_REGISTERS + 1) /* the last is the pc */
/*
 * Bound: users: bytes of a stack that is copied for user space; then: the callers beyond are
 * missing, where the process's memory cannot be read by then; again: at the next tick; share: each
 * stack's own; seen: stack end unreadable.
 */
#define UNWIND_COPY_BYTES 65536
#define UNWIND_COPY_STEP  1024 /* bytes that are copied at a time, and their alignment */

struct unwind_copy {
	unsigned long long time_ns; /* CLOCK_MONOTONIC */
	unsigned long long process; /* its key */
	unsigned long long id;	    /* of the sample */
	unsigned long long registers[UNWIND_COPY_REGISTERS];
	unsigned long long begin; /* the address of the first of bytes[] */
	unsigned int size;	  /* bytes used of bytes[] */
	unsigned int kernel_depth;
	unsigned int in_system_call; /* 1: the pc is after the instruction, as after a call */
	unsigned int no_stack;	     /* see UNWIND_NO_STACK */
	unsigned int cpu;	     /* as in struct stack */
	unsigned int waiting;	     /* as in struct stack_sample */
	unsigned int wait;    /* not of a tick, but of this entry of waits (bpf/wait.h); else 0 */
	unsigned int context; /* as in struct stack */
	/* Bound: as STACK_DEPTH_MAX. */
	unsigned long long kernel_pcs[127];
	unsigned char bytes[UNWIND_COPY_BYTES];
};

/*
 * The most: with few CPUs, or a low frequency, less until that was half full.
 * Bound: users: bytes of copied stacks on their way to user space; then: the kernel walks that
 * stack by frame pointers; again: at the next reading, ten times a second, or when asked for;
 * share: none; seen: stack end process_unknown.
 */
#define UNWIND_COPY_RING_BYTES (1U << 24)
/* Bound: size. */
#define UNWIND_RING_GROWTH 4

/*
 * Bound: users: executable mappings of one process in the tables; then: stacks through the others
 * end there; again: when it unmaps some; share: the process's own; seen: stack end mapping_unknown.
 */
#define UNWIND_PROCESS_MAPPINGS_MAX (1U << 13)

/* Why a stack walk ended. */
enum unwind_end {
	UNWIND_BY_KERNEL,  /* unknown: the kernel walked by frame pointers */
	UNWIND_COMPLETE,   /* at the outermost frame */
	UNWIND_TRUNCATED,  /* at STACK_DEPTH_MAX frames */
	UNWIND_NO_PROCESS, /* the process's mappings are not known (yet) */
	UNWIND_NO_MAPPING, /* no known mapping has this address */
	UNWIND_NO_ROWS,	   /* image without call frame information, and no frame pointer */
	UNWIND_IN_GAP,	   /* code without call frame information, and no frame pointer */
	UNWIND_ODD_RULE,   /* UNWIND_UNSUPPORTED, or it needs an unknown register */
	UNWIND_UNREADABLE, /* the stack could not be read */
	UNWIND_NO_STACK,   /* there is none: the thread was in exec or exiting */
	UNWIND_BAD_FRAME,  /* the CFA is below the stack pointer */
	UNWIND_32_BIT,	   /* the kernel walked by frame pointers: a 32-bit process */
	UNWIND_TOO_LONG,   /* after one frame: the process's walks take too long (walk_budget.h) */
	UNWIND_COPIED,	   /* user space is to walk a copy of the stack */
	UNWIND_ENDS
};

#endif
