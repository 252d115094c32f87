// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/rate.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/last_error.h"

#define DEFAULT_HZ 100 /* as libc */
#define FAST_HZ	   1000
/* Bound: caller: ticks per second; then: the call fails: EINVAL. */
#define MOST_HZ 100000

int profil__rate_check(unsigned long hz, const char *name)
{
	if (hz >= 1 && hz <= MOST_HZ)
		return 0;
	return profil__error(EINVAL, "%s: must be 1 to %d ticks per second", name, MOST_HZ);
}

int profil__rate(bool fast, unsigned int *hz)
{
	const char *text = secure_getenv("PROFIL_HZ");
	unsigned long number;
	char *end;

	*hz = fast ? FAST_HZ : DEFAULT_HZ;
	if (!text || !*text)
		return 0;
	number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end)
		number = 0;
	*hz = number;
	return profil__rate_check(number, "PROFIL_HZ");
}
