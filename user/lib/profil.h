/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * libprofil: profil(2) for Linux, with counts made by the kernel. For C99, C++11 and later. See
 * profil(3), sprofil(3), libprofil(3).
 *
 * Threads: every function may be called from any thread at any time, also for the same session, but
 * not from a signal handler. No other call for a session may be running or follow once
 * profil_session_free() is called.
 *
 * None of the functions prints (unless PROFIL_VERBOSE is 1), exits, changes the locale, changes
 * errno on success, or uses a signal of the program.
 *
 * Sizes: structs may grow at their end in later versions, so a function that takes one takes its
 * size as well: sizeof(), as the caller was compiled. A smaller struct, of an older caller, is
 * fine. In a larger one the library ignores bytes that are 0 and refuses others with -E2BIG; in
 * those that it fills in, it sets the bytes that it does not know to 0.
 */
#ifndef PROFIL_H
#define PROFIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

#ifdef __GLIBC__
#include <sys/profil.h> /* struct prof, sprofil() */
#define PROFIL_THROW __THROW
#else
#define PROFIL_THROW
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- Version --- */

#define PROFIL_VERSION_MAJOR 0
#define PROFIL_VERSION_MINOR 1
#define PROFIL_VERSION_PATCH 0

/* A version as a number that can be compared: 0.1.0 is 1000. */
#define PROFIL_VERSION_NUMBER(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))

/* Returns the PROFIL_VERSION_NUMBER() of the library that the program runs with. */
unsigned int profil_version(void);

/* --- One histogram of this process: profil(3), sprofil(3) --- */

/*
 * Turns profiling of this process on. From now on, at each tick of CPU time (user and system, of
 * every thread), the kernel takes the program's pc and increments the 16-bit cell number
 * (pc - offset) * scale / 2^17 of `buffer`, modulo 65536, if all of the cell lies in the buffer's
 * `bufsiz` bytes. So a cell stands for one byte of code with scale 0x20000, for two with 0x10000,
 * for four with 0x8000.
 *
 * buffer NULL, bufsiz 0, or scale 0 or 1 turns profiling off. A second call replaces the first. The
 * caller owns the buffer, which must stay until profiling is off; the library never clears it. The
 * counts in it are at most 10 ms old while profiling is on (with "kmod" they are current), and
 * exact after the call that turns it off. A buffer that cannot be written turns profiling off.
 *
 * Returns 0, or -1 with errno set: ENOMEM (also for more than 2^27 cells), EAGAIN (cannot create a
 * thread), EINVAL (PROFIL_HZ is invalid or above a limit), ENOTSUP (the back end that
 * PROFIL_BACKEND names does not work, or none does), EPERM (in a vfork(2) child).
 */
int profil(unsigned short *buffer, size_t bufsiz, size_t offset, unsigned int scale) PROFIL_THROW;

#ifndef __GLIBC__
/* One region of sprofil(), and its flags: as the C library's header has them where it has one. */
struct prof {
	void *pr_base;		/* the buffer */
	size_t pr_size;		/* its size in bytes */
	size_t pr_off;		/* the address of the first cell */
	unsigned long pr_scale; /* as scale of profil() */
};

enum {
	PROF_USHORT = 0, /* cells of 16 bits */
	PROF_UINT = 1,	 /* cells of 32 bits */
	PROF_FAST = 2,	 /* 1000 ticks per second instead of 100 */
};

/* profil() for several regions: see sprofil(3). Returns 0, or -1 with errno set. */
int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);
#endif

/*
 * Returns what counts for this process: "kmod", "bpf", "daemon" or "libc"; NULL when nothing can.
 * The first call of this function, of profil() or of profil_attach() makes the choice. The string
 * is static.
 */
const char *profil_backend(void);

/*
 * Returns why this thread's last call of a function of this header failed: a sentence; "" when it
 * did not fail. The string stays valid until the thread's next call.
 */
