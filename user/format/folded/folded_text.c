// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "format/folded/folded.h"
#include "util/utf8.h"

/* "\x3b" */
#define ESCAPE_SIZE 4

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

static bool is_count(struct text t)
{
	const char *from;

	take(&t, "-");
	from = t.at;
	while (t.at < t.end && *t.at >= '0' && *t.at <= '9')
		t.at++;
	if (t.at == from)
		return false;
	if (take(&t, "."))
		while (t.at < t.end && *t.at >= '0' && *t.at <= '9')
			t.at++;
	return is_empty(&t);
}

/* Parses a text for which is_count() is true. False: it has more than 63 bits. */
static bool parse_count(struct text t, int64_t *count, bool *rounded)
{
	bool negative = take(&t, "-");
	uint64_t value, limit = (uint64_t)INT64_MAX + negative;

	if (!take_number(&t, 10, &value) || value > limit)
		return false;
	if (take(&t, ".")) {
		value += !is_empty(&t) && *t.at >= '5' && value < limit;
		for (; !is_empty(&t); t.at++)
			*rounded |= *t.at != '0';
	}
	*count = (int64_t)(negative ? 0 - value : value);
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

int folded_take_count(struct text *line, int64_t *count, bool *rounded)
{
	struct text field;

	trim_end(line);
	field = (struct text){ last_field(line), line->end };
	if (!field.at || !is_count(field))
		return 0;
	if (!parse_count(field, count, rounded))
		return -ERANGE;
	line->end = field.at;
	trim_end(line);
	return 1;
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
