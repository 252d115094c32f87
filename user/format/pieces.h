/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PIECES_H
#define PROFIL_FORMAT_PIECES_H

#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"

/* The samples of each thread in the order of time, for the writers of formats that show it. */

/* A tick or a wait of a sample; or what has no time of its value. */
struct piece {
	uint64_t thread;  /* TID and generation: the pieces of a thread are together */
	uint64_t time_ns; /* when it began, since the epoch; PIECE_UNTIMED: unknown */
	int64_t value;	  /* above 0 */
	uint32_t sample;
};

#define PIECE_UNTIMED UINT64_MAX

struct pieces {
	struct piece *list;
	size_t count, room;
};

/*
 * Divides a value of each sample: each tick is a part of it, waits are by their lengths. Values
 * that are not above 0 are omitted. The pieces are in the order of their threads, then of time;
 * those without a time come last. Returns 0 or -ENOMEM; call pieces_free() in any case.
 */
int pieces_find(const struct profile *p, size_t value, struct pieces *pieces);
void pieces_free(struct pieces *pieces);

/* Writes a text as a JSON string. What is not UTF-8 becomes U+FFFD. */
void json_text_put(const char *text, FILE *out);

#endif
