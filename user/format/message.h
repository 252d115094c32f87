/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_MESSAGE_H
#define PROFIL_FORMAT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "profile/profile.h"

/* What protobuf messages for servers are made of. */

/* A message or a part of one. Zero-initialised: empty. */
struct message_bytes {
	uint8_t *at;
	size_t size, room;
};

static inline void message_bytes_free(struct message_bytes *b)
{
	free(b->at);
	*b = (struct message_bytes){ 0 };
}

#define MESSAGE_ID_SIZE 16

/*
 * An ID of a profile, by its number among those that are made of p: the same whenever it is made,
 * and different for others and on other hosts.
 */
void message_profile_id(const struct profile *p, size_t number, uint8_t id[static MESSAGE_ID_SIZE]);

/*
 * Copies a text; bytes that are not UTF-8, which servers refuse, become U+FFFD. Returns NULL when
 * out of memory. The caller frees it.
 */
char *message_text(const char *text);

/* Whether message_text() would change nothing. */
bool message_is_utf8(const char *text);

#endif
