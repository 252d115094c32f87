/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * /dev/profil: profil(2) by the kernel, for the process that asks, in its own buffer.
 *
 * What is set belongs to the memory of the process, not to the descriptor, which may be closed: it
 * is on for every thread, those that there are and those to come, and for processes to come that
 * share the memory, as a child of vfork(2) does. A forked child goes on by itself, in its own copy
 * of the buffers. It is off from execve(2) on, and when a buffer is unmapped, moved, or cannot be
 * written, be it for want of memory.
 *
 * The clock is the CPU's: each CPU has a tick in every period of 1/hz seconds, and the task that
 * runs there counts it, however short it lives. So ticks times 1/hz is the CPU time of the process
 * in the long run; where in a period the tick comes changes evenly, and the period is exactly that
 * of hz, rounded down to nanoseconds. Whatever rates others ask for, each has its own.
 *
 * Cells are written as by the process itself, just when the clock ticks: nothing is pinned, and
 * who reads a cell finds every tick that came before. A cell is in the byte order of the machine,
 * need not be aligned, and wraps.
 *
 * 32-bit programs have the same structures. Those may grow at their end: `size` says how many bytes
 * the caller knows; what the kernel does not know has to be 0, as has what is unused in a request.
 *
 * All calls return 0, or -1 with errno:
 *   EFAULT   a structure, the regions or a buffer are not in the address space of the process
 *   EINVAL   a size, flag, rate, region or their order that cannot be
 *   E2BIG    a size, flag or field that a later kernel may know, or more regions than max_regions
 *   ENOMEM   out of memory
 *   EPERM    a child of vfork(2), whose memory is its parent's
 *   ENOTTY   not a call of this device
 */
#ifndef PROFIL_KMOD_DEVICE_H
#define PROFIL_KMOD_DEVICE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PROFIL_DEVICE "/dev/profil"

/* Changes when a program of before would not be understood any more. */
#define PROFIL_DEVICE_VERSION 1

/*
 * A run of program counters, and the cells they are counted in: `pc`, from first to last, is
 * counted in cell number floor((pc - offset) * scale / 2^17) behind buffer, cells being as wide as
 * PROFIL_WIDE says, if that cell lies whole inside the bufsiz bytes of the buffer. Scale 0 counts
 * all of them in cell 0. With 32-bit cells, two of these numbers are one cell.
 */
struct profil_device_region {
	__aligned_u64 first, last; /* both are of it; offset <= first <= last */
	__aligned_u64 offset;
	__aligned_u64 buffer; /* an address */
	__aligned_u64 bufsiz; /* bytes */
	__u32 scale;
	__u32 unused;
};

enum {
	PROFIL_WIDE = 1, /* cells have 32 bits, not 16 */
	PROFIL_ON = 2,	 /* told by PROFIL_IOC_QUERY */
};

/* Replaces what was set. If it fails, what was on is on as before, unless memory ran out. */
struct profil_device_set {
	__u32 size;
	__u32 flags; /* PROFIL_WIDE */
	__u32 hz;    /* ticks per second of CPU time: 1 to max_hz, any */
	__u32 region_count;
	__aligned_u64 regions; /* their address; sorted, apart from each other; 1 to max_regions */
};

/* All of the process's own; 0 when it is off, but for the limits. */
struct profil_device_query {
	__u32 size;
	__u32 version; /* PROFIL_DEVICE_VERSION of the kernel's */
	__u32 flags;   /* PROFIL_ON, PROFIL_WIDE */
	__u32 hz;
	__u32 max_hz, max_regions;
	__u32 unused;	       /* 0 */
	__u32 region_count;    /* when called: for how many there is room at regions */
	__aligned_u64 regions; /* where to write as many of them as have room; may be 0 */
	/* Since it was set: ticks = counted + out_of_range + lost. */
	__aligned_u64 ticks;
	__aligned_u64 counted;
	__aligned_u64 out_of_range; /* in no region, or behind the end of its buffer */
	__aligned_u64 lost;	    /* their cell could not be written in time */
	__aligned_u64 kernel;	    /* of the counted: came while the thread was in the kernel */
};

#define PROFIL_IOC_SET	 _IO(0xBD, 0x50) /* const struct profil_device_set * */
#define PROFIL_IOC_OFF	 _IO(0xBD, 0x51) /* no argument; it may be off already */
#define PROFIL_IOC_QUERY _IO(0xBD, 0x52) /* struct profil_device_query * */

#endif
