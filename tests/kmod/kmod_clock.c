// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clock of /dev/profil: ticks times the period must be the CPU time that the kernel accounts,
 * also of short-lived threads and beside other processes; and the cost of the clock for threads
 * that switch often: kmod_device.h.
 */
#include "kmod_device.h"

#include <math.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* --- CPU time and ticks --- */

static void set_rate(unsigned int hz)
{
	char rate[16];

	snprintf(rate, sizeof(rate), "%u", hz);
	setenv("PROFIL_HZ", rate, 1);
}

struct span {
	double cpu, real;
	double unsure; /* CPU time besides, which may be counted or not */
};

static struct span begin_span(void)
{
	return (struct span){ seconds(CLOCK_PROCESS_CPUTIME_ID), seconds(CLOCK_MONOTONIC), 0 };
}

/* 2 % and four standard deviations: each tick of the clock hits with the share of the CPU time. */
static void expect_due(const char *what, double ticks, struct span used)
{
	double period = tick_ns() / 1e9, due = used.cpu / period, trials = used.real / period;
	double deviation = due < trials ? sqrt(due * (1 - due / trials)) : 0;
	double most = 0.02 * due + 4 * deviation + 1;

	printf("%s: %.0f ticks, due were %.1f to %.1f, +-%.1f: %.1f %%\n", what, ticks, due,
	       due + used.unsure / period, most, 100 * ticks / due);
	expect(ticks >= due - most && ticks <= due + used.unsure / period + most,
	       "%s: out of bounds", what);
}

static void expect_covered(const char *what, double ticks, struct span begin)
{
	struct span now = begin_span();

	expect_due(what, ticks,
		   (struct span){ now.cpu - begin.cpu, now.real - begin.real, begin.unsure });
}

/* --- Those that live shortly --- */

static double life; /* of a thread or process, in seconds of its CPU time */

static void *live(void *unused)
{
	while (seconds(CLOCK_THREAD_CPUTIME_ID) < life)
		spin_hot(100);
	return unused;
}

static void cover_threads(unsigned int hz, int count, double life_ms)
{
	struct span begin;
	pthread_t thread;

	set_rate(hz);
	life = life_ms / 1000;
	turn_on(cells32);
	begin = begin_span();
	while (count--) {
		start_threads(&thread, 1, live);
		join_threads(&thread, 1);
	}
	expect_covered("threads", query().ticks, begin);
	expect_exact("threads", cells32, 0);
}

static void threads_of_5_ms(void)
{
	cover_threads(100, 400, 5);
}

static void threads_of_2_ms(void)
{
	cover_threads(100, 400, 2);
}

static void threads_of_half_ms(void)
{
	cover_threads(100, 5000, 0.5);
}

static void threads_of_half_ms_faster(void)
{
	cover_threads(1000, 5000, 0.5);
}

