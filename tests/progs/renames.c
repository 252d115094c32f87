// SPDX-License-Identifier: GPL-2.0-only
/* A thread that renames itself every few milliseconds, while it burns CPU time in burn_named. */
#include <stdio.h>
#include <sys/prctl.h>

void burn_named(unsigned long turns);

static volatile unsigned long sink;

void burn_named(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sink += i;
}

int main(void)
{
	char name[16];

	puts("ready");
	fflush(stdout);
	for (int i = 0;; i++) {
		snprintf(name, sizeof(name), "name-%d", i % 1000000);
		prctl(PR_SET_NAME, name);
		burn_named(1000000);
	}
}
