// SPDX-License-Identifier: GPL-2.0-only
#include "capture/events.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "capture/cpus.h"
#include "capture/perf_event.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"
#include "util/order.h"

/* The longest time over which the clocks of CPUs are enabled: a period of 10 Hz. Bound: pace. */
#define PHASE_NS_MAX (100 * NS_PER_MS)

#define SAMPLE_RATE_SYSCTL "kernel.perf_event_max_sample_rate"

const char *const capture_event_names[] = {
#define COUNTED_NAME(number, name, type, config) , [CAPTURE_##number] = (name)
	[CAPTURE_AUTO] = "auto",
	[CAPTURE_CPU_CLOCK] = "cpu-clock",
	[CAPTURE_CYCLES] = "cycles",
	[CAPTURE_TICK] = "tick" CAPTURE_COUNTED_LIST(COUNTED_NAME),
#undef COUNTED_NAME
};

/* By the number of the event; clocks have none. */
static const struct {
	uint32_t type;
	uint64_t config;
} counted[CAPTURE_EVENTS] = {
#define COUNTED_EVENT(number, name, type, config) [CAPTURE_##number] = { type, config },
	CAPTURE_COUNTED_LIST(COUNTED_EVENT)
#undef COUNTED_EVENT
};

/* The scheduler's period is divided into up to this many parts. Bound: size. */
#define PARTS_MAX 64

/* The least number of ticks in which all parts must be met. */
#define TICKS_MIN 256

static bool meets_all(uint64_t period, uint64_t tick_ns, unsigned int ticks)
{
	/* Of more parts, even random ticks would often miss one. */
	unsigned int parts = MIN(ticks / 6, PARTS_MAX), met = 0;
	bool seen[PARTS_MAX];
	uint64_t phase = 0;

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < ticks && met < parts; i++) {
		unsigned int part = phase * parts / tick_ns;

		met += !seen[part];
		seen[part] = true;
		phase = (phase + period) % tick_ns;
	}
	return met == parts;
}

uint64_t period_choose(unsigned int frequency, uint64_t tick_ns)
{
	uint64_t nominal = NS_PER_S / frequency, max_shift = nominal / 200;
	unsigned int ticks = MAX(frequency, TICKS_MIN);

	if (!tick_ns)
		return nominal;
	/* Steps of 0.005 %; 20011 is a prime. */
	for (uint64_t i = 0, step = nominal / 20011 ?: 1; i * step <= max_shift; i++) {
		if (meets_all(nominal + i * step, tick_ns, ticks))
			return nominal + i * step;
		if (meets_all(nominal - i * step, tick_ns, ticks))
			return nominal - i * step;
	}
	return nominal;
}

uint64_t events_tick_ns(void)
{
	return clock_resolution_ns(CLOCK_MONOTONIC_COARSE); /* this clock advances at each tick */
}

#define TRACEFS "/sys/kernel/tracing"

