// SPDX-License-Identifier: GPL-2.0-only
/*
 * profil_keep HOW: turns profil() on and off again and again, by the back end that is in the
 * process and keeps its program and clocks loaded for a second. Exits 0 if what follows holds.
 *   pairs N      N pairs of on and off; strace(1) counts what is loaded. Prints "late N": before
 *                so many of them the second may have been over, as this process had no CPU
 *   twice N      the same, with two calls of off
 *   ends         the library's thread, and with it all that it keeps, ends some time after off
 *   clocks       a clock that only an earlier rate needed is closed while profiling is on
 *   privileges   a thread that has dropped its privileges does not count by those of the library's
 *   inherit      a forked child does so, too, and opens no events for those that it uses
 *   fork         parent and child count after off, and after they have closed all descriptors
 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned short cells[32768];

int main(int argc, char **argv);

static int turn_on(void)
{
	return profil(cells, sizeof(cells), (size_t)main & -65536UL, 0x10000);
}

static void turn_off(void)
{
	profil(cells, 0, 0, 0);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* Whether what was in use until then may not be kept any more. */
static bool is_late(double since)
{
	return now() - since >= 1;
}

static void need(bool holds, const char *what)
{
	if (holds)
		return;
	printf("%s: not so\n", what);
	fflush(stdout);
	_exit(1);
}

/* Returns how many descriptors of all threads are of this kind. *threads: how many threads run. */
static int count_open(const char *kind, int *threads)
{
	DIR *tasks = opendir("/proc/self/task"), *fds;
	struct dirent *task, *fd;
	char path[600], link[64];
	int count = 0;

	*threads = 0;
	while ((task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		++*threads;
		snprintf(path, sizeof(path), "/proc/self/task/%s/fd", task->d_name);
		fds = opendir(path);
		while (fds && (fd = readdir(fds))) {
			ssize_t length = readlinkat(dirfd(fds), fd->d_name, link, sizeof(link));

			count += length > 0 && memmem(link, length, kind, strlen(kind));
		}
		if (fds)
			closedir(fds);
	}
	closedir(tasks);
	return count;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

/* Uses CPU time until a tick is counted; the timeout of the test ends it if none comes. */
static void use_cpu_until_counted(void)
{
	bool counted = false;

	memset(cells, 0, sizeof(cells));
	need(turn_on() == 0, "it can be turned on");
	while (!counted) {
		volatile int sum = 0;

		for (int i = 0; i < 10000000; i++)
			sum += i;
		for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
			counted |= ((volatile unsigned short *)cells)[i];
	}
	turn_off();
}

static void handler(int signal)
{
	(void)signal;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int threads, events, status = -1, late = 0;
	double since;

	if (strcmp(how, "pairs") == 0 || strcmp(how, "twice") == 0) {
		since = now();
		for (int i = argc > 2 ? atoi(argv[2]) : 1; i; i--) {
			need(turn_on() == 0, "it can be turned on");
			late += is_late(since);
			since = now();
			turn_off();
			if (strcmp(how, "twice") == 0)
				turn_off();
		}
		printf("late %d\n", late);
	} else if (strcmp(how, "ends") == 0) {
		need(turn_on() == 0, "it can be turned on");
		turn_off();
		while (count_open("perf_event", &threads) || threads > 1)
			pause_a_little();
		need(turn_on() == 0, "it can be turned on again");
	} else if (strcmp(how, "clocks") == 0 || strcmp(how, "inherit") == 0) {
		setenv("PROFIL_HZ", "500", 1);
		need(turn_on() == 0, "it can be turned on");
		events = count_open("perf_event", &threads);
		setenv("PROFIL_HZ", "1000", 1);
		since = now();
		need(turn_on() == 0, "it can be turned on at another rate");
		need(count_open("perf_event", &threads) == 2 * events || is_late(since),
		     "the first clock is kept");
		if (strcmp(how, "inherit") == 0) {
			int child = fork(), maps = count_open("bpf-map", &threads);

			if (child) {
				need(wait(&status) > 0 && status == 0, "the child holds");
				return 0;
			}
			late = is_late(since);
			while (!late && count_open("bpf-map", &threads) >= maps)
				pause_a_little();
			need(turn_on() == 0, "it can be turned on in the child");
			need(count_open("perf_event", &threads) == 0, "the child has no events");
			return 0;
		}
		while (count_open("perf_event", &threads) != events)
			pause_a_little();
	} else if (strcmp(how, "privileges") == 0) {
		signal(SIGUSR1, handler); /* the thread stays for a handler, too */
		need(turn_on() == 0, "it can be turned on");
		turn_off();
		need(syscall(SYS_setresuid, 65534, 65534, 65534) == 0, "setresuid");
		need(turn_on() != 0, "it is refused");
	} else if (strcmp(how, "fork") == 0) {
		need(turn_on() == 0, "it can be turned on");
		turn_off();
		if (fork() == 0) {
			closefrom(3);
			use_cpu_until_counted();
			use_cpu_until_counted();
			_exit(0);
		}
		closefrom(3);
		use_cpu_until_counted();
		need(wait(&status) > 0 && status == 0, "the child counts");
		use_cpu_until_counted();
	} else {
		return 2;
	}
	return 0;
}
