// SPDX-License-Identifier: GPL-2.0-only
#include "capture/events.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/cpus.h"
#include "capture/privilege.h"
#include "util/array.h"
#include "util/file.h"
#include "util/number.h"

#define NS_PER_S 1000000000ULL

#define SAMPLE_RATE_SYSCTL "kernel.perf_event_max_sample_rate"

int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu, int flags)
{
	int fd =
		syscall(SYS_perf_event_open, attr, tid, cpu, -1, flags | (int)PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int perf_event_error(struct error *e, int code, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot open a perf event for %s", what);
	if (code == EACCES || code == EPERM)
		return privilege_error(e, code, text);
	if (code == ENOENT || code == EOPNOTSUPP || code == EINVAL || code == ENOSYS)
		return error_set_kind(e, ERROR_KERNEL_LACKS, code, "%s", text);
	error_set(e, code, "%s", text);
	if (code == EMFILE)
		error_mend(e, "raise the limit of open files: ulimit -n 65536");
	return -code;
}

static int check_sample_rate(unsigned int frequency, struct error *e)
{
	char text[32];
	uint64_t limit;

	if (file_read_line("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof(text)) ||
	    number_parse(text, 0, UINT64_MAX, &limit) || frequency <= limit)
		return 0;
	error_set(e, 0, "a frequency of %u Hz is above the kernel's limit of %llu Hz (%s)",
		  frequency, (unsigned long long)limit, SAMPLE_RATE_SYSCTL);
	error_mend(e, "sysctl %s=%u", SAMPLE_RATE_SYSCTL, frequency);
	return -EINVAL;
}

static bool have_cycles(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = 1000000,
		.disabled = 1,
	};
	int fd = perf_event_open(&attr, 0, -1, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static enum capture_event choose_event(const struct capture_options *options)
{
	if (options->event != CAPTURE_AUTO)
		return options->event;
	if (have_cycles())
		return CAPTURE_CYCLES;
	return options->target == CAPTURE_SYSTEM ? CAPTURE_CPU_CLOCK : CAPTURE_TASK_CLOCK;
}

int events_prepare(struct event_set *set, const struct capture_options *options, struct error *e)
{
	bool tasks = options->target == CAPTURE_PROCESSES || options->target == CAPTURE_COMMAND;
	enum capture_event event = choose_event(options);

	if (check_sample_rate(options->frequency, e))
		return -EINVAL;
	if (event == CAPTURE_CYCLES && !have_cycles()) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "cannot count cycles: this machine has no performance counters");
		error_mend(e, "use -e auto: it takes the best clock there is");
		return -EOPNOTSUPP;
	}
	if (options->target == CAPTURE_SYSTEM && event == CAPTURE_TASK_CLOCK) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "task-clock is the clock of one task: it "
			       "cannot sample a CPU");
		error_mend(e, "use -e cpu-clock with -a");
		return -EINVAL;
	}
	set->attr = (struct perf_event_attr){
		.size = sizeof(set->attr),
		.type = PERF_TYPE_SOFTWARE,
		.disabled = 1,
		.inherit = tasks,
		.inherit_thread = tasks && !options->inherit,
		.enable_on_exec = options->target == CAPTURE_COMMAND,
		.exclude_idle = 1,
	};
	if (event == CAPTURE_CYCLES) {
		set->attr.type = PERF_TYPE_HARDWARE;
		set->attr.config = PERF_COUNT_HW_CPU_CYCLES;
		set->attr.freq = 1;
		set->attr.sample_freq = options->frequency;
		set->attr.exclude_guest = 1;
		return 0;
	}
	set->attr.config =
		event == CAPTURE_TASK_CLOCK ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_CPU_CLOCK;
	set->attr.sample_period = NS_PER_S / options->frequency;
	return 0;
}

const char *events_name(const struct event_set *set)
{
	if (set->attr.type == PERF_TYPE_HARDWARE)
		return "cycles";
	return set->attr.config == PERF_COUNT_SW_TASK_CLOCK ? "task-clock" : "cpu-clock";
}

bool events_count_time(const struct event_set *set)
{
	return set->attr.type == PERF_TYPE_SOFTWARE;
}

static int attach(int fd, int program_fd, bool enable)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd))
		return -errno;
	if (enable && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	return 0;
}

