// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "format/folded/folded.h"
#include "util/utf8.h"

/* "\x3b" */
#define ESCAPE_SIZE 4

/* FOLDED_ONE is 10 to this power. */
#define FRACTION_DIGITS 18

/* The character whose escape the text begins with; NUL: it begins with none. */
static char escaped_character(const char *text, size_t size)
{
	static const char visible[] = ";\\# ";
	unsigned char c;

	if (size < ESCAPE_SIZE || text[0] != '\\' || text[1] != 'x' || digit_value(text[2]) > 15 ||
	    digit_value(text[3]) > 15)
		return '\0';
	c = digit_value(text[2]) << 4 | digit_value(text[3]);
	return c < ' ' || c > '~' || strchr(visible, c) ? c : '\0';
}

size_t folded_unescape(const char *text, size_t size, char *name)
{
	size_t used = 0;

	for (size_t i = 0; i < size;) {
		char c = escaped_character(text + i, size - i);

		name[used++] = c ? c : text[i];
		i += c ? ESCAPE_SIZE : 1;
	}
	return used;
}

static bool take_digits(struct text *t)
{
	const char *from = t->at;

	while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
		t->at++;
	return t->at > from;
}

static bool is_count(struct text t)
{
	bool digits;

	take(&t, "-");
	digits = take_digits(&t);
	if (take(&t, "."))
		digits |= take_digits(&t);
	if (!digits)
		return false;
	if (take(&t, "e") || take(&t, "E")) {
		if (!take(&t, "-"))
			take(&t, "+");
		return take_digits(&t) && is_empty(&t);
	}
	return is_empty(&t);
}

/* The number after an "e", bounded: beyond that all numbers are 0 or too large. */
static long parse_exponent(struct text t)
{
	bool negative = take(&t, "-");
	long exponent = 0;

	take(&t, "+");
	for (; !is_empty(&t) && exponent < INT_MAX; t.at++)
		exponent = exponent * 10 + digit_value(*t.at);
	return negative ? -exponent : exponent;
}

/* Parses a text for which is_count() is true. False: it has more than 63 bits. */
static bool parse_count(struct text t, struct folded_count *count)
{
	bool negative = take(&t, "-");
	unsigned __int128 limit = (uint64_t)INT64_MAX + negative, value = 0;
	const char *exponent = t.at;
	long power = FRACTION_DIGITS; /* of 10: what value is to be multiplied by */

	/* Values below this have a whole part within the limit. */
	limit = (limit + 1) * FOLDED_ONE;
	count->inexact = false;
	while (exponent < t.end && *exponent != 'e' && *exponent != 'E')
		exponent++;
	if (exponent < t.end)
		power += parse_exponent((struct text){ exponent + 1, t.end });
	t.end = exponent;
	for (const char *at = t.at; at < t.end && *at != '.'; at++)
		power++;
	/* Now of what precedes the first digit; each digit that is taken decreases it. */
	for (; !is_empty(&t); t.at++) {
		if (*t.at == '.')
			continue;
		if (power <= 0) {
			count->inexact |= *t.at != '0';
			continue;
		}
		value = value * 10 + (*t.at - '0');
		if (value >= limit)
			return false;
		power--;
	}
	for (; power > 0 && value; power--) {
		value *= 10;
		if (value >= limit)
			return false;
	}
	count->whole = (int64_t)(uint64_t)(value / FOLDED_ONE);
	count->fraction = (int64_t)(value % FOLDED_ONE);
	if (negative) {
		count->whole = (int64_t)(0 - (uint64_t)count->whole);
		count->fraction = -count->fraction;
	}
	return true;
}

/* The beginning of the last field; NULL: there is only one. */
static const char *last_field(const struct text *t)
{
	const char *at = t->end;

	while (at > t->at && !is_blank(at[-1]))
		at--;
	return at > t->at ? at : NULL;
}

enum folded_field folded_take_count(struct text *line, struct folded_count *count)
{
	struct text field;

	trim_end(line);
	field = (struct text){ last_field(line), line->end };
	if (!field.at || !is_count(field))
		return FOLDED_NO_COUNT;
	if (!parse_count(field, count))
		return FOLDED_TOO_LARGE;
	line->end = field.at;
	trim_end(line);
	return FOLDED_COUNT;
}

/* A name to be escaped. */
struct plain {
	const char *text;
	size_t size;
	size_t count_at; /* the blank before a count at the end; `size`: there is none */
};

static struct plain plain_name(const char *name)
{
	struct plain n = { name, strlen(name), strlen(name) };
	struct text text = { name, name + n.size }, field = text;

	field.at = last_field(&text);
	if (field.at && is_count(field))
		n.count_at = field.at - 1 - name;
	return n;
}

static bool is_special(const struct plain *n, size_t i)
{
	switch (n->text[i]) {
	case ';':
		return true;
	case '\\':
		return escaped_character(n->text + i, n->size - i);
	case '#': /* a comment */
		return i == 0 && (n->size == 1 || is_blank(n->text[1]));
	case ' ':
		return i == 0 || i == n->size - 1 || i == n->count_at;
	default:
		return utf8_is_hidden_at(n->text, i);
	}
}

int folded_escape(const char *name, char **escaped)
{
	static const char digits[] = "0123456789abcdef";
	struct plain n = plain_name(name);
	size_t special = 0;
	char *end;

	*escaped = NULL;
	for (size_t i = 0; i < n.size; i++)
		special += is_special(&n, i);
	if (!special)
		return 0;
	*escaped = end = malloc(n.size + special * (ESCAPE_SIZE - 1) + 1);
	if (!end)
		return -ENOMEM;
	for (size_t i = 0; i < n.size; i++) {
		if (!is_special(&n, i)) {
			*end++ = name[i];
			continue;
		}
		*end++ = '\\';
		*end++ = 'x';
		*end++ = digits[(unsigned char)name[i] >> 4];
		*end++ = digits[name[i] & 15];
	}
	*end = '\0';
	return 0;
}