int events_open_tracefs(struct error *e)
{
	int type = -1, fd = -1, err;

	if (access(TRACEFS "/events", F_OK) == 0) {
		fd = open(TRACEFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} else {
		/* It is not mounted: a mount that has no place, and goes with its descriptor. */
		type = fsopen("tracefs", FSOPEN_CLOEXEC);
		if (type >= 0 && fsconfig(type, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
			fd = fsmount(type, FSMOUNT_CLOEXEC, 0);
	}
	if (fd < 0) {
		err = error_set(e, errno, "cannot look for tracepoints in " TRACEFS);
		error_hint(e, "as root: mount -t tracefs tracefs " TRACEFS);
	}
	file_close(type);
	return fd < 0 ? err : fd;
}

/* Sets what of *attr chooses the tracepoint. Returns 0 or a negative errno. */
static int find_tracepoint(const char *name, struct perf_event_attr *attr, struct error *e)
{
	const char *colon = strchr(name, ':');
	char path[256], text[32];
	uint64_t number;
	int tracefs = events_open_tracefs(e), size, err = -ENOENT;

	if (tracefs < 0)
		return tracefs;
	size = snprintf(path, sizeof(path), "/proc/self/fd/%d/events/%.*s/%s/id", tracefs,
			(int)(colon - name), name, colon + 1);
	if (!strchr(name, '/') && size < (int)sizeof(path))
		err = file_read_line(path, text, sizeof(text));
	close(tracefs);
	if (!err && number_parse(text, 0, UINT32_MAX, &number) == 0) {
		attr->config = number;
		return 0;
	}
	if (err != -ENOENT)
		return error_set(e, -err, "cannot read the number of the tracepoint \"%s\"", name);
	error_set(e, 0, "this kernel has no tracepoint \"%s\"", name);
	return error_hint(e, "profiltool record -e list prints all that there are");
}

int events_prepare(struct event_set *set, enum capture_event event,
		   const struct capture_point *point, unsigned int frequency, struct error *e)
{
	char text[32];
	uint64_t limit;

	if (!capture_is_clock(event)) {
		if (frequency)
			return error_set(e, 0,
					 "events are counted one by one: they have no frequency");
		set->kind = event;
		set->point = point;
		set->attr = (struct perf_event_attr){
			.size = sizeof(set->attr),
			.sample_period = 1,
			.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		};
		if (point && point->file >= 0)
			return perf_event_uprobe(&set->attr, point->offset, e);
		if (point) {
			set->attr.type = PERF_TYPE_TRACEPOINT;
			return find_tracepoint(point->name, &set->attr, e);
		}
		set->attr.type = counted[event].type;
		set->attr.config = counted[event].config;
		return 0;
	}
	if (file_read_line("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof(text)) ==
		    0 &&
	    number_parse(text, 0, UINT64_MAX, &limit) == 0 && frequency > limit) {
		error_set(e, 0, "a frequency of %u Hz is above the kernel's limit of %llu Hz (%s)",
			  frequency, (unsigned long long)limit, SAMPLE_RATE_SYSCTL);
		error_hint(e, "sysctl %s=%u", SAMPLE_RATE_SYSCTL, frequency);
		return -EINVAL;
	}
	if (event != CAPTURE_CPU_CLOCK &&
	    perf_event_try(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES) == 0) {
		event = CAPTURE_CYCLES;
	} else if (event == CAPTURE_CYCLES) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "cannot count cycles: this machine has no performance counters");
		error_hint(e, "use -e auto: it takes the best clock there is");
		return -EOPNOTSUPP;
	}
	set->kind = event == CAPTURE_CYCLES ? CAPTURE_CYCLES : CAPTURE_CPU_CLOCK;
	set->attr = (struct perf_event_attr){
		.size = sizeof(set->attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.disabled = 1,
		.exclude_idle = 1,
	};
	if (event == CAPTURE_CYCLES) {
		set->attr.exclude_idle = 0; /* x86 ignores it, and arm64 refuses it */
		set->attr.type = PERF_TYPE_HARDWARE;
		set->attr.config = PERF_COUNT_HW_CPU_CYCLES;
		set->attr.freq = 1;
		set->attr.sample_freq = frequency;
		set->attr.exclude_guest = 1;
		set->tick_ns = NS_PER_S / frequency;
	} else {
		set->tick_ns = period_choose(frequency, events_tick_ns());
		set->attr.sample_period = set->tick_ns;
	}
	set->phase_ns = MIN(set->tick_ns, PHASE_NS_MAX);
	return 0;
}

struct cpu_context {
	struct event_set *set;
	const struct members *members;
	int program_fd;
	struct error *e;
};

static int open_cpu(int cpu, void *context)
{
	struct cpu_context *c = context;
	struct event_set *set = c->set;
	struct event event = { .cpu = cpu };
	char what[32], path[32];

	for (size_t i = 0; i < set->count; i++)
		if (set->events[i].cpu == cpu || set->point)
			return 0;
	if (c->members && !set->point && !members_may_run_on(c->members, cpu)) {
		set->incomplete = true;
		return 0;
	}
	snprintf(what, sizeof(what), "CPU %d", cpu);
	if (array_reserve(&set->events, &set->room, set->count + 1, sizeof(*set->events)))
		return error_no_memory(c->e);
	if (set->point && set->point->file >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", set->point->file);
		set->attr.uprobe_path = (uintptr_t)path;
	}
	event.fd = perf_event_open(&set->attr, -1, cpu);
	if (event.fd == -ENODEV)
		return 0; /* the CPU has just gone offline */
	if (event.fd < 0)
		return perf_event_error(c->e, -event.fd, what);
	if (ioctl(event.fd, PERF_EVENT_IOC_SET_BPF, c->program_fd)) {
		int err = error_set(c->e, errno, "cannot attach the BPF program to the event of %s",
				    what);

		close(event.fd);
		return err;
	}
	set->events[set->count++] = event;
	return 0;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec due = { ns / NS_PER_S, ns % NS_PER_S };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

/*
 * Enables each CPU at a random moment of a period (of phase_ns) that ends when this returns. The
 * first tick comes a period after that moment, so what begins then is interrupted as early and as
 * late as later: a stretch of half a period is hit in half of the cases. Each CPU gets another
 * moment, else all would access the shared tables at once.
 */
static int enable_clocks(struct event_set *set, size_t first, struct error *e)
{
	uint64_t start_ns = now_ns(),
		 random = start_ns * 0x9e3779b97f4a7c15; /* Fibonacci hashing */
	size_t count = set->count - first;

	for (size_t i = 0; i < count; i++) {
		size_t at = first + (i + (random & 0xffff)) % count;

		sleep_until(start_ns + set->phase_ns * i / count +
			    set->phase_ns / count * (random >> 48) / 65536);
		if (ioctl(set->events[at].fd, PERF_EVENT_IOC_ENABLE, 0))
			return error_set(e, errno, "cannot enable the clock of CPU %d",
					 set->events[at].cpu);
	}
	set->begin_ns = start_ns;
	if (count) {
		set->begin_ns += set->phase_ns;
		sleep_until(set->begin_ns);
	}
	return 0;
}

int events_open(struct event_set *set, const struct members *members, int program_fd,
		struct error *e)
{
	struct cpu_context context = { set, members, program_fd, e };
	struct error why;
	size_t first = 0;
	int err, enable_err;

	/* The events of CPUs that went offline are dead; but the program at a point still runs. */
	for (size_t i = 0; i < set->count; i++)
		if (!set->point &&
		    perf_event_is_dead(set->events[i].fd, &set->events[i].enabled_ns))
			close(set->events[i].fd);
		else
			set->events[first++] = set->events[i];
	set->count = first;
	set->incomplete = false;
	err = cpus_each_online(open_cpu, &context, e);
	enable_err = enable_clocks(set, first, err ? &why : e); /* even if another failed */
	return err ?: enable_err;
}

void events_stop(struct event_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		file_close(set->events[i].fd);
		set->events[i].fd = -1;
	}
}

void events_close(struct event_set *set)
{
	events_stop(set);
	free(set->events);
	set->events = NULL;
	set->count = set->room = 0;
}

/* --- What a tick costs --- */

/* Bound: pace. */
#define COST_PERIOD_NS 100000
#define COST_GAPS      32	/* enough for a median */
#define COST_LIMIT_NS  30000000 /* on a busy machine, other tasks run meanwhile */
/* Two reads of the clock take some 50 ns, every interrupt takes longer than this. Bound: pace. */
#define COST_SHORTEST_NS 400
#define COST_AGAIN_NS	 (3600 * NS_PER_S)

ORDER(ascending, uint64_t, COMPARE(*a, *b))

void tick_cost_update(struct tick_cost *cost, uint64_t now)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = COST_PERIOD_NS,
	};
	uint64_t gaps[COST_GAPS], start, before;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t count = 0;
	int fd;

	if (cost->ns && cpus == cost->cpus && now < cost->next_ns)
		return;
	fd = perf_event_open(&attr, -1, sched_getcpu());
	start = before = now_ns();
	while (fd >= 0 && count < COST_GAPS && before - start < COST_LIMIT_NS) {
		uint64_t at = now_ns();

		if (at - before > COST_SHORTEST_NS)
			gaps[count++] = at - before;
		before = at;
	}
	file_close(fd);
	/* The median: other interrupts and other tasks cause gaps too, but few. */
	qsort(gaps, count, sizeof(*gaps), ascending);
	if (count >= COST_GAPS / 4)
		cost->ns = gaps[count / 2];
	cost->cpus = cpus;
	cost->next_ns = now + COST_AGAIN_NS;
}
