// SPDX-License-Identifier: GPL-2.0-only
/* depth FRAMES: works for ever in a function so deep that its stack has FRAMES frames. */
#pragma GCC optimize("no-omit-frame-pointer", "no-optimize-sibling-calls", "no-shrink-wrap")
#include <stdbool.h>
#include <stdlib.h>

/* main, and the function of libc that calls it, are frames, too. */
#define OUTER 2

static volatile bool going_on = true;

__attribute__((noipa)) static void descend(long depth)
{
	if (depth > 1)
		descend(depth - 1);
	else
		while (going_on)
			;
	going_on = true; /* behind the call, so that it does not become a jump */
}

int main(int argc, char **argv)
{
	descend(argc == 2 ? strtol(argv[1], NULL, 10) - OUTER : 1);
	return 0;
}
