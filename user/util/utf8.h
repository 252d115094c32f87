/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_UTF8_H
#define PROFIL_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text from files and processes: it should be UTF-8, and nobody vouches for it. */

/* The size of the character at s in bytes, or 0 when there is none: RFC 3629. */
size_t utf8_decode(const char *s, uint32_t *code);

/*
 * How many columns of a terminal a character takes: 0 for one that combines with the one before, 2
 * for a wide one. Whatever the locale; not for threads.
 */
size_t utf8_columns(uint32_t code);

/* Whether a character acts on a terminal or on its neighbours, or nobody can see it. */
bool utf8_is_hidden(uint32_t code);

/* Whether text[i] is a byte of such a character, or of none. */
bool utf8_is_hidden_at(const char *text, size_t i);

#endif
