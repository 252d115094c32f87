// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seems to be HotSpot to who looks at its threads and memory, if the file of the program is called
 * libjvm.so. It prints "ready", and then "SIGQUIT" for each that it gets, and ends when its
 * standard input does. Arguments:
 *
 *   threads       has the threads of HotSpot
 *   catch         catches SIGQUIT, which ends it otherwise
 *   map FILE      has mapped this file as code
 *   listen PATH   listens at this socket, but answers nothing; a PATH that ends in "-" ends in the
 *                 PID instead
 *   babble PATH   the same, and answers without end
 *   answer PATH   the same, and writes names after a second in which it uses no CPU time, as where
 *                 others have the CPUs; then it prints "asked"
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void *wait_as(void *name)
{
	prctl(PR_SET_NAME, name);
	for (;;)
		pause();
	return NULL;
}

static void note_quit(int signal)
{
	static const char text[] = "SIGQUIT\n";

	(void)signal;
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

static void *babble(void *listening)
{
	int fd;

	while ((fd = accept(*(int *)listening, NULL, NULL)) >= 0) {
		while (send(fd, "0 and more ", 11, MSG_NOSIGNAL) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void *answer(void *listening)
{
	static const struct timespec second = { .tv_sec = 1 };
	char path[64], request[256];
	int fd;

	prctl(PR_SET_NAME, "Attach Listener");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	while ((fd = accept(*(int *)listening, NULL, NULL)) >= 0) {
		FILE *map;

		nanosleep(&second, NULL);
		map = fopen(path, "w");
		if (!map || recv(fd, request, sizeof(request), 0) <= 0)
			exit(1);
		fputs("1000 10 name\n", map);
		fclose(map);
		puts("asked");
		fflush(stdout);
		send(fd, "0\n", 2, MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static void start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, argument))
		exit(1);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = note_quit, .sa_flags = SA_RESTART };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	static int listening;
	char byte;

	/* Code made at run time */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED)
		return 1;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "threads") == 0) {
			start(wait_as, "VM Thread");
			start(wait_as, "Signal Dispatch");
		} else if (strcmp(argv[i], "catch") == 0) {
			sigaction(SIGQUIT, &action, NULL);
		} else if (strcmp(argv[i], "map") == 0 && i + 1 < argc) {
			if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
				 open(argv[++i], O_RDONLY | O_CLOEXEC), 0) == MAP_FAILED)
				return 1;
		} else if (i + 1 < argc) {
			snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[i + 1]);
			if (argv[i + 1][strlen(argv[i + 1]) - 1] == '-')
				snprintf(address.sun_path, sizeof(address.sun_path), "%.*s%d",
					 (int)strlen(argv[i + 1]) - 1, argv[i + 1], getpid());
			listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
			unlink(address.sun_path);
			if (bind(listening, (struct sockaddr *)&address, sizeof(address)) ||
			    listen(listening, 5))
				return 1;
			if (strcmp(argv[i], "babble") == 0)
				start(babble, &listening);
			if (strcmp(argv[i], "answer") == 0)
				start(answer, &listening);
			i++;
		}
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
