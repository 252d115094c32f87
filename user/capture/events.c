// SPDX-License-Identifier: GPL-2.0-only
#include "capture/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "capture/cpus.h"
#include "capture/pid_numbers.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"

#define SAMPLE_RATE_SYSCTL "kernel.perf_event_max_sample_rate"

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
	int fd = perf_event_open(&attr, 0, -1);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool events_are_of_cpus(const struct capture_options *options)
{
	return options->target == CAPTURE_SYSTEM || options->target == CAPTURE_CGROUP;
}

static enum capture_event choose_event(const struct capture_options *options)
{
	if (options->event != CAPTURE_AUTO)
		return options->event;
	if (have_cycles())
		return CAPTURE_CYCLES;
	return events_are_of_cpus(options) ? CAPTURE_CPU_CLOCK : CAPTURE_TASK_CLOCK;
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
	if (events_are_of_cpus(options) && event == CAPTURE_TASK_CLOCK) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "task-clock is the clock of one task: it "
			       "cannot sample a CPU");
		error_mend(e, "use -e cpu-clock with -a and --cgroup");
		return -EINVAL;
	}
	set->attr = (struct perf_event_attr){
		.size = sizeof(set->attr),
		.type = PERF_TYPE_SOFTWARE,
		.disabled = 1,
		.inherit = tasks,
		.inherit_thread = tasks && !options->inherit,
		.enable_on_exec = options->target == CAPTURE_COMMAND,
		.remove_on_exec = options->scale != 0, /* the histogram is of one program */
		.exclude_idle = 1,
	};
	if (options->target == CAPTURE_CGROUP) /* it is enabled while the group runs */
		set->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
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

int events_prepare_threads(struct event_set *set, unsigned int frequency, struct error *e)
{
	set->attr = (struct perf_event_attr){
		.size = sizeof(set->attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = NS_PER_S / frequency,
		.disabled = 1,
		.inherit = 1,
		.inherit_thread = 1,
		.remove_on_exec = 1,
	};
	return check_sample_rate(frequency, e);
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

/*
 * The event is on the thread that had the number when it was opened. When a thread of the process
 * has the number now, that is this one, or the other has ended since. (Or it has executed a program
 * and become its process's first thread: no event of a histogram outlives that.)
 */
static int attach(int fd, int program_fd, bool enable, pid_t pid, pid_t tid)
{
	if (pid && !pid_has_thread(pid, tid))
		return -ESRCH;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd))
		return -errno;
	if (enable && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	return 0;
}

/* For the thread, or with tid -1 for the CPU: for the group on it, unless that is NULL. */
static int open_one(struct event_set *set, pid_t pid, pid_t tid, int cpu,
		    const struct cgroup *group, struct program *program, unsigned int generation,
		    struct error *e)
{
	struct event event = { .tid = tid, .generation = generation };
	int err, program_number = program_fd(program, generation, e);
	char what[32];

	if (program_number < 0)
		return program_number;
	if (cpu < 0)
		snprintf(what, sizeof(what), "thread %d", tid);
	else
		snprintf(what, sizeof(what), "CPU %d", cpu);
	if (array_reserve(&set->events, &set->room, set->count + 1, sizeof(*set->events)))
		return error_no_memory(e);
	if (set->attr.inherit)
		apart_add(&set->apart, tid);
	event.fd = group ? cgroup_open_event(group, &set->attr, cpu, e)
			 : perf_event_open(&set->attr, tid, cpu);
	if (event.fd < 0)
		return group ? event.fd : perf_event_error(e, -event.fd, what);
	err = attach(event.fd, program_number, !set->attr.enable_on_exec, pid, tid);
	if (err) {
		close(event.fd);
		apart_remove(&set->apart, tid);
		return error_set(e, -err, "cannot attach the BPF program to the event of %s", what);
	}
	set->events[set->count++] = event;
	return 0;
}

int events_open_thread(struct event_set *set, pid_t pid, pid_t tid, struct program *program,
		       unsigned int generation, struct error *e)
{
	return open_one(set, pid, tid, -1, NULL, program, generation, e);
}

struct cpu_context {
	struct event_set *set;
	const struct cgroup *group;
	struct program *program;
	struct error *e;
};

static int open_cpu(int cpu, void *context)
{
	struct cpu_context *c = context;
	int err = open_one(c->set, 0, -1, cpu, c->group, c->program, 0, c->e);

	return err == -ENODEV ? 0 : err; /* it went offline just now */
}

int events_open_cpus(struct event_set *set, const struct cgroup *group, struct program *program,
		     struct error *e)
{
	struct cpu_context context = { set, group, program, e };

	return cpus_each_online(open_cpu, &context, e);
}

/*
 * To disable an event reaches those inherited from it, but not one of a thread that is being made
 * just now; to close it does. Counts are read in between, before they are gone.
 */
void events_stop(struct event_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		ioctl(set->events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	for (size_t i = 0; i < set->count; i++) {
		struct event *event = &set->events[i];
		uint64_t values[2] = { 0 }; /* as attr.read_format asks: one, or two */

		if (read(event->fd, values, sizeof(values)) > 0) {
			event->count = values[0];
			event->group_ns = values[1];
		}
		close(event->fd);
		event->fd = -1;
	}
}

uint64_t events_group_ns(const struct event_set *set)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < set->count; i++)
		sum += set->events[i].group_ns;
	return sum;
}

void events_close(struct event_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->events[i].fd >= 0)
			close(set->events[i].fd);
	free(set->events);
	apart_free(&set->apart);
	set->apart = (struct apart){ 0 };
	set->events = NULL;
	set->count = set->room = 0;
}