const char *profil_error(void);

/* --- Executable memory of a process --- */

/* One executable mapping. */
struct profil_text_range {
	uint64_t start;	  /* the first address */
	uint64_t end;	  /* the address behind the last */
	uint64_t offset;  /* of `start` in the file; 0 without a file */
	const char *path; /* of the file; or a name like "[vdso]"; "": neither */
};

/*
 * Finds the executable mappings of process `pid`, 0 for this one: the lines of /proc/PID/maps that
 * have an x, in the order of their addresses. A file that was deleted has the path that it had. The
 * process may map others meanwhile and later. `size` is sizeof(struct profil_text_range).
 *
 * *ranges becomes an array of *count elements, in one block with their paths, which the caller
 * releases by free(*ranges).
 *
 * Returns 0, or a negative errno with both unchanged: -ESRCH (there is no such process, or it has
 * no memory, as a kernel thread or one that has ended), -EACCES (of another user, and this process
 * has no CAP_SYS_PTRACE), -EINVAL (pid, size), -ENOMEM, or what reading /proc failed with.
 */
int profil_text_ranges(pid_t pid, struct profil_text_range **ranges, size_t *count, size_t size);

/* --- Sessions: any number of histograms, about this process or another --- */

struct profil_session;

/* A run of code. Its cells are those of a profil() call with a buffer of `bufsiz` bytes. */
struct profil_region {
	uint64_t offset; /* the address of the first cell */
	uint64_t bufsiz; /* in bytes, 2 or more; the region has bufsiz / 2 cells */
	uint32_t scale;	 /* as profil()'s; 2 or more */
	uint32_t unused; /* 0 */
};

/*
 * All ticks since profil_attach(): ticks = in_range + out_of_range + lost. By the CPU time that the
 * kernel accounts, cpu_ns / period_ns ticks were due, give or take chance. Fewer ticks came, for
 * example, when a virtual machine stood still, or when threads were woken often: the kernel charges
 * them from their wakeup on, before they run.
 */
struct profil_totals {
	uint64_t ticks;
	uint64_t in_range;     /* the sum of all cells */
	uint64_t out_of_range; /* at an address in no region */
	uint64_t lost;	       /* no memory to count them, or due while profild was not running */
	uint64_t period_ns;    /* CPU time between two ticks, in nanoseconds: not exactly 1/hz */
	uint64_t cpu_ns;       /* CPU time of all threads of the process since, in nanoseconds */
	uint64_t target;       /* whether another process still counts: PROFIL_TARGET_RUNS etc. */
};

/*
 * Of a session about another process. Counting ends with its program, and then no member of struct
 * profil_totals changes any more; cpu_ns is exact up to the last second of the program, for which
 * it is what the ticks stand for.
 */
#define PROFIL_TARGET_RUNS     0
#define PROFIL_TARGET_EXECUTED 1 /* it has executed another program */
#define PROFIL_TARGET_ENDED    2 /* it has ended and was waited for */

/*
 * Starts to count for process `pid`, 0 for this one, at `hz` ticks per second of CPU time; 0 is the
 * rate of profil(): PROFIL_HZ, or else 100. The clock's true period differs a little from 1/hz (up
 * to half a percent), to stay out of step with the kernel's tick: profil_read_totals() returns it.
 *
 * `regions` is an array of `count` elements, 1 to 512, each of `size` bytes:
 * sizeof(struct profil_region). The library copies it. An address that lies in several regions
 * counts in the first of them.
 *
 * A session about this process continues in forked children, each with a copy of the counts.
 * Counting ends when the process executes another program. Only the back end "bpf" can count for
 * another process, so that needs its privileges, and fails with -ENOTSUP if PROFIL_BACKEND names
 * another. "kmod" serves one session or profil() at a time; a second one gets the next back end.
 *
 * *session is set on success; the caller frees it by profil_session_free(). Returns 0 or a negative
 * errno: -ESRCH (there is no process `pid`; checked first), -EINVAL (pid, hz, a region, PROFIL_HZ),
 * -E2BIG (see the sizes above), -EPERM (privileges, or in a vfork(2) child), -ENOTSUP (no available
 * back end can count for the session: "libc" has no sessions), -ENOMEM, or what a system call or
 * profild failed with.
 */
