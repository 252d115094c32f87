/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_WIRE_H
#define PROFIL_FORMAT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.pb-c.h"

/*
 * The encoding of messages (https://protobuf.dev/programming-guides/encoding): for Profile, whose
 * fields are read and written one by one, and for Sample, of which a file may have millions.
 */

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5
};

/* Bound: format. */
#define WIRE_VARINT_MAX 10

/* Bytes still to be read. */
struct wire {
	const uint8_t *at;
	const uint8_t *end;
};

static inline size_t wire_left(const struct wire *w)
{
	return w->end - w->at;
}

/* Takes a varint. False: it is truncated or has more than 64 bits. */
static inline bool wire_take_varint(struct wire *w, uint64_t *value)
{
	/* Most have one byte. */
	if (w->at < w->end && *w->at < 0x80) {
		*value = *w->at++;
		return true;
	}
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
		uint8_t byte = *w->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static inline size_t wire_varint_size(uint64_t value)
{
	return (63 - __builtin_clzll(value | 1)) / 7 + 1;
}

/* Writes at most WIRE_VARINT_MAX bytes. Returns their end. */
static inline uint8_t *wire_put_varint(uint8_t *to, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		*to++ = value | 0x80;
	*to++ = value;
	return to;
}

/* The same of the tag and the length before a field of bytes, at most two numbers. */
static inline uint8_t *wire_put_head(uint8_t *to, unsigned int field, size_t size)
{
	return wire_put_varint(wire_put_varint(to, field << 3 | WIRE_BYTES), size);
}

#endif
