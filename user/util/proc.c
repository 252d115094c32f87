// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"

struct proc_path proc_path(pid_t pid, pid_t tid, const char *name)
{
	struct proc_path path;

	if (pid == PROC_SELF)
		snprintf(path.text, sizeof(path.text), "/proc/self/%s", name);
	else if (tid)
		snprintf(path.text, sizeof(path.text), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path.text, sizeof(path.text), "/proc/%d/%s", pid, name);
	return path;
}

pid_t proc_next(DIR *directory)
{
	const struct dirent *entry;
	uint64_t number;

	while ((entry = readdir(directory)))
		if (number_parse(entry->d_name, 1, INT32_MAX, &number) == 0)
			return number;
	return 0;
}

int proc_read_stat(pid_t pid, struct proc_stat *stat)
{
	char text[1024], *open, *close;
	uint64_t ticks;
	/* Its own: in /proc/PID/stat the kernel adds up all threads of the process each time. */
	ssize_t size =
		file_read_text(AT_FDCWD, proc_path(pid, pid, "stat").text, text, sizeof(text));

	if (size < 0)
		return size == -ENOENT ? -ESRCH : size;
	/* The name is in parentheses, and may contain parentheses and newlines. */
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close ||
	    sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %u %*u"
		   " %" SCNu64,
		   &stat->state, &stat->parent, &stat->flags, &stat->threads, &ticks) != 5)
		return -EINVAL;
	*close = '\0';
	snprintf(stat->comm, sizeof(stat->comm), "%s", open + 1);
	stat->start_ns = ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
	return 0;
}

int proc_read_status(int directory, const char *path, struct proc_status *status)
{
	const struct {
		const char *name, *format;
		void *to;
	} fields[] = {
		{ "State:", " %c", &status->state },
		{ "Tgid:", "%d", &status->process },
		{ "Uid:", "%*u %u", &status->uid },
		{ "Gid:", "%*u %u", &status->gid },
		{ "VmHWM:", "%" SCNu64, &status->resident_most_kib },
		{ "VmRSS:", "%" SCNu64, &status->resident_kib },
		{ "SigCgt:", "%" SCNx64, &status->caught },
		{ "CapEff:", "%" SCNx64, &status->effective },
		{ "CapBnd:", "%" SCNx64, &status->bounding },
		{ "Seccomp:", "%u", &status->seccomp },
	};
	FILE *in = file_stream(openat(directory, path, O_RDONLY | O_CLOEXEC));
	char line[512];

	*status = (struct proc_status){ .uid = -1 };
	if (!in)
		return -errno;
	while (fgets(line, sizeof(line), in)) {
		/* "NSpid:\t12\t1": the PID in each namespace, the innermost last */
		const char *last = strrchr(line, '\t');

		if (last && strncmp(line, "NStgid:", strlen("NStgid:")) == 0)
			status->own_process = atoi(last);
		if (last && strncmp(line, "NSpid:", strlen("NSpid:")) == 0) {
			status->own_pid = atoi(last);
			for (const char *at = line; (at = strchr(at, '\t')); at++)
				status->pid_count++;
		}
		for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
			if (strncmp(line, fields[i].name, strlen(fields[i].name)) == 0)
				sscanf(line + strlen(fields[i].name), fields[i].format,
				       fields[i].to);
	}
	fclose(in);
	return status->process ? 0 : -ESRCH;
}

/* include/linux/proc_ns.h */
#define INITIAL_USER_NAMESPACE 0xEFFFFFFDU
#define INITIAL_PID_NAMESPACE  0xEFFFFFFCU

uint32_t proc_own_namespace(const char *name)
{
	struct stat status;

	if (stat(proc_path(PROC_SELF, 0, name).text, &status) ||
	    status.st_ino == INITIAL_USER_NAMESPACE || status.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	return status.st_ino;
}
