/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables by which a program on the tick finds callers: user space writes them, the program
 * reads them. Included by both, so it includes nothing.
 *
 * A row holds from its address up to the next row's: its rule tells how to get from a frame that
 * executes there to the caller's. Rows are made once per image from its call frame information.
 */
#ifndef PROFIL_BPF_UNWIND_TABLE_H
#define PROFIL_BPF_UNWIND_TABLE_H

/* How to find the canonical frame address (CFA): the caller's stack pointer. */
enum unwind_cfa {
	UNWIND_GAP,	    /* no call frame information: padding, or code without any */
	UNWIND_SP,	    /* sp + offset */
	UNWIND_BP,	    /* bp + offset */
	UNWIND_DEREF_SP,    /* *(sp + base) + add */
	UNWIND_DEREF_BP,    /* *(bp + base) + add */
	UNWIND_REGISTER,    /* DWARF register `base`, + add: its value is known in a leaf only */
	UNWIND_PLT,	    /* sp + 8, and 8 more from byte `offset` of each 16 on */
	UNWIND_SIGNAL,	    /* a signal frame: the kernel has saved all registers at sp */
	UNWIND_END,	    /* the outermost frame: there is no caller */
	UNWIND_UNSUPPORTED, /* anything else */
};

/* How to find the caller's frame pointer. */
enum unwind_bp {
	UNWIND_BP_SAME,	  /* unchanged */
	UNWIND_BP_AT_CFA, /* *(CFA + bp_offset) */
	UNWIND_BP_AT_BP,  /* *(bp + bp_offset) */
	UNWIND_BP_LOST,	  /* not saved in memory */
};

/* The return address is at CFA - 8, except in signal frames and the outermost. */
struct unwind_rule {
	unsigned char cfa; /* enum unwind_cfa */
	unsigned char bp;  /* enum unwind_bp */
	short bp_offset;
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
};

#define UNWIND_PROCESS_MAPPINGS_MAX (1U << 16)

/* Why a walk ended. */
enum unwind_end {
	UNWIND_BY_KERNEL,   /* the kernel's own walk by frame pointers: not known */
	UNWIND_COMPLETE,    /* at the outermost frame */
	UNWIND_TRUNCATED,   /* at STACK_DEPTH_MAX frames */
	UNWIND_NO_PROCESS,  /* the process's mappings are not known yet */
	UNWIND_NO_MAPPING,  /* no known mapping has this address */
	UNWIND_NO_ROWS,	    /* the image has no call frame information, nor is there a frame pointer */
	UNWIND_IN_GAP,	    /* no call frame information there, nor is there a frame pointer */
	UNWIND_ODD_RULE,    /* UNWIND_UNSUPPORTED, or a register that is not known */
	UNWIND_UNREADABLE,  /* the stack could not be read */
	UNWIND_BAD_FRAME,   /* the CFA is below the stack pointer */
	UNWIND_32_BIT,	    /* by frame pointers: the process runs in 32-bit mode */
	UNWIND_ENDS
};

#endif
