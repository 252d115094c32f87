/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_SCAN_H
#define PROFIL_FORMAT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Scanning of text that ends nowhere but at `end`: a NUL is a character like any other. take_x()
 * moves behind an x that stands at the beginning and says whether one did; a failed one may have
 * moved into it.
 */
struct text {
	const char *at;
	const char *end;
};

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

/* Does not move when the word is another. */
static inline bool take(struct text *t, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(t->end - t->at) < size || memcmp(t->at, word, size) != 0)
		return false;
	t->at += size;
	return true;
}

/* 16 when it is no hexadecimal digit */
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

/* Digits of this base. More than 64 bits are none. */
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

/* 0x may stand before it. */
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

/* NULL when there is none */
static inline const char *last_of(const struct text *t, char c)
{
	for (const char *at = t->end; at > t->at; at--)
		if (at[-1] == c)
			return at - 1;
	return NULL;
}

#endif
