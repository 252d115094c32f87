// SPDX-License-Identifier: GPL-2.0-only
#include "capture/target.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h; shown in /proc/PID/stat */

/* Fields of /proc/PID/stat, see proc(5). */
struct stat_fields {
	char comm[32];
	char state;
	unsigned int flags;
	unsigned int threads;
	uint64_t start_ticks;
};

pid_t target_process_of(pid_t tid)
{
	char path[64], line[256];
	pid_t pid = -ESRCH;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	status = fopen(path, "re");
	if (!status)
		return -ESRCH;
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	fclose(status);
	return pid;
}

size_t target_pid_numbers(pid_t pid, pid_t tid, uint64_t *innermost)
{
	char path[64], line[512], *rest, *word;
	size_t count = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (!count && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
			continue;
		rest = line + strlen("NSpid:");
		while ((word = strsep(&rest, "\t\n")))
			count += number_parse(word, 1, INT32_MAX, innermost) == 0;
	}
	fclose(status);
	return count;
}

/* Reads the stat file of a process, or of one thread. Returns 0 or a negative errno. */
static int read_stat(pid_t id, bool thread, struct stat_fields *fields)
{
	char path[64], line[1024], *open, *close;
	pid_t pid = thread ? target_process_of(id) : id;
	int err;

	if (pid < 0)
		return pid;
	if (thread)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, id);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	err = file_read_line(path, line, sizeof(line));
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	/* The name is in parentheses, and may contain parentheses. */
	open = strchr(line, '(');
	close = strrchr(line, ')');
	if (!open || !close ||
	    sscanf(close + 1,
		   " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %u %*u"
		   " %" SCNu64,
		   &fields->state, &fields->flags, &fields->threads, &fields->start_ticks) != 4)
		return -EINVAL;
	*close = '\0';
	snprintf(fields->comm, sizeof(fields->comm), "%s", open + 1);
	return 0;
}

/* A process is a zombie with threads if only its leader has ended. */
static bool has_ended(const struct stat_fields *fields, bool thread)
{
	return (fields->state == 'Z' || fields->state == 'X') && (thread || fields->threads <= 1);
}

int target_check(pid_t pid, bool thread, bool kernel_pcs, struct error *e)
{
	const char *kind = thread ? "thread" : "process";
	struct stat_fields fields;
	int err = read_stat(pid, thread, &fields);

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
	struct stat_fields fields;

	return read_stat(pid, thread, &fields) == 0 && !has_ended(&fields, thread);
}

uint64_t target_start_ns(pid_t pid)
{
	struct stat_fields fields;

	if (read_stat(pid, false, &fields))
		return 0;
	return fields.start_ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
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
	char path[64];
	int child, err = 0;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	list = fopen(path, "re");
	while (list && !err && fscanf(list, "%d", &child) == 1) {
		bool known = false;

		for (size_t i = 0; i < pid_count && !known; i++)
			known = pids[i] == child;
		for (size_t i = 0; i < *count && !known; i++)
			known = (*children)[i].pid == child;
		if (known)
			continue;
		err = array_reserve(children, room, *count + 1, sizeof(**children));
		if (!err)
			(*children)[(*count)++] =
				(struct target_process){ child, target_start_ns(child),
							 process_cpu_ns(child) };
	}
	if (list)
		fclose(list);
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
	struct dirent *entry;
	struct stat status;
	size_t room = 0;
	uint64_t pid;
	int err = directory ? 0 : -errno;

	*pids = NULL;
	*count = 0;
	while (!err && (entry = readdir(directory))) {
		/* Unlike the files in it, the directory belongs to the effective user, always. */
		if (number_parse(entry->d_name, 1, INT32_MAX, &pid) ||
		    fstatat(dirfd(directory), entry->d_name, &status, 0) || status.st_uid != uid)
			continue;
		err = array_reserve(pids, &room, *count + 1, sizeof(**pids));
		if (!err)
			(*pids)[(*count)++] = pid;
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
	struct stat_fields fields;
	char path[64];
	int err = read_stat(tid, true, &fields);

	if (err)
		return err;
	wait->state = fields.state;
	snprintf(path, sizeof(path), "/proc/%d/wchan", tid);
	/* "0": it runs, or we may not know */
	if (file_read_line(path, wait->where, sizeof(wait->where)) || strcmp(wait->where, "0") == 0)
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
	size_t room = 0;
	char path[64];
	struct dirent *entry;
	DIR *directory;
	uint64_t tid;
	int err = 0;

	*tids = NULL;
	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	if (!directory)
		return error_set(e, errno == ENOENT ? ESRCH : errno, "cannot read %s", path);
	while (!err && (entry = readdir(directory))) {
		if (number_parse(entry->d_name, 1, INT32_MAX, &tid))
			continue;
		if (array_reserve(tids, &room, *count + 1, sizeof(**tids)))
			err = error_no_memory(e);
		else
			(*tids)[(*count)++] = tid;
	}
	closedir(directory);
	if (err)
		free(*tids);
	return err;
}
