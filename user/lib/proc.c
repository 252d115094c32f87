// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "lib/last_error.h"

int profil__proc_check(pid_t pid)
{
	clockid_t clock;

	if (pid < 0)
		return profil__error(EINVAL, "%d is not a process ID", pid);
	if (!pid || clock_getcpuclockid(pid, &clock) == 0)
		return 0;
	if (kill(pid, 0) == 0 || errno == EPERM)
		return profil__error(ESRCH, "%d is the ID of a thread, not of a process", pid);
	return profil__error(ESRCH, "there is no process %d", pid);
}

void profil__proc_path(char path[static PROC_PATH_SIZE], pid_t pid, const char *name)
{
	if (pid)
		snprintf(path, PROC_PATH_SIZE, "/proc/%d/%s", pid, name);
	else
		snprintf(path, PROC_PATH_SIZE, "/proc/thread-self/%s", name);
}

int profil__proc_maps(struct bytes *text, pid_t pid)
{
	char path[PROC_PATH_SIZE];

	profil__proc_path(path, pid, "maps");
	return profil__bytes_read(text, path);
}
