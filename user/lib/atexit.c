// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Replaces __cxa_atexit(), by which atexit(3) and C++ register exit handlers, so that the counts
 * are up to date in each of them, whichever thread calls exit(3). Not in a static program, where
 * libc's cannot be replaced.
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
	/* Handlers run in the reverse order: ours before theirs. */
	if (!err && profil__was_used())
		in_libc(profil__update_at_exit, NULL, &__dso_handle);
	return err;
}
