// SPDX-License-Identifier: GPL-2.0-only
/*
 * crowded LIBRARY: prints "ready" and maps its own code at ever new addresses, of which it keeps
 * none, until a line comes on standard input. Then it loads the library and burns CPU time in its
 * burn_cpu() (shares.c) until it is killed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  4096L
#define PAGES 100000L

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void map_and_unmap(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *place = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || place == MAP_FAILED)
		fail("mmap");
	for (long i = 0; i < PAGES; i++) {
		char *at = place + i * PAGE;

		if (mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
			    MAP_FAILED ||
		    munmap(at, PAGE))
			fail("mmap");
		/* The kernel's buffer of records, which is everybody's, is read meanwhile. */
		if (i % 10 == 9 && poll(&input, 1, 40))
			return;
	}
}

int main(int argc, char **argv)
{
	void (*burn_cpu)(double seconds);
	void *library;

	if (argc != 2)
		return 2;
	puts("ready");
	fflush(stdout);
	map_and_unmap();
	library = dlopen(argv[1], RTLD_NOW);
	burn_cpu = library ? dlsym(library, "burn_cpu") : NULL;
	if (!burn_cpu) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	burn_cpu(0);
	return 0;
}
