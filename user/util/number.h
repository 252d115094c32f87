/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_NUMBER_H
#define PROFIL_UTIL_NUMBER_H

#include <stdint.h>

/* What a digit stands for; 16 when it is no hexadecimal one. */
static inline int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/*
 * A whole decimal number from least to most, and nothing else, in text: no blanks, no sign.
 * Returns 0, -EINVAL (not a number) or -ERANGE (out of the limits); *number is set only with 0.
 */
int number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* The same for a number that may also be hexadecimal, as 0x10000. */
int number_parse_hex(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* Seconds, fractions allowed ("0.25"), as nanoseconds; the same returns. At most 10^9 s. */
int number_parse_seconds(const char *text, uint64_t *nanoseconds);

#endif
