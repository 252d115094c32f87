// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints "ready", takes the path of a library from standard input, loads it, prints "loaded" and
 * burns CPU in the library's burn_cpu() (see shares.c) in two threads, argv[1] seconds each. With
 * any argv[2] its first thread ends instead of burning, and the other one waits for a line first.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*burn_cpu)(double seconds);
static bool waits;

static void *burn(void *seconds)
{
	if (waits)
		getchar();
	burn_cpu(*(double *)seconds);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	char path[4096];
	pthread_t thread;
	void *library;

	puts("ready");
	fflush(stdout);
	if (!fgets(path, sizeof(path), stdin))
		return 1;
	path[strcspn(path, "\n")] = '\0';
	library = dlopen(path, RTLD_NOW);
	if (library)
		burn_cpu = dlsym(library, "burn_cpu");
	if (!burn_cpu) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	puts("loaded");
	fflush(stdout);
	waits = argc > 2;
	if (pthread_create(&thread, NULL, burn, &seconds))
		return 1;
	if (waits)
		pthread_exit(NULL);
	burn(&seconds);
	return pthread_join(thread, NULL);
}
