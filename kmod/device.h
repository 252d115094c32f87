/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * /dev/profil: profil(2) by the kernel, for the calling process, into its own buffers.
 *
 * Profiling belongs to the memory of the process, not to the descriptor, which may be closed. It is
 * on for all threads, present and future, and for processes that share the memory, such as children
 * of vfork(2). A forked child is profiled as well, into its own copy of the buffers. execve(2) ends
 * it, and so does a buffer that is unmapped, moved, or cannot be written (out of memory included).
 *
 * Each CPU has a tick in every period of 1/hz seconds, and the task that runs there then counts it,
 * however short it lives. So ticks times 1/hz is the CPU time of the process in the long run. The
 * place of the tick in the period varies evenly. The period is 1/hz rounded down to nanoseconds,
 * and does not depend on the rates of other processes.
 *
 * A cell is written at the time of the tick, as the process itself would write it. Nothing is
 * pinned, and a program that reads a cell finds every earlier tick. Cells have the byte order of
 * the machine, need not be aligned, and wrap.
 *
 * The structures are the same in 32-bit programs. They may grow at their end: `size` is the number
 * of bytes that the caller knows. What the kernel does not know of a structure must be 0, and so
 * must unused fields of a request.
 *
 * All calls return 0, or -1 with errno:
 *   EFAULT   a structure, the regions or a buffer are not in the address space of the process
 *   EINVAL   a size, flag, rate or region is invalid, or the regions are not in order
 *   E2BIG    a size, flag or field that a later kernel may know, or more regions than max_regions
 *   ENOMEM   out of memory
 *   EDQUOT   the user has as many profiled processes as root allows, by real user ID: max_processes
 *   EPERM    the caller is a child of vfork(2), whose memory is its parent's
 *   ENOTTY   not a call of this device
 */
#ifndef PROFIL_KMOD_DEVICE_H
#define PROFIL_KMOD_DEVICE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PROFIL_DEVICE "/dev/profil"

/* Changes when requests of older programs would mean something else. */
#define PROFIL_DEVICE_VERSION 1

/*
 * A range of program counters and its cells. A pc in it is counted in the 16-bit cell number
 * floor((pc - offset) * scale / 2^17) of the buffer, or with PROFIL_WIDE in the 32-bit cell of half
 * that number, if the whole cell is inside the buffer. Scale 0 counts all in cell 0.
 */
struct profil_device_region {
	__aligned_u64 first, last; /* inclusive; offset <= first <= last */
	__aligned_u64 offset;
	__aligned_u64 buffer; /* an address */
	__aligned_u64 bufsiz; /* bytes */
	__u32 scale;
	__u32 unused;
};

enum {
	PROFIL_WIDE = 1, /* cells have 32 bits, not 16 */
	PROFIL_ON = 2,	 /* in the result of PROFIL_IOC_QUERY only */
};

/* Replaces the profiling that is on. If it fails, that stays on, unless memory ran out. */
struct profil_device_set {
	__u32 size;
	__u32 flags; /* PROFIL_WIDE */
	__u32 hz;    /* ticks per second of CPU time, 1 to max_hz */
	__u32 region_count;
	__aligned_u64 regions; /* their address; sorted, disjoint; 1 to max_regions of them */
};

/* About the calling process. When it is off, all but version and limits is 0. */
struct profil_device_query {
	__u32 size;
	__u32 version; /* PROFIL_DEVICE_VERSION of the module */
	__u32 flags;   /* PROFIL_ON, PROFIL_WIDE */
	__u32 hz;
	__u32 max_hz, max_regions;
	__u32 unused;	       /* 0 */
	__u32 region_count;    /* when called: how many have room at `regions` */
	__aligned_u64 regions; /* where to write those that have room; may be 0 */
	/* Since it was set: ticks = counted + out_of_range + lost. */
	__aligned_u64 ticks;
	__aligned_u64 counted;
	__aligned_u64 out_of_range; /* in no region, or the cell is outside the buffer */
	__aligned_u64 lost;	    /* the cell could not be written in time */
	__aligned_u64 kernel;	    /* of `counted`: the thread was in the kernel */
};

#define PROFIL_IOC_SET	 _IO(0xBD, 0x50) /* const struct profil_device_set * */
#define PROFIL_IOC_OFF	 _IO(0xBD, 0x51) /* no argument; it may be off already */
#define PROFIL_IOC_QUERY _IO(0xBD, 0x52) /* struct profil_device_query * */

#endif
