/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_SCAN_H
#define PROFIL_UTIL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Text being scanned, from `at` up to `end`. A NUL is a character like any other. If the text
 * begins with an x, take_x() moves `at` past it and returns true; after false, `at` may have moved.
 */
struct text {
	const char *at;
	const char *end;
};

static inline struct text text_of(const char *string)
{
	return (struct text){ string, string + strlen(string) };
}

static inline bool text_equal(const struct text *a, const struct text *b)
{
	size_t size = a->end - a->at;

	return size == (size_t)(b->end - b->at) && (size == 0 || memcmp(a->at, b->at, size) == 0);
}

static inline bool text_is(const struct text *t, const char *string)
{
	struct text other = text_of(string);

	return text_equal(t, &other);
}

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool is_empty(const struct text *t)
{
	return t->at == t->end;
}

static inline bool take_blanks(struct text *t)
{
	const char *from = t->at;

	while (t->at < t->end && is_blank(*t->at))
		t->at++;
	return t->at > from;
}

/* Does not move `at` when it returns false. */
static inline bool take(struct text *t, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(t->end - t->at) < size || memcmp(t->at, word, size) != 0)
		return false;
	t->at += size;
	return true;
}

/* Returns the text up to a blank or the end, which may be empty. */
static inline struct text take_token(struct text *t)
{
	struct text token = { t->at, t->at };

	while (!is_empty(t) && !is_blank(*t->at))
		t->at++;
	token.end = t->at;
	return token;
}

/* *line becomes the next line, without its newline. The last line may have no newline. */
static inline bool take_line(struct text *t, struct text *line)
{
	const char *newline;

	if (is_empty(t))
		return false;
	newline = memchr(t->at, '\n', t->end - t->at);
	*line = (struct text){ t->at, newline ? newline : t->end };
	t->at = newline ? newline + 1 : t->end;
	return true;
}

/* The value of a hexadecimal digit; 16: not a digit. */
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

/* Takes digits of this base. False: there is none, or the number exceeds 64 bits. */
static inline bool take_number(struct text *t, int base, uint64_t *value)
{
	const char *from = t->at;

	*value = 0;
	while (t->at < t->end && digit_value(*t->at) < base) {
		if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
		    __builtin_add_overflow(*value, (uint64_t)digit_value(*t->at), value))
			return false;
		t->at++;
	}
	return t->at > from;
}

/* The same in base 16, after an optional 0x. */
static inline bool take_hex(struct text *t, uint64_t *value)
{
	if (!take(t, "0x"))
		take(t, "0X");
	return take_number(t, 16, value);
}

static inline void trim_end(struct text *t)
{
	while (t->at < t->end && is_blank(t->end[-1]))
		t->end--;
}

/* The last c, or NULL. */
static inline const char *last_of(const struct text *t, char c)
{
	for (const char *at = t->end; at > t->at; at--)
		if (at[-1] == c)
			return at - 1;
	return NULL;
}

#endif
