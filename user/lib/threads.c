// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/threads.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* By the link count of the directory that has a directory for each thread. 0: unknown. */
static unsigned int thread_count(void)
{
	struct stat status;

	return stat("/proc/self/task", &status) || status.st_nlink < 2 ? 0 : status.st_nlink - 2;
}

static enum first_thread reported;

void profil__set_first_thread(enum first_thread first)
{
	__atomic_store_n(&reported, first, __ATOMIC_RELAXED);
}

/* The kernel releases the memory of a thread that ends. */
static bool first_thread_has_no_memory(void)
{
	char from = 0, to;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0;
}

bool profil__first_thread_ended(void)
{
	enum first_thread first = __atomic_load_n(&reported, __ATOMIC_RELAXED);

	if (first == FIRST_THREAD_UNWATCHED)
		return first_thread_has_no_memory();
	return first == FIRST_THREAD_ENDS;
}

bool profil__program_ended(unsigned int own)
{
	unsigned int count = thread_count();

	return (!count || count == own + 1) && profil__first_thread_ended();
}
