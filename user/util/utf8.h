/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_UTF8_H
#define PROFIL_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Untrusted text from files and processes, which should be UTF-8. */

/* Decodes the character at s (RFC 3629) into *code. Returns its size in bytes; 0: not UTF-8. */
size_t utf8_decode(const char *s, uint32_t *code);

/*
 * How many columns of a terminal a character takes: 0 if it combines with the character before, 2
 * if it is wide. Independent of the locale. Not thread-safe.
 */
size_t utf8_columns(uint32_t code);

/* Whether a character is invisible, or acts on the terminal or on its neighbours. */
bool utf8_is_hidden(uint32_t code);

/* Whether text[i] is a byte of such a character, or is not UTF-8. */
bool utf8_is_hidden_at(const char *text, size_t i);

#endif
