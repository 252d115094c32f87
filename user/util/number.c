// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>

#include "util/clock.h"

#define MOST_SECONDS 1000000000

/* Reads digits from *text on and moves it behind them. */
static int parse_digits(const char **text, int base, uint64_t *number)
{
	uint64_t sum = 0;
	const char *at = *text;

	if (digit_value(*at) >= base)
		return -EINVAL;
	for (; digit_value(*at) < base; at++)
		if (__builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, digit_value(*at), &sum))
			return -ERANGE;
	*text = at;
	*number = sum;
	return 0;
}

static int parse_whole(const char *text, int base, uint64_t least, uint64_t most, uint64_t *number)
{
	uint64_t value;
	int err = parse_digits(&text, base, &value);

	if (err)
		return err;
	if (*text)
		return -EINVAL;
	if (value < least || value > most)
		return -ERANGE;
	*number = value;
	return 0;
}

int number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	return parse_whole(text, 10, least, most, number);
}

int number_parse_hex(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	return parse_whole(hex ? text + 2 : text, hex ? 16 : 10, least, most, number);
}

int number_parse_seconds(const char *text, uint64_t *nanoseconds)
{
	uint64_t whole = 0, fraction = 0, unit = NS_PER_S / 10;
	int err = *text == '.' ? 0 : parse_digits(&text, 10, &whole);

	if (err)
		return err;
	if (*text == '.') {
		text++;
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		for (; isdigit((unsigned char)*text); text++, unit /= 10)
			fraction += (uint64_t)(*text - '0') * unit;
	}
	if (*text)
		return -EINVAL;
	if (whole > MOST_SECONDS)
		return -ERANGE;
	*nanoseconds = whole * NS_PER_S + fraction;
	return 0;
}
