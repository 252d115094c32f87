// SPDX-License-Identifier: GPL-2.0-only
/*
 * onoff TIMES: turns profil() on and off for the first time in this process, and so many times
 * again. Prints first=MS, and again=MS for each other time.
 */
#include "legacy.h"

static double on_and_off(unsigned short *cells, size_t size)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	profil_on(cells, size);
	profil_off();
	return (clock_ns(CLOCK_MONOTONIC) - begin) / 1e6;
}

int main(int argc, char **argv)
{
	unsigned short *cells;
	unsigned long times;
	size_t size;

	if (argc != 2) {
		fprintf(stderr, "usage: onoff TIMES\n");
		return 2;
	}
	times = strtoul(argv[1], NULL, 10);
	require_backend();
	cells = make_cells(&size);
	printf("first=%.4f\n", on_and_off(cells, size));
	while (times--)
		printf("again=%.4f\n", on_and_off(cells, size));
	return 0;
}
