// SPDX-License-Identifier: GPL-2.0-only
/* Sleeps at the end of 30,000 different stacks of 60 frames. */
#include <time.h>

static int sleep_below(unsigned int path, int depth)
{
	const struct timespec time = { 0, 1000 };

	if (depth == 0)
		return nanosleep(&time, 0);
	/* What follows the calls keeps them from being jumps, and apart. */
	if (path & 1)
		return sleep_below(path >> 1, depth - 1) + 1;
	return sleep_below(path >> 1, depth - 1) + 2;
}

int main(void)
{
	int sum = 0;

	for (unsigned int i = 0; i < 30000; i++)
		sum += sleep_below(i, 60);
	return sum == 0;
}
