// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creates a file argv[1] below directories with long names, so that its path has 3 kB, and maps it
 * for execution argv[2] times. Then prints "ready" and is busy in spin() for ten minutes, or until
 * it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 12

static volatile unsigned long sum;

static void spin(void)
{
	for (int i = 0; i < 1000000; i++)
		sum += i;
}

static int make_file(const char *top)
{
	char name[251];

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	if ((mkdir(top, 0755) && errno != EEXIST) || chdir(top))
		return -1;
	for (int i = 0; i < DEPTH; i++)
		if ((mkdir(name, 0755) && errno != EEXIST) || chdir(name))
			return -1;
	return open("mapped", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? make_file(argv[1]) : -1;
	time_t end = time(NULL) + 600;

	if (fd < 0 || ftruncate(fd, 4096)) {
		perror("mapper");
		return 1;
	}
	for (int i = atoi(argv[2]); i; i--)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
			perror("mapper");
			return 1;
		}
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end)
		spin();
	return 0;
}
