// SPDX-License-Identifier: GPL-2.0-only
#include "capture/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/proc.h"

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h; shown in /proc/PID/stat */

pid_t target_process_of(pid_t tid)
{
	struct proc_status status;

	return proc_read_status(AT_FDCWD, proc_path(tid, 0, "status").text, &status)
		       ? -ESRCH
		       : status.process;
}

/* A process is a zombie with threads if only its leader has ended. */
static bool has_ended(const struct proc_stat *fields, bool thread)
{
	return (fields->state == 'Z' || fields->state == 'X') && (thread || fields->threads <= 1);
}

int target_check(pid_t pid, bool thread, bool kernel_pcs, struct error *e)
{
	const char *kind = thread ? "thread" : "process";
	struct proc_stat fields;
	int err = proc_read_stat(pid, &fields);

	if (err) {
		error_set(e, err == -ESRCH ? 0 : -err, "cannot profile %s %d%s%s", kind, pid,
			  err == -ESRCH ? ": there is no such " : "", err == -ESRCH ? kind : "");
		error_hint(e, "list what runs with: ps -e%s", thread ? "L" : "");
		return err;
	}
	if (!thread && target_process_of(pid) != pid) {
		error_set(e, 0, "%d (%s) is not a process but a thread of process %d", pid,
			  fields.comm, target_process_of(pid));
		error_hint(e, "use -t %d for the thread alone, -p %d for its process", pid,
			   target_process_of(pid));
		return -EINVAL;
	}
	if (has_ended(&fields, thread)) {
		error_set(e, 0, "%s %d (%s) has ended already (it is a zombie)", kind, pid,
			  fields.comm);
		return -ESRCH;
	}
	if (fields.flags & PF_KTHREAD && !kernel_pcs) {
		error_set(e, 0,
			  "%d (%s) is a kernel thread: it has no program counter in user "
			  "space",
			  pid, fields.comm);
		error_hint(e, "add --kernel to count its program counters in the kernel");
		return -EINVAL;
	}
	return 0;
}

int target_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0); /* always close-on-exec */
}

bool target_lives(pid_t pid, bool thread)
{
	struct proc_stat fields;

	return proc_read_stat(pid, &fields) == 0 && !has_ended(&fields, thread);
}

uint64_t target_start_ns(pid_t pid)
{
	struct proc_stat fields;

	return proc_read_stat(pid, &fields) ? 0 : fields.start_ns;
}

static uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

/* Adds the children that a thread has started; those among the pids are known. */
static int add_children(pid_t pid, pid_t tid, const pid_t *pids, size_t pid_count,
			struct target_process **children, size_t *count, size_t *room)
{
	FILE *list = fopen(proc_path(pid, tid, "children").text, "re");
	int child, err = 0;

	while (list && !err && fscanf(list, "%d", &child) == 1) {
		bool known = false;

		for (size_t i = 0; i < pid_count && !known; i++)
			known = pids[i] == child;
		for (size_t i = 0; i < *count && !known; i++)
			known = (*children)[i].pid == child;
		if (known)
			continue;
		err = array_add(*children, *count, *room,
				(struct target_process){ child, target_start_ns(child),
							 process_cpu_ns(child) });
	}
	file_close_stream(list);
	return err;
}

int target_list_children(const pid_t *pids, size_t pid_count, struct target_process **children,
			 size_t *count)
{
	size_t room = 0;
	int err = 0;

	*children = NULL;
	*count = 0;
	/* Those that are found have children, too. */
	for (size_t i = 0; i < pid_count + *count && !err; i++) {
		pid_t pid = i < pid_count ? pids[i] : (*children)[i - pid_count].pid, *tids;
		struct error ignored;
		size_t thread_count;

		if (target_list_threads(pid, &tids, &thread_count, &ignored))
			continue;
		for (size_t j = 0; j < thread_count && !err; j++)
			err = add_children(pid, tids[j], pids, pid_count, children, count, &room);
		free(tids);
	}
	if (err) {
		free(*children);
		*children = NULL;
		*count = 0;
	}
	return err;
}

int target_list_of_user(uid_t uid, pid_t **pids, size_t *count)
{
	DIR *directory = opendir("/proc");
	struct stat status;
	size_t room = 0;
	pid_t pid;
	int err = directory ? 0 : -errno;

	*pids = NULL;
	*count = 0;
	while (!err && (pid = proc_next(directory))) {
		/* Unlike the files in it, the directory belongs to the effective user, always. */
		if (stat(proc_path(pid, 0, "").text, &status) || status.st_uid != uid)
			continue;
		err = array_add(*pids, *count, room, pid);
	}
	if (directory)
		closedir(directory);
	if (err)
		free(*pids);
	return err;
}

uint64_t target_used_since(const struct target_process *process)
{
	uint64_t now = process_cpu_ns(process->pid);

	return target_start_ns(process->pid) == process->start_ns && now > process->cpu_ns
		       ? now - process->cpu_ns
		       : 0;
}

int target_wait(pid_t tid, struct target_wait *wait)
{
	struct proc_stat fields;
	int err = proc_read_stat(tid, &fields);

	if (err)
		return err;
	wait->state = fields.state;
	/* "0": it runs, or we may not know */
	if (file_read_line(proc_path(tid, 0, "wchan").text, wait->where, sizeof(wait->where)) ||
	    strcmp(wait->where, "0") == 0)
		wait->where[0] = '\0';
	/* Cut the suffix that compilers add: ".constprop.0" */
	wait->where[strcspn(wait->where, ".")] = '\0';
	return 0;
}

uint64_t target_system_cpu_ns(void)
{
	uint64_t user, nice, system, irq, softirq;
	char line[512];

	/* cpu user nice system idle iowait irq softirq steal ...: proc(5) */
	if (file_read_line("/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64 " %" SCNu64,
		   &user, &nice, &system, &irq, &softirq) != 5)
		return 0;
	return (user + nice + system + irq + softirq) * (NS_PER_S / sysconf(_SC_CLK_TCK));
}

int target_list_threads(pid_t pid, pid_t **tids, size_t *count, struct error *e)
{
	DIR *directory = opendir(proc_path(pid, 0, "task").text);
	size_t room = 0;
	pid_t tid;
	int err = 0;

	*tids = NULL;
	*count = 0;
	if (!directory)
		return error_set(e, errno == ENOENT ? ESRCH : errno, "cannot read /proc/%d/task",
				 pid);
	while (!err && (tid = proc_next(directory)))
		if (array_add(*tids, *count, room, tid))
			err = error_no_memory(e);
	closedir(directory);
	if (err)
		free(*tids);
	return err;
}