static double used_in_all(const struct rusage *usage)
{
	return usage->ru_utime.tv_sec + usage->ru_stime.tv_sec +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/*
 * All count in one cell, in memory that they share. Of a process's time, what it takes to give up
 * its memory is in no buffer of its own; what comes before in its end is.
 */
static void cover_processes(unsigned int hz, int count, double life_ms)
{
	struct {
		volatile uint32_t cell;
		double children; /* their CPU time, until they end */
	} *shared = shared_memory(PAGE);
	struct rusage usage;
	struct span begin;

	set_rate(hz);
	life = life_ms / 1000;
	turn_on(&shared->cell);
	begin = begin_span();
	while (count--) {
		pid_t child = fork();

		need(child >= 0, "fork");
		if (child == 0) {
			live(NULL);
			shared->children += seconds(CLOCK_PROCESS_CPUTIME_ID);
			_exit(0);
		}
		need(wait4(child, NULL, 0, &usage) == child, "wait4");
		begin.unsure += used_in_all(&usage);
	}
	begin.cpu -= shared->children;
	begin.unsure -= shared->children;
	expect_covered("processes", shared->cell, begin);
}

static void processes_of_5_ms(void)
{
	cover_processes(100, 400, 5);
}

static void processes_of_2_ms(void)
{
	cover_processes(100, 400, 2);
}

/* --- Beware of step --- */

static void sleep_to_multiple(uint64_t step)
{
	uint64_t next = (clock_ns(CLOCK_MONOTONIC) / step + 1) * step;
	struct timespec time = { next / 1000000000, next % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* Works for a part of each `step` ms, always the same. */
static void keep_step(unsigned int hz, unsigned int step_ms, double part)
{
	struct span begin;

	set_rate(hz);
	sleep_to_multiple(10000000);
	turn_on(cells32);
	begin = begin_span();
	while (seconds(CLOCK_MONOTONIC) < begin.real + 2) {
		double end;

		sleep_to_multiple(step_ms * 1000000ULL);
		end = seconds(CLOCK_THREAD_CPUTIME_ID) + part * step_ms / 1000;
		while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
			spin_hot(100);
	}
	expect_covered("who wakes at round times", query().ticks, begin);
}

static void step_of_10_ms(void)
{
	keep_step(100, 10, 0.3);
}

static void step_of_4_ms(void)
{
	keep_step(250, 4, 0.3);
}

/* With another's, whose interrupts serve both. */
static void step_of_divided(void)
{
	pid_t other = fork();

	if (other == 0) {
		set_rate(1000);
		turn_on(cells32);
		for (;;)
			pause();
	}
	step_of_10_ms();
	kill(other, SIGKILL);
	wait_for_child(other, "another");
}

/* --- Several rates at once --- */

static void burn_for(unsigned int hz, double cpu)
{
	double end;
	struct span begin;

	set_rate(hz);
	turn_on(cells32);
	begin = begin_span();
	end = begin.cpu + cpu;
	while (seconds(CLOCK_PROCESS_CPUTIME_ID) < end)
		spin_hot(1000);
	expect_covered("one of several rates", query().ticks, begin);
	_exit(wrong);
}

static void rates_at_once(void)
{
	static const unsigned int rates[] = { 99, 100, 250, 997, 4999 };
	pid_t children[5];

	for (int i = 0; i < 5; i++) {
		children[i] = fork();
		need(children[i] >= 0, "fork");
		if (children[i] == 0)
			burn_for(rates[i], 0.6);
	}
	for (int i = 0; i < 5; i++)
		expect_well(children[i], "child");
}

/* A faster one that comes and goes all the time takes no tick away, and brings none. */
static void faster_comes_and_goes(void)
{
	volatile uint32_t *more = shared_memory(PAGE);
	double end = seconds(CLOCK_MONOTONIC) + 3;
	struct span begin;
	pid_t other;

	set_rate(100);
	turn_on(cells32);
	begin = begin_span();
	other = fork();
	if (other == 0) {
		while (seconds(CLOCK_MONOTONIC) < end) {
			set_rate(101 + *more % 9000);
			turn_on(more);
			spin_hot(1000);
			turn_off();
			sleep_ms(1);
		}
		_exit(wrong);
	}
	while (seconds(CLOCK_MONOTONIC) < end)
		spin_hot(1000);
	expect_covered("the slower one", query().ticks, begin);
	expect_well(other, "a faster one");
}

/* --- What it costs those who switch --- */

static int there[2], back[2];

/* Another process, which turns profiling on for itself on request. */
static void *answer(void *unused)
{
	char byte;

	while (read(there[0], &byte, 1) == 1) {
		if (byte)
			turn_on(cells32);
		need(write(back[1], &byte, 1) == 1, "a pipe");
	}
	return unused;
}

static void hand_over(char byte)
{
	need(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "a pipe");
}

/* Returns how many seconds it takes to hand a byte to and fro so often. */
static double time_turns(int turns)
{
	double begin = 0;

	for (int i = -100; i < turns; i++) {
		if (i == 0)
			begin = seconds(CLOCK_MONOTONIC);
		hand_over(0);
	}
	return seconds(CLOCK_MONOTONIC) - begin;
}

#define TURNS 5000

static void expect_cost(const char *who, unsigned int hz, double most)
{
	double alone = time_turns(TURNS), on;

	turn_on(cells32);
	hand_over(1);
	on = time_turns(TURNS);
	printf("%s at %u Hz: %.2f us a turn, alone %.2f\n", who, hz, on / TURNS * 1e6,
	       alone / TURNS * 1e6);
	expect(on <= alone * most, "%s at %u Hz take %.3f times as long", who, hz, on / alone);
	turn_off();
}

static void make_pipes(void)
{
	need(pipe2(there, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0, "pipe2");
}

static void threads_switch(unsigned int hz, double most)
{
	pthread_t thread;

	set_rate(hz);
	make_pipes();
	start_threads(&thread, 1, answer);
	expect_cost("two threads", hz, most);
	close(there[1]);
	join_threads(&thread, 1);
}

static void processes_switch(unsigned int hz, double most)
{
	pid_t child;

	set_rate(hz);
	make_pipes();
	child = fork();
	if (child == 0) {
		close(there[1]);
		answer(NULL);
		_exit(0);
	}
	expect_cost("two processes", hz, most);
	close(there[1]);
	expect_well(child, "child");
}

static void threads_at_100(void)
{
	threads_switch(100, 1.04);
}

static void threads_at_1000(void)
{
	threads_switch(1000, 1.06);
}

static void processes_at_100(void)
{
	processes_switch(100, 1.04);
}

static void processes_at_1000(void)
{
	processes_switch(1000, 1.06);
}

/* --- Interrupts --- */

/* Of the CPUs' own timers, so far. */
static double timer_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "re");
	double sum = 0;
	char line[4096];

	need(file, "/proc/interrupts");
	while (fgets(line, sizeof(line), file)) {
		char *rest = strstr(line, "LOC:"), *end;

		for (rest = rest ? rest + 4 : NULL; rest; rest = end > rest ? end : NULL)
			sum += strtod(rest, &end);
	}
	fclose(file);
	return sum;
}

/* In a second that is all work. */
static double interrupts_of_second(void)
{
	double before = timer_interrupts(), end = seconds(CLOCK_MONOTONIC) + 1;

	while (seconds(CLOCK_MONOTONIC) < end)
		spin_hot(1000);
	return timer_interrupts() - before;
}

/*
 * The interrupts of a second, once they are no more than that. The timers run for a second longer
 * than the last process is on.
 */
static double interrupts_settled(double most)
{
	double now = interrupts_of_second();

	for (int i = 0; i < 10 && now > most; i++)
		now = interrupts_of_second();
	return now;
}

/* A process that is on and sleeps interrupts nobody else. */
static void interrupts_of_others(void)
{
	double alone, now;
	pid_t child;

	/* Fewer than the second before: those of a row before this one have ended. */
	for (alone = interrupts_of_second(); (now = interrupts_of_second()) < 0.9 * alone;)
		alone = now;
	child = fork();
	need(child >= 0, "fork");
	if (child == 0) {
		set_rate(1000);
		turn_on(cells32);
		burn_counted(10);
		for (;;)
			pause();
	}
	sleep_ms(100);
	now = interrupts_of_second();
	printf("%.0f in a second, %.0f without\n", now, alone);
	expect(now < alone + 100, "%.0f timer interrupts in a second, %.0f without", now, alone);
	kill(child, SIGKILL);
	wait_for_child(child, "child");
}

/* 200 servers that are on cost what one does. */
static void interrupts_of_many(void)
{
	double alone, now;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	volatile _Atomic int *ready = shared_memory(PAGE);
	pid_t children[200];

	/* Fewer than the second before: those of a row before this one have ended. */
	for (alone = interrupts_of_second(); (now = interrupts_of_second()) < 0.9 * alone;)
		alone = now;
	alone = now;
	set_rate(100);
	for (int i = 0; i < 200; i++) {
		children[i] = fork();
		need(children[i] >= 0, "fork");
		if (children[i] == 0) {
			turn_on(cells32);
			++*ready;
			for (;;)
				pause();
		}
	}
	while (*ready < 200)
		sleep_ms(10);
	now = interrupts_of_second();
	expect(now <= alone + 110 * cpus, "%.0f timer interrupts in a second, %.0f without", now,
	       alone);
	for (int i = 0; i < 200; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	now = interrupts_settled(alone + 20 * cpus);
	expect(now <= alone + 20 * cpus, "%.0f timer interrupts later, %.0f before", now, alone);
}

/* --- CPUs that come and go --- */

static bool set_online(int cpu, const char *online)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	need(write(file, online, 1) == 1, path);
	close(file);
	return true;
}

static void move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* cpusets learn of a CPU that has come by a work, and before that it is not allowed. */
	while (sched_setaffinity(0, sizeof(set), &set))
		need(errno == EINVAL && usleep(1000) == 0, "sched_setaffinity");
}

static void counts_on(int cpu, const char *when)
{
	move_to(cpu);
	burn_counted(5);
	expect_exact(when, cells32, 0);
}

static void cpu_goes_and_comes(void)
{
	turn_on(cells32);
	if (!set_online(1, "1")) /* there is one alone, or it cannot be */
		return;
	for (int i = 0; i < 5; i++) {
		counts_on(1, "on the other CPU");
		move_to(0);
		need(set_online(1, "0"), "a CPU that goes");
		counts_on(0, "without the other CPU");
		if (i == 3) { /* off and on again while it is away */
			turn_off();
			cells32[0] = 0;
			turn_on(cells32);
		}
		need(set_online(1, "1"), "a CPU that comes");
	}
	counts_on(1, "on the CPU that came");
}

static const struct row rows[] = {
	{ "exact", "covered: 400 threads of 5 ms", threads_of_5_ms },
	{ "exact", "covered: 400 threads of 2 ms", threads_of_2_ms },
	{ "exact", "covered: 5,000 threads of 0.5 ms", threads_of_half_ms },
	{ "exact", "covered: 5,000 threads of 0.5 ms at 1000 Hz", threads_of_half_ms_faster },
	{ "exact", "covered: 400 processes of 5 ms", processes_of_5_ms },
	{ "exact", "covered: 400 processes of 2 ms", processes_of_2_ms },
	{ "exact", "covered: works at the begin of each 10 ms", step_of_10_ms },
	{ "exact", "covered: works at the begin of each 4 ms", step_of_4_ms },
	{ "exact", "covered: the same beside a faster clock", step_of_divided },
	{ "exact", "covered: five rates at once", rates_at_once },
	{ "exact", "covered: beside faster ones that come and go", faster_comes_and_goes },
	{ "exact", "cost: two threads that switch, 100 Hz", threads_at_100 },
	{ "exact", "cost: two threads that switch, 1000 Hz", threads_at_1000 },
	{ "exact", "cost: two processes that switch, 100 Hz", processes_at_100 },
	{ "exact", "cost: two processes that switch, 1000 Hz", processes_at_1000 },
	{ "exact", "cost: interrupts while others work", interrupts_of_others },
	{ "exact", "cost: interrupts of 200 processes", interrupts_of_many },
	{ "root", "a CPU goes and comes", cpu_goes_and_comes },
};

int main(int argc, char **argv)
{
	return run_kmod_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
