// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "dcpi/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "util/clock.h"

static const char *const address_names[] = {
	[DCPI_OWN] = "image",
	[DCPI_FILE] = "file",
	[DCPI_MEMORY] = "memory",
};

bool dcpi_is_clock(const char *event)
{
	static const char *const clocks[] = { "cpu-clock", "task-clock", "tick" };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		if (strcmp(event, clocks[i]) == 0)
			return true;
	return false;
}

static bool take_two(struct text *t, int *value)
{
	struct text two = { t->at, t->at + 2 };
	uint64_t number;

	if (t->end - t->at < 2 || !take_number(&two, 10, &number) || !is_empty(&two))
		return false;
	t->at += 2;
	*value = number;
	return true;
}

/* YYMMDDHHMM or YYYYMMDDHHMMSS, UTC. Of two digits, 69 is 1969 and 68 is 2068, as in POSIX. */
static bool parse_epoch(struct text t, uint64_t *seconds)
{
	size_t size = t.end - t.at;
	struct tm tm = { 0 }, same;
	int century = 0;
	time_t time;

	if ((size != 10 && size != 14) || (size == 14 && !take_two(&t, &century)) ||
	    !take_two(&t, &tm.tm_year) || !take_two(&t, &tm.tm_mon) || !take_two(&t, &tm.tm_mday) ||
	    !take_two(&t, &tm.tm_hour) || !take_two(&t, &tm.tm_min) ||
	    (size == 14 && !take_two(&t, &tm.tm_sec)))
		return false;
	if (size == 14)
		tm.tm_year += 100 * century - 1900;
	else if (tm.tm_year < 69)
		tm.tm_year += 100;
	tm.tm_mon--;
	same = tm;
	time = timegm(&same);
	*seconds = time < 0 ? 0 : time;
	/* timegm() turns an invalid date into another one. */
	return same.tm_mon == tm.tm_mon && same.tm_mday == tm.tm_mday &&
	       same.tm_hour == tm.tm_hour && same.tm_min == tm.tm_min && same.tm_sec == tm.tm_sec;
}

void dcpi_epoch_text(uint64_t seconds, char text[static DCPI_EPOCH_SIZE])
{
	time_t time = seconds;
	struct tm tm;

	gmtime_r(&time, &tm);
	snprintf(text, DCPI_EPOCH_SIZE, "%02u%02u%02u%02u%02u", tm.tm_year % 100U,
		 tm.tm_mon % 12U + 1, tm.tm_mday % 100U, tm.tm_hour % 100U, tm.tm_min % 100U);
}

static bool parse_seconds(struct text t, uint64_t *ns)
{
	uint64_t fraction = 0;
	struct text digits;

	if (!take_number(&t, 10, ns) || __builtin_mul_overflow(*ns, NS_PER_S, ns))
		return false;
	if (is_empty(&t))
		return true;
	if (!take(&t, "."))
		return false;
	digits = t;
	if (!take_number(&t, 10, &fraction) || !is_empty(&t) || digits.end - digits.at > 9)
		return false;
	for (size_t i = digits.end - digits.at; i < 9; i++)
		fraction *= 10;
	return !__builtin_add_overflow(*ns, fraction, ns);
}

bool dcpi_version_parse(struct text t, uint64_t *major, uint64_t *minor)
{
	return take(&t, "pdb-") && take_number(&t, 10, major) && take(&t, ".") &&
	       take_number(&t, 10, minor) && is_empty(&t);
}

static bool parse_number(struct text t, int base, uint64_t *number)
{
	return take_number(&t, base, number) && is_empty(&t);
}

bool dcpi_value_parse(enum dcpi_kind kind, struct dcpi_field *f)
{
	struct text t = f->text;
	uint64_t major;

	switch (kind) {
	case DCPI_KIND_VERSION:
		return dcpi_version_parse(f->text, &major, &f->number) && major == 0;
	case DCPI_KIND_HEX_DIGITS:
		while (t.at < t.end && digit_value(*t.at) < 16)
			t.at++;
		return is_empty(&t);
	case DCPI_KIND_TEXT:
		return true;
	case DCPI_KIND_EPOCH:
		return parse_epoch(f->text, &f->number);
	case DCPI_KIND_DECIMAL:
		return parse_number(f->text, 10, &f->number);
	case DCPI_KIND_HEX:
		return parse_number(f->text, 16, &f->number);
	case DCPI_KIND_SECONDS:
		return parse_seconds(f->text, &f->number);
	case DCPI_KIND_ADDRESSES:
		for (f->number = DCPI_OWN; f->number <= DCPI_MEMORY; f->number++)
			if (text_is(&t, address_names[f->number]))
				return true;
		return false;
	case DCPI_KIND_LOST:
		return take_number(&f->text, 10, &f->number) &&
		       (take_blanks(&f->text) || is_empty(&f->text));
	}
	return false;
}

bool dcpi_value_same(enum dcpi_kind kind, const struct dcpi_field *a, const struct dcpi_field *b)
{
	size_t size = a->text.end - a->text.at;

	switch (kind) {
	case DCPI_KIND_TEXT:
		return text_equal(&a->text, &b->text);
	case DCPI_KIND_HEX_DIGITS:
		return size == (size_t)(b->text.end - b->text.at) &&
		       strncasecmp(a->text.at, b->text.at, size) == 0;
	case DCPI_KIND_EPOCH: /* some have seconds, some minutes */
		return a->number / 60 == b->number / 60;
	default:
		return a->number == b->number;
	}
}

/* Formats a number. Returns the length of the text. */
static int format_value(enum dcpi_kind kind, const struct dcpi_field *f,
			char text[static DCPI_VALUE_SIZE])
{
	int n;

	switch (kind) {
	case DCPI_KIND_VERSION:
		return snprintf(text, DCPI_VALUE_SIZE, "pdb-0.%02" PRIu64, f->number);
	case DCPI_KIND_EPOCH:
		dcpi_epoch_text(f->number, text);
		return strlen(text);
	case DCPI_KIND_HEX:
		return snprintf(text, DCPI_VALUE_SIZE, "%" PRIx64, f->number);
	case DCPI_KIND_SECONDS:
		n = snprintf(text, DCPI_VALUE_SIZE, "%" PRIu64 ".%09" PRIu64, f->number / NS_PER_S,
			     f->number % NS_PER_S);
		while (text[n - 1] == '0')
			n--;
		return n - (text[n - 1] == '.');
	case DCPI_KIND_ADDRESSES:
		return snprintf(text, DCPI_VALUE_SIZE, "%s", address_names[f->number]);
	default:
		return snprintf(text, DCPI_VALUE_SIZE, "%" PRIu64, f->number);
	}
}

struct text dcpi_value_text(enum dcpi_kind kind, const struct dcpi_field *f,
			    char buffer[static DCPI_VALUE_SIZE])
{
	if (kind == DCPI_KIND_TEXT || kind == DCPI_KIND_HEX_DIGITS)
		return f->text;
	return (struct text){ buffer, buffer + format_value(kind, f, buffer) };
}
