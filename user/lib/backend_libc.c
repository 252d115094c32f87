// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* libc's own profil(), by signals: the last resort. */
#include "lib/backend.h"

#include <dlfcn.h>
#include <errno.h>

#include "lib/end_signals.h"
#include "lib/last_error.h"
#include "lib/session.h"

typedef int profil_function(unsigned short *, size_t, size_t, unsigned int);

static profil_function *profil_of_libc;

static void libc_prepare(void)
{
	void *found, *libc;

	if (__atomic_load_n(&profil_of_libc, __ATOMIC_ACQUIRE))
		return;
	found = dlsym(RTLD_NEXT, "profil");
	/* A preloaded library may need libprofil: then libc may come before libprofil. */
	libc = found ? NULL : dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (libc) {
		found = dlsym(libc, "profil");
		dlclose(libc);
	}
	__atomic_store_n(&profil_of_libc, (profil_function *)found, __ATOMIC_RELEASE);
}

static int libc_start(struct profil_session *s)
{
	const struct region *region = &s->plan.regions[0];

	if (!profil_of_libc)
		return profil__error(ENOTSUP, "libc has no profil()");
	if (s->trial)
		return 0;
	if (s->counts || s->plan.region_count != 1 || s->plan.wide || !region->scale)
		return profil__error(ENOTSUP, "libc's profil() has one region, 16-bit cells, and "
					      "no sessions");
	if (profil_of_libc((unsigned short *)region->buffer, region->bufsiz, region->offset,
			   region->scale))
		return profil__system_error("libc's profil()");
	s->no_ticks = true;
	return 0;
}

/*
 * libc's own way to stop has two races in a program of several threads. A signal that is pending
 * for a thread would end the program: see profil__end_signals(). And a handler in another thread
 * checks the number of cells before it reads the buffer's address: so the number becomes 0 while
 * the address is still valid, and only then the address becomes NULL.
 */
static void libc_stop(struct profil_session *s)
{
	const struct region *region = &s->plan.regions[0];

	if (s->trial)
		return;
	profil__end_signals();
	profil_of_libc((unsigned short *)region->buffer, 0, region->offset, region->scale);
	profil__end_signals();
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
