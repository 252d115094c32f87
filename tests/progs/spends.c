// SPDX-License-Identifier: GPL-2.0-only
/*
 * spends [-w] [-a] FILE COMMAND [ARG...]: runs a command, and writes "NAME cpu_ns N" to FILE:
 * the CPU time of this process, the command and all descendants that were waited for, in
 * nanoseconds, as the kernel accounts it. NAME is the command's base name. The exit status is the
 * command's.
 *
 *   -w   print "ready" and wait for a line on standard input before the command is started
 *
 *   -a   append to FILE, only the command's time: for gcc -wrapper, which runs many commands
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* One write(2), so that lines of several processes do not mix. */
static void write_usage(const char *path, bool append, const char *command)
{
	int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0600);
	uint64_t ns = usage_ns(RUSAGE_CHILDREN) + (append ? 0 : usage_ns(RUSAGE_SELF));
	const char *slash = strrchr(command, '/');
	char line[256];
	int length;

	require(file >= 0, path);
	length = snprintf(line, sizeof(line), "%.200s cpu_ns %llu\n", slash ? slash + 1 : command,
			  (unsigned long long)ns);
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
	bool append = false, wait_first = false;
	int option, status;
	pid_t child;

	while ((option = getopt(argc, argv, "+aw")) != -1) {
		append |= option == 'a';
		wait_first |= option == 'w';
	}
	if (argc - optind < 2) {
		fprintf(stderr, "usage: spends [-w] [-a] FILE COMMAND [ARG...]\n");
		return 125;
	}
	if (wait_first) {
		puts("ready");
		fflush(stdout);
		if (!read_line())
			return 125;
	}
	child = fork();
	require(child >= 0, "fork");
	if (child == 0) {
		execvp(argv[optind + 1], argv + optind + 1);
		perror(argv[optind + 1]);
		_exit(127);
	}
	require(waitpid(child, &status, 0) == child, "waitpid");
	write_usage(argv[optind], append, argv[optind + 1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
