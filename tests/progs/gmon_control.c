// SPDX-License-Identifier: GPL-2.0-only
/*
 * Controls its own profiling, by argv[1], with 0.2 seconds of CPU time in each function:
 *
 *   pause    before(), while paused off(), then after()
 *   restart  dropped(), then restarted, kept()
 *   twice    early(), whose file becomes first.out, between(), restarted late()
 *   own      starts and ends profiling itself, in programs built without gcc -pg: kept()
 *   part     of kept() only, not of dropped()
 *   often    pauses and continues 1000 times, in kept() and off()
 *   handler  as own, and a pause in off(), by a signal handler that must not call malloc(3)
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/gmon.h>
#include <time.h>

void moncontrol(int mode);

extern char __executable_start, etext; /* of the linker */

void before(double seconds);
void off(double seconds);
void after(double seconds);
void dropped(double seconds);
void kept(double seconds);
void early(double seconds);
void between(double seconds);
void late(double seconds);

static volatile unsigned int sink;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/*
 * Nearly all of its time is in itself, and it is as large as a page, to be a range alone. A step of
 * the clock is a millisecond at most: all ticks that are due in a longer one may be one.
 */
#define BURNER(name)                                                        \
	__attribute__((noinline, aligned(4096))) void name(double seconds)  \
	{                                                                   \
		double before = cpu_seconds(), now, burnt = 0;              \
                                                                            \
		do {                                                        \
			for (int i = 0; i < 100000; i++)                    \
				sink = sink * 1664525 + 1013904223;         \
			now = cpu_seconds();                                \
			burnt += now - before < 1e-3 ? now - before : 1e-3; \
			before = now;                                       \
		} while (burnt < seconds);                                  \
	}

BURNER(before)
BURNER(off)
BURNER(after)
BURNER(dropped)
BURNER(kept)
BURNER(early)
BURNER(between)
BURNER(late)

static void start_all(void)
{
	monstartup((unsigned long)&__executable_start, (unsigned long)&etext);
}

static void pause_and_go_on(void)
{
	before(0.2);
	moncontrol(0);
	moncontrol(0);
	off(0.2);
	moncontrol(1);
	moncontrol(1);
	after(0.2);
}

static void write_twice(void)
{
	early(0.2);
	_mcleanup();
	if (rename("gmon.out", "first.out"))
		exit(1);
	_mcleanup();
	moncontrol(1); /* there is nothing to go on with */
	between(0.2);
	start_all();
	late(0.2);
}

static void pause_often(void)
{
	for (int i = 0; i < 1000; i++) {
		moncontrol(0);
		off(0);
		moncontrol(1);
		kept(0);
	}
}

extern void forbid_malloc(int whose) __attribute__((weak)); /* forbid_malloc.c */

/* Starts, pauses, continues. */
static void control_in_handler(int signal)
{
	static int calls;

	(void)signal;
	forbid_malloc(1);
	if (calls == 0)
		start_all();
	else
		moncontrol(calls - 1);
	calls++;
	forbid_malloc(0);
}

static void be_controlled(void)
{
	signal(SIGUSR1, control_in_handler);
	raise(SIGUSR1);
	kept(0.1);
	raise(SIGUSR1);
	off(0.2);
	raise(SIGUSR1);
	kept(0.1);
	_mcleanup();
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (strcmp(word, "pause") == 0) {
		pause_and_go_on();
	} else if (strcmp(word, "restart") == 0) {
		dropped(0.2);
		start_all();
		kept(0.2);
	} else if (strcmp(word, "twice") == 0) {
		write_twice();
	} else if (strcmp(word, "own") == 0) {
		start_all();
		kept(0.2);
		_mcleanup();
	} else if (strcmp(word, "part") == 0) {
		monstartup((unsigned long)kept, (unsigned long)kept + 4096);
		dropped(0.2);
		kept(0.2);
	} else if (strcmp(word, "often") == 0) {
		pause_often();
	} else if (strcmp(word, "handler") == 0) {
		be_controlled();
	} else {
		return 2;
	}
	return 0;
}
