// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/threads.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The folder of the threads has a link for each, and the two that every folder has. */
unsigned int profil__thread_count(pid_t pid)
{
	char path[40] = "/proc/self/task";
	struct stat status;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &status) || status.st_nlink < 2 ? 0 : status.st_nlink - 2;
}

/* A thread that has ended has no memory any more. */
bool profil__first_thread_ended(void)
{
	char from = 0, to;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0;
}

bool profil__program_ended(unsigned int own)
{
	unsigned int count = profil__thread_count(0);

	return (!count || count == own + 1) && profil__first_thread_ended();
}
