/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * libprofil: profil(2) for Linux, with counts made by the kernel. See profil(3), sprofil(3),
 * libprofil(3). Every function can be called from any thread at any time, but not from a signal
 * handler; none prints, exits, changes the locale or errno on success, or touches a signal.
 */
#ifndef PROFIL_H
#define PROFIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/profil.h> /* struct prof, sprofil() */

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __THROW
#define __THROW
#endif

/*
 * Counts, from now on, at each tick of CPU time (user and system, of every thread) the pc that the
 * program is at: the 16-bit cell (pc - offset) * scale / 2^17 of `buffer` goes up by one, modulo
 * 65536, when it lies in the buffer's `bufsiz` bytes entirely. Scale 0x10000 gives two bytes of
 * program a cell, 0x8000 four; 0x20000 one.
 *
 * buffer NULL, bufsiz 0, or scale 0 or 1 turns it off. A second call replaces the first. The buffer
 * stays the caller's and is never zeroed; while profiling is on it is at most 10 ms behind (never
 * with "kmod"), and exact after the call that turns it off. A buffer that cannot be written turns
 * it off.
 *
 * Returns 0, or -1 with errno set: ENOMEM (also for more than 2^27 cells), EAGAIN (no thread could
 * be made), EINVAL (PROFIL_HZ is not a rate, or one that is not allowed), ENOTSUP (the back end
 * that PROFIL_BACKEND asks for is not there, or none is), EPERM (in a vfork(2) child).
 */
int profil(unsigned short *buffer, size_t bufsiz, size_t offset, unsigned int scale) __THROW;

/*
 * What counts: "kmod", "bpf", "daemon" or "libc". Chosen at the first call of profil() or this,
 * once for the process; NULL when there is none. The string is static.
 */
const char *profil_backend(void);

/*
 * Why the last call in this thread of a function below, of profil() or of sprofil() failed: one
 * sentence, "" when none failed. It lives until the thread's next call.
 */
const char *profil_error(void);

/* --- Sessions: any number of histograms, about this process or another --- */

struct profil_session;

/* A run of code: the cells are those of a profil() call with a buffer of `bufsiz` bytes. */
struct profil_region {
	uint64_t offset; /* the address of the first cell */
	uint64_t bufsiz; /* bytes; 16-bit cells, so that the region has bufsiz / 2 */
	uint32_t scale;	 /* as profil()'s; 2 or more */
	uint32_t unused; /* 0 */
};

/*
 * Ticks since profil_attach(): ticks = in_range + out_of_range + lost. By the kernel's account of
 * CPU time cpu_ns / period_ns of them were due, chance apart: fewer were not counted, as while a
 * virtual machine stands still.
 */
struct profil_totals {
	uint64_t ticks;
	uint64_t in_range; /* the sum of all cells */
	uint64_t out_of_range;
	uint64_t lost;	    /* no memory for them, or due while profild was away */
	uint64_t period_ns; /* of CPU time between two ticks: not exactly 1/hz */
	uint64_t cpu_ns;    /* that the process has used meanwhile, all its threads */
};

/*
 * Begins to count for process `pid`, 0 for this one, at `hz` ticks per second of CPU time (0: the
 * rate of profil(), which is 100 or PROFIL_HZ). An address in several regions counts in the first
 * of them. `regions` (`count` of them, 1 to 512) need not outlive the call. This process's forked
 * children go on with a copy of a session about itself; counting ends at exec.
 *
 * The clock goes about at that rate, so that it is never in step with the kernel's: see period_ns.
 *
 * Another process takes the "bpf" back end, so the privileges for it. "kmod" counts for one session
 * or profil() at a time; others beside it get the next back end. *session is the caller's, to
 * profil_session_free().
 *
 * Returns 0 or a negative errno: -EINVAL (a region), -ESRCH, -EPERM, -ENOTSUP (no back end has a
 * session for it: "libc" has none), -ENOMEM.
 */
int profil_attach(struct profil_session **session, pid_t pid, const struct profil_region *regions,
		  size_t count, unsigned int hz);

/*
 * Copies the counts of a region so far to `counts`, of which there are `n`: cells beyond the
 * region's are left as they are, cells beyond n are not copied. Returns 0 or -EINVAL.
 */
int profil_read(struct profil_session *session, size_t region, uint64_t *counts, size_t n);

/* Returns 0. */
int profil_totals(struct profil_session *session, struct profil_totals *totals);

/* Stops counting. The counts are exact then, and stay readable. Returns 0 or a negative errno. */
int profil_detach(struct profil_session *session);

/* Stops counting if it goes on, and frees the session. NULL is allowed. */
void profil_session_free(struct profil_session *session);

/*
 * Writes the counts as a CPU profile of gperftools, which google-pprof, `go tool pprof` and
 * profiltool read: each cell that is not 0 at the address that it begins with, and the mappings of
 * the process (as they are now; of another one that ended, as profil_attach() found them). `path`
 * is written to a temporary name beside it, mode 0600, and renamed. Returns 0 or a negative errno.
 */
int profil_write_gperftools(struct profil_session *session, const char *path);

/*
 * Adds the counts to the DCPI database in `directory`, which profiltool reads, as dcpiformat(4) has
 * it: DIRECTORY/EPOCH/HOST/FILE, with a file for each image (ELF file, or memory without one) that
 * has counts, or one without counts when none has. What does not exist is made, files of mode 0600,
 * directories 0700. The epoch is the minute of profil_attach(). A file that is there becomes the
 * sum, so write a session once. All files are written or none; other writers of the database may
 * be at work. Cells count at the address that they begin with; the line "x-bucket" says how many
 * bytes they have.
 *
 * Returns 0 or a negative errno: -EOVERFLOW (an image has 2^32 or more), -EINVAL (a file that is
 * there is damaged or counts something else), what system calls on files say.
 */
int profil_write_dcpi(struct profil_session *session, const char *directory);

/*
 * The same for a buffer that profil() counted in, with the arguments that it got, whether it still
 * counts or was turned off. What the buffer had before counts as well. -EINVAL: profil() would be
 * off with these arguments.
 */
int profil_write_gperftools_buffer(const unsigned short *buffer, size_t bufsiz, size_t offset,
				   unsigned int scale, const char *path);
int profil_write_dcpi_buffer(const unsigned short *buffer, size_t bufsiz, size_t offset,
			     unsigned int scale, const char *directory);

#ifdef __cplusplus
}
#endif

#endif
