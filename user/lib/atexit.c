// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What atexit(3) and C++ call to have a function called at exit, in front of libc's: so that the
 * counts are up to date in each such function, whichever thread exits. Not in a static program,
 * where libc's cannot be replaced.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "lib/export.h"
#include "lib/state.h"

typedef int registration(void (*function)(void *), void *argument, void *dso);

extern void *__dso_handle;

registration __cxa_atexit;

EXPORT int __cxa_atexit(void (*function)(void *), void *argument, void *dso)
{
	static registration *in_libc;
	int err;

	if (!in_libc)
		in_libc = (registration *)dlsym(RTLD_NEXT, "__cxa_atexit");
	if (!in_libc)
		return -1;
	err = in_libc(function, argument, dso);
	/* The last to be registered is the first to be called. */
	if (!err && profil__was_used())
		in_libc(profil__fold_at_exit, NULL, &__dso_handle);
	return err;
}
