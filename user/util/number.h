/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_NUMBER_H
#define PROFIL_UTIL_NUMBER_H

#include <stdint.h>

/*
 * Parses text that is a decimal number from least to most, without blanks or a sign. Returns 0 and
 * sets *number, -EINVAL (not a number) or -ERANGE (out of range).
 */
int number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* The same; the number may also be hexadecimal: 0x10000. */
int number_parse_hex(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* Parses seconds ("0.25"), at most 10^9, into nanoseconds. Returns as above. */
int number_parse_seconds(const char *text, uint64_t *nanoseconds);

#endif
