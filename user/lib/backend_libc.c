// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* libc's own profil(), by signals: where nothing else is there. */
#include "lib/backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/time.h>

#include "lib/last_error.h"
#include "lib/session.h"

typedef int profil_function(unsigned short *, size_t, size_t, unsigned int);

/* As one of libc's, wherever libprofil stands: what a preloaded library needs comes behind it. */
static void *find_in_libc(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), *found;

	if (!libc)
		return NULL;
	found = dlsym(libc, "profil");
	dlclose(libc);
	return found;
}

static profil_function *profil_of_libc;

/* Without the lock: the loader has one as well. */
static void libc_prepare(void)
{
	void *found = dlsym(RTLD_NEXT, "profil") ?: find_in_libc();

	__atomic_store_n(&profil_of_libc, (profil_function *)found, __ATOMIC_RELEASE);
}

/* It has one histogram, of one region, with 16-bit cells. */
static bool can_count(const struct profil_session *s)
{
	return !s->counts && s->plan.region_count == 1 && !s->plan.wide && s->plan.regions[0].scale;
}

static int libc_start(struct profil_session *s)
{
	const struct region *region = &s->plan.regions[0];

	if (!profil_of_libc)
		return profil__error(ENOTSUP, "libc has no profil()");
	if (s->trial)
		return 0;
	if (!can_count(s))
		return profil__error(ENOTSUP, "libc's profil() has one region, 16-bit cells, and "
					      "no sessions");
	if (profil_of_libc((unsigned short *)region->buffer, region->bufsiz, region->offset,
			   region->scale))
		return profil__system_error("libc's profil()");
	return 0;
}

/* No SIGPROF comes any more, and none that has come is there to end the program when it has no
 * handler: the kernel drops those when the signal is ignored. */
static void end_signals(void)
{
	static const struct itimerval never;
	static const struct sigaction ignore = { .sa_handler = SIG_IGN };

	setitimer(ITIMER_PROF, &never, NULL);
	sigaction(SIGPROF, &ignore, NULL);
}

/*
 * Two things that libc's own end leaves to luck in a program of several threads. A signal that
 * waits for its thread would end the program. A handler that runs in another thread looks whether
 * there is such a cell, then where the cells are: so they become none first, where they are, and
 * only then is their place forgotten.
 */
static void libc_stop(struct profil_session *s)
{
	const struct region *region = &s->plan.regions[0];

	if (s->trial)
		return;
	end_signals();
	profil_of_libc((unsigned short *)region->buffer, 0, region->offset, region->scale);
	end_signals();
	profil_of_libc(NULL, 0, 0, 0);
}

const struct backend profil__backend_libc = {
	.name = "libc",
	.direct = true,
	.hz = 100,
	.prepare = libc_prepare,
	.start = libc_start,
	.stop = libc_stop,
};
