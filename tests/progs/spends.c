// SPDX-License-Identifier: GPL-2.0-only
/*
 * spends [-w] [-a] [-t] FILE COMMAND [ARG...]: runs a command, and writes "NAME cpu_ns N" to FILE:
 * the CPU time of this process, the command and all descendants that were waited for, in
 * nanoseconds, as the kernel accounts it. NAME is the command's base name. The exit status is the
 * command's.
 *
 *   -w   print "ready" and wait for a line on standard input before the command is started
 *
 *   -a   append to FILE, only the command's time: for gcc -wrapper, which runs many commands
 *
 *   -t   write "NAME cpu_ns N on_cpu_ns T": for T nanoseconds they were on a CPU. They run in a
 *        control group of their own, made in the group $SPENDS_GROUP, and T is from its clock.
 *        Without $SPENDS_GROUP, T is left out.
 *
 * The two times differ. When another CPU wakes a thread, Linux charges the time until it runs to
 * it, and not to the one that runs until then: beside other load that may be a third of a program's
 * time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void require(bool right, const char *what)
{
	if (right)
		return;
	perror(what);
	exit(125);
}

static uint64_t usage_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * UINT64_C(1000000000) +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * UINT64_C(1000);
}

/*
 * A control group, and for each CPU a clock that runs while one of the group's threads is on it.
 * On Linux 6.18 a thread's own clock, PERF_COUNT_SW_TASK_CLOCK, lacks 4 to 5 % of a build's time:
 * some 200 us of each process.
 */
struct group {
	char directory[PATH_MAX];
	int clocks[CPU_SETSIZE];
	int clock_count;
};

/* Makes a group in `parent`. The command's own spends make theirs in this one. */
static void make_group(struct group *group, const char *parent)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int directory, clock;

	snprintf(group->directory, sizeof(group->directory), "%s/spends.%d", parent, getpid());
	require(mkdir(group->directory, 0755) == 0, group->directory);
	require(setenv("SPENDS_GROUP", group->directory, 1) == 0, "setenv");
	directory = open(group->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(directory >= 0, group->directory);
	errno = ERANGE;
	require(cpus <= CPU_SETSIZE, "number of CPUs");
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	for (int cpu = 0; cpu < cpus; cpu++) {
		clock = syscall(SYS_perf_event_open, &attr, directory, cpu, -1,
				PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP);
		require(clock >= 0 || errno == ENODEV, "perf_event_open"); /* ENODEV: offline */
		if (clock >= 0)
			group->clocks[group->clock_count++] = clock;
	}
	close(directory);
}

/* Moves this process into the group, or with "/.." back into its parent. */
static void move_into(const struct group *group, const char *relative)
{
	char path[PATH_MAX + 32];
	int file;

	snprintf(path, sizeof(path), "%s%s/cgroup.procs", group->directory, relative);
	file = open(path, O_WRONLY | O_CLOEXEC);
	require(file >= 0 && write(file, "0", 1) == 1, path);
	close(file);
}

static unsigned long long on_cpu_ns(const struct group *group)
{
	unsigned long long ns, sum = 0;

	for (int i = 0; i < group->clock_count; i++) {
		require(read(group->clocks[i], &ns, sizeof(ns)) == sizeof(ns),
			"reading the clock of a control group");
		sum += ns;
	}
	return sum;
}

/* One write(2), so that lines of several processes do not mix. */
static void write_usage(const char *path, bool append, const struct group *group,
			const char *command)
{
	int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0600);
	uint64_t ns = usage_ns(RUSAGE_CHILDREN) + (append ? 0 : usage_ns(RUSAGE_SELF));
	const char *slash = strrchr(command, '/');
	char line[256];
	int length;

	require(file >= 0, path);
	length = snprintf(line, sizeof(line), "%.200s cpu_ns %llu", slash ? slash + 1 : command,
			  (unsigned long long)ns);
	if (group->clock_count)
		length += snprintf(line + length, sizeof(line) - length, " on_cpu_ns %llu",
				   on_cpu_ns(group));
	line[length++] = '\n';
	require(write(file, line, length) == length, path);
	close(file);
}

/* Not a byte more than the line: the rest is the command's. */
static bool read_line(void)
{
	char c = 0;

	while (c != '\n')
		if (read(STDIN_FILENO, &c, 1) != 1)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	bool append = false, timed = false, wait_first = false;
	const char *parent = getenv("SPENDS_GROUP");
	static struct group group;
	int option, status;
	pid_t child;

	while ((option = getopt(argc, argv, "+awt")) != -1) {
		append |= option == 'a';
		wait_first |= option == 'w';
		timed |= option == 't';
	}
	if (argc - optind < 2) {
		fprintf(stderr, "usage: spends [-w] [-a] [-t] FILE COMMAND [ARG...]\n");
		return 125;
	}
	timed = timed && parent;
	if (timed)
		make_group(&group, parent);
	if (timed && !append)
		move_into(&group, "");
	if (wait_first) {
		puts("ready");
		fflush(stdout);
		if (!read_line())
			return 125;
	}
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		if (timed && append)
			move_into(&group, "");
		execvp(argv[optind + 1], argv + optind + 1);
		perror(argv[optind + 1]);
		_exit(127);
	}
	require(waitpid(child, &status, 0) == child, "waitpid");
	write_usage(argv[optind], append, &group, argv[optind + 1]);
	if (timed && !append)
		move_into(&group, "/..");
	if (timed && rmdir(group.directory)) /* as when a process of it outlives the command */
		perror(group.directory);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
