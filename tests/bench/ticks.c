// SPDX-License-Identifier: GPL-2.0-only
/*
 * ticks THREADS SECONDS: runs so many busy threads for so long with profil() on. Prints
 * counted=TICKS in the cells, and cpu_s=SECONDS of CPU time that the threads had.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "legacy.h"

static atomic_bool end;
static atomic_uint_fast64_t cpu_ns;

/* Not a system call, nor code of a library: every tick is in the cells. */
static void *burn(void *unused)
{
	while (!end)
		;
	cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return unused;
}

static unsigned long sum(const unsigned short *cells, size_t size)
{
	unsigned long total = 0;

	for (size_t i = 0; i < size / sizeof(*cells); i++)
		total += cells[i];
	return total;
}

int main(int argc, char **argv)
{
	unsigned short *cells;
	unsigned long count;
	pthread_t *threads;
	double seconds;
	size_t size;

	if (argc != 3) {
		fprintf(stderr, "usage: ticks THREADS SECONDS\n");
		return 2;
	}
	count = strtoul(argv[1], NULL, 10);
	seconds = strtod(argv[2], NULL);
	require_backend();
	cells = make_cells(&size);
	threads = calloc(count, sizeof(*threads));
	require(threads, "calloc");
	profil_on(cells, size);
	for (unsigned long i = 0; i < count; i++)
		require(pthread_create(&threads[i], NULL, burn, NULL) == 0, "pthread_create");
	sleep_until(clock_ns(CLOCK_MONOTONIC) + seconds * NS_PER_S);
	end = true;
	for (unsigned long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	profil_off();
	printf("counted=%lu\ncpu_s=%.6f\n", sum(cells, size), cpu_ns / 1e9);
	return 0;
}