int profil_attach(struct profil_session **session, pid_t pid, const struct profil_region *regions,
		  size_t count, size_t size, unsigned int hz);

/*
 * Copies the current counts of the region number `region`, from 0, to `counts`, an array of `n`
 * elements: one for each cell, in the order of addresses. Of a region with more cells the first n
 * are copied; of one with fewer, the rest of the array stays as it is. Returns 0, -EINVAL (there is
 * no such region) or -EPERM (in a vfork(2) child).
 */
int profil_read(struct profil_session *session, size_t region, uint64_t *counts, size_t n);

/*
 * Fills in *totals, which has `size` bytes: sizeof(struct profil_totals). Returns 0, -EINVAL (size)
 * or -EPERM (in a vfork(2) child).
 */
int profil_read_totals(struct profil_session *session, struct profil_totals *totals, size_t size);

/*
 * Stops counting. Afterwards the counts are exact, do not change, and can still be read and written
 * to files. Returns 0, also when counting had stopped before, or -EPERM (in a vfork(2) child).
 */
int profil_detach(struct profil_session *session);

/* Stops counting and frees the session. NULL is allowed. Does nothing in a vfork(2) child. */
void profil_session_free(struct profil_session *session);

/* --- Files --- */

/*
 * Writes the counts as a CPU profile of gperftools, which google-pprof, `go tool pprof` and
 * profiltool read: each cell that is not 0 as a sample at the cell's first address, and the
 * mappings of the process: the current ones, or those at profil_attach() if another process has
 * ended.
 *
 * The file has the mode 0600 and appears as `path`, replacing another one, when it is complete.
 * Returns 0 or a negative errno: -EINVAL (`path` is NULL or ""), -ENOMEM, -EPERM (in a vfork(2)
 * child; `path` is a pipe of another user), -ENXIO (no process reads from that pipe), or what a
 * system call on a file failed with.
 */
int profil_write_gperftools(struct profil_session *session, const char *path);

/*
 * Adds the counts to the DCPI database in `directory`, which profiltool reads: dcpiformat(4). Each
 * image (ELF file, or memory without a file) that has counts gets one file,
 * DIRECTORY/EPOCH/HOST/FILE; if none has, there is one file without counts. The epoch is the minute
 * of profil_attach(). Each cell counts at its first address; the line "x-bucket" has the bytes of
 * code that a cell stands for.
 *
 * Missing directories are created with the mode 0700, files with 0600. The counts are added to
 * those of a file that exists, so write a session once. Either all files are written or none,
 * except that a process killed while they get their names leaves some with the old counts. Other
 * processes and threads may write to the same database at the same time.
 *
 * Returns 0 or a negative errno: -EOVERFLOW (an image has 2^32 ticks or more), -EINVAL (an existing
 * file is damaged or counts something else; `directory` is NULL or ""), -ENOMEM, -EPERM (in a
 * vfork(2) child), or what a system call on a file failed with.
 */
int profil_write_dcpi(struct profil_session *session, const char *directory);

/*
 * The same for a buffer of profil(), with the arguments of that call, while profiling is on or
 * after it. What was in the buffer before counts as well. The additional -EINVAL: profiling would
 * be off with these arguments.
 */
int profil_write_gperftools_buffer(const unsigned short *buffer, size_t bufsiz, size_t offset,
				   unsigned int scale, const char *path);
int profil_write_dcpi_buffer(const unsigned short *buffer, size_t bufsiz, size_t offset,
			     unsigned int scale, const char *directory);

#ifdef __cplusplus
}
#endif

#endif