static int open_one(struct event_set *set, pid_t tid, int cpu, int program_fd, bool late,
		    const char *what, struct error *e)
{
	int fd, err;

	if (array_reserve(&set->events, &set->room, set->count + 1, sizeof(*set->events)))
		return error_no_memory(e);
	fd = perf_event_open(&set->attr, tid, cpu, 0);
	if (fd < 0)
		return perf_event_error(e, -fd, what);
	err = attach(fd, program_fd, !set->attr.enable_on_exec);
	if (err) {
		close(fd);
		return error_set(e, -err, "cannot attach the BPF program to the event of %s", what);
	}
	set->events[set->count++] = (struct event){ .fd = fd, .tid = cpu < 0 ? tid : 0, late };
	return 0;
}

static int open_task(struct event_set *set, pid_t tid, const struct event_programs *programs,
		     bool late, struct error *e)
{
	char what[32];

	snprintf(what, sizeof(what), "thread %d", tid);
	return open_one(set, tid, -1, late ? programs->late_fd : programs->sample_fd, late, what,
			e);
}

int events_open_thread(struct event_set *set, pid_t tid, const struct event_programs *programs,
		       struct error *e)
{
	return open_task(set, tid, programs, false, e);
}

static bool is_open(const struct event_set *set, pid_t tid)
{
	/* New threads have high numbers and are appended: the last is the likeliest. */
	for (size_t i = set->count; i-- > 0;)
		if (set->events[i].tid == tid)
			return true;
	return false;
}

struct thread_list {
	pid_t *tids;
	size_t count, room;
};

/* Appends the threads of a process that have no event yet. A process that ended has none. */
static int list_threads(struct thread_list *list, const struct event_set *set, pid_t pid,
			struct error *e)
{
	char path[64];
	struct dirent *entry;
	uint64_t tid;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	if (!directory)
		return errno == ENOENT ? 0 : error_set(e, errno, "cannot read %s", path);
	while ((entry = readdir(directory))) {
		if (number_parse(entry->d_name, 1, INT32_MAX, &tid) || is_open(set, tid))
			continue;
		if (array_reserve(&list->tids, &list->room, list->count + 1, sizeof(pid_t))) {
			closedir(directory);
			return error_no_memory(e);
		}
		list->tids[list->count++] = tid;
	}
	closedir(directory);
	return 0;
}

/* Opens events for the threads found in one look. Their number goes to *opened. */
static int open_new_threads(struct event_set *set, const pid_t *pids, size_t pid_count,
			    const struct event_programs *programs, bool late, size_t *opened,
			    struct error *e)
{
	struct thread_list list = { 0 };
	int err = 0;

	*opened = 0;
	for (size_t i = 0; i < pid_count && !err; i++)
		err = list_threads(&list, set, pids[i], e);
	for (size_t i = 0; i < list.count && !err; i++) {
		err = open_task(set, list.tids[i], programs, late, e);
		if (err == -ESRCH)
			err = 0; /* it ended between the look and the call */
		else
			(*opened)++;
	}
	free(list.tids);
	return err;
}

int events_open_processes(struct event_set *set, const pid_t *pids, size_t pid_count,
			  const struct event_programs *programs, struct error *e)
{
	size_t opened;
	int err = open_new_threads(set, pids, pid_count, programs, false, &opened, e);

	while (!err && opened)
		err = open_new_threads(set, pids, pid_count, programs, true, &opened, e);
	return err;
}

struct cpu_context {
	struct event_set *set;
	const struct event_programs *programs;
	struct error *e;
};

static int open_cpu(int cpu, void *context)
{
	struct cpu_context *c = context;
	char what[32];
	int err;

	snprintf(what, sizeof(what), "CPU %d", cpu);
	err = open_one(c->set, -1, cpu, c->programs->sample_fd, false, what, c->e);
	return err == -ENODEV ? 0 : err; /* it went offline just now */
}

int events_open_cpus(struct event_set *set, const struct event_programs *programs, struct error *e)
{
	struct cpu_context context = { set, programs, e };

	return cpus_each_online(open_cpu, &context, e);
}

void events_disable(struct event_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		ioctl(set->events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t events_read(const struct event *event)
{
	uint64_t count;

	return read(event->fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

void events_close(struct event_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		close(set->events[i].fd);
	free(set->events);
	set->events = NULL;
	set->count = set->room = 0;
}
