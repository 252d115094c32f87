/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables by which a program on the tick finds callers: user space writes them, the program
 * reads them. Included by both, so it includes nothing.
 *
 * A row holds from its address up to the next row's: its rule says how to get from a frame that
 * executes there to the caller's. Rows are made once per image from its call frame information.
 */
#ifndef PROFIL_BPF_UNWIND_TABLE_H
#define PROFIL_BPF_UNWIND_TABLE_H

/* How to find the canonical frame address (CFA): the caller's stack pointer. */
enum unwind_cfa {
	UNWIND_GAP,	    /* no call frame information: padding, or code without any */
	UNWIND_SP,	    /* sp + offset */
	UNWIND_BP,	    /* bp + offset */
	UNWIND_BX,	    /* bx + offset: the dynamic linker's entry */
	UNWIND_DEREF_SP,    /* *(sp + base) + add */
	UNWIND_DEREF_BP,    /* *(bp + base) + add */
	UNWIND_REGISTER,    /* DWARF register `base`, + add: its value is known in a leaf only */
	UNWIND_RETURN,	    /* sp + add; in a leaf DWARF register `base` is the return address */
	UNWIND_PLT,	    /* sp + 8, and 8 more from byte `offset` of each 16 on */
	UNWIND_SIGNAL,	    /* a signal frame: the kernel has saved all registers at sp */
	UNWIND_END,	    /* the outermost frame: there is no caller */
	UNWIND_UNSUPPORTED, /* anything else */
};

/* How to find a register of the caller's. */
enum unwind_saved {
	UNWIND_SAME,	     /* unchanged */
	UNWIND_SAVED_AT_CFA, /* in the word `at` words from the CFA */
	UNWIND_SAVED_AT_BP,  /* `at` words from the callee's bp; of bp alone */
	UNWIND_LOST,	     /* anywhere else */
};

/*
 * The return address is the word below the CFA, except in signal frames and the outermost. Of the
 * registers that functions save, those are followed that a CFA can be found by.
 */
struct unwind_rule {
	unsigned char cfa : 4; /* enum unwind_cfa */
	unsigned char bp : 2;  /* enum unwind_saved */
	unsigned char bx : 2;
	signed char bp_at, bx_at;
	unsigned char unused;
	union {
		int offset;
		struct {
			short base, add;
		};
	};
};

/* A row of the table: an address within its page, and the number of a rule of its image. */
struct unwind_row {
	unsigned short address;
	unsigned short rule;
};

/* Rows are found by page: 64 KiB of an image's addresses. */
#define UNWIND_PAGE_SHIFT 16

struct unwind_page {
	unsigned int first; /* its first row; the row before it holds up to there */
	unsigned int count;
};

/* The kernel rounds each value of an array up to 8 bytes, so a value is many rows. */
#define UNWIND_CHUNK_ROWS 16384

struct unwind_chunk {
	struct unwind_row rows[UNWIND_CHUNK_ROWS];
};

struct unwind_image {
	unsigned long long begin; /* ELF virtual address of its first page */
	unsigned int first_page, page_count;
	unsigned int first_rule;
	unsigned int unused;
};

#define UNWIND_NO_IMAGE 0 /* a mapping of code without rows */

/* A range of code in a process. */
struct unwind_mapping {
	unsigned long long start, limit;
	unsigned long long bias; /* to be taken off an address for the ELF virtual address */
	unsigned int image;	 /* or UNWIND_NO_IMAGE */
	unsigned int unused;
};

/* The mappings of a process, sorted by address. Its key is sample_id_make(exec, tgid, 0). */
struct unwind_process {
	unsigned int first, count;
	unsigned int asked; /* a copy was sent since this was published */
	unsigned int unused;
};

#define UNWIND_PROCESSES 16384

/* What the iterator over all processes writes of each. */
struct unwind_exec_number {
	unsigned int tgid;
	unsigned int exec; /* as sample_id_exec() */
};

/*
 * A tick of a process of which nothing, or not all, is published: user space publishes it, and
 * walks this copy of what is needed for that.
 */
#define UNWIND_COPY_REGISTERS 17 /* by their numbers in DWARF; 16 is the pc */
#define UNWIND_COPY_BYTES     16384
#define UNWIND_COPY_STEP      256 /* bytes that are copied at once, and their alignment */

struct unwind_copy {
	unsigned long long time_ns; /* CLOCK_MONOTONIC */
	unsigned long long process; /* its key */
	unsigned long long id;	    /* of the sample */
	unsigned long long registers[UNWIND_COPY_REGISTERS];
	unsigned long long begin; /* the address of the first of bytes[] */
	unsigned int size;	  /* of bytes[] */
	unsigned int kernel_depth;
	unsigned int in_system_call; /* the pc is where a call returns to */
	unsigned int no_stack;	     /* see UNWIND_NO_STACK */
	unsigned long long kernel_pcs[127];
	unsigned char bytes[UNWIND_COPY_BYTES];
};

#define UNWIND_COPY_RING_BYTES (1U << 24)

#define UNWIND_PROCESS_MAPPINGS_MAX (1U << 13)

/* Why a walk ended. */
enum unwind_end {
	UNWIND_BY_KERNEL,  /* the kernel's own walk by frame pointers: not known */
	UNWIND_COMPLETE,   /* at the outermost frame */
	UNWIND_TRUNCATED,  /* at STACK_DEPTH_MAX frames */
	UNWIND_NO_PROCESS, /* the process's mappings are not known yet */
	UNWIND_NO_MAPPING, /* no known mapping has this address */
	UNWIND_NO_ROWS,	 /* the image has no call frame information, nor is there a frame pointer */
	UNWIND_IN_GAP,	 /* no call frame information there, nor is there a frame pointer */
	UNWIND_ODD_RULE, /* UNWIND_UNSUPPORTED, or a register that is not known */
	UNWIND_UNREADABLE, /* the stack could not be read */
	UNWIND_NO_STACK,   /* nor is there one: the thread has called exec, or has ended */
	UNWIND_BAD_FRAME,  /* the CFA is below the stack pointer */
	UNWIND_32_BIT,	   /* by frame pointers: the process runs in 32-bit mode */
	UNWIND_COPIED,	   /* user space is to walk a copy of the stack */
	UNWIND_ENDS
};

#endif
