// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/number.h"

#include <errno.h>
#include <stdbool.h>

#include "util/clock.h"
#include "util/scan.h"

/* Bound: caller: seconds of an option; then: it is refused. */
#define MOST_SECONDS 1000000000

static bool has_digit(const struct text *t, int base)
{
	return !is_empty(t) && digit_value(*t->at) < base;
}

static int take_digits(struct text *t, int base, uint64_t *number)
{
	if (!has_digit(t, base))
		return -EINVAL;
	return take_number(t, base, number) ? 0 : -ERANGE;
}

static int parse_whole(const char *text, int base, uint64_t least, uint64_t most, uint64_t *number)
{
	struct text t = text_of(text);
	uint64_t value;
	int err = take_digits(&t, base, &value);

	if (err)
		return err;
	if (!is_empty(&t))
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
	struct text t = text_of(text);
	int err = *text == '.' ? 0 : take_digits(&t, 10, &whole);

	if (err)
		return err;
	if (take(&t, ".")) {
		if (!has_digit(&t, 10))
			return -EINVAL;
		for (; has_digit(&t, 10); t.at++, unit /= 10)
			fraction += digit_value(*t.at) * unit;
	}
	if (!is_empty(&t))
		return -EINVAL;
	if (whole > MOST_SECONDS)
		return -ERANGE;
	*nanoseconds = whole * NS_PER_S + fraction;
	return 0;
}
