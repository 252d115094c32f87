/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_REQUEST_H
#define PROFIL_PUSH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "util/error.h"

/* The body of a request, or a part of it. Zero-initialised: empty. */
struct request_bytes {
	uint8_t *at;
	size_t size, room;
};

static inline void request_bytes_free(struct request_bytes *b)
{
	free(b->at);
	*b = (struct request_bytes){ 0 };
}

/* How windows are sent to a kind of server. */
struct push_protocol {
	const char *name;
	const char *path; /* behind the user's URL */
	const char *content_type;
	const char *header; /* one more, or NULL */

	/* Sets the body, which the caller frees. Returns 0 or -errno with e set. */
	int (*encode)(const struct profile *p, struct request_bytes *body, struct error *e);
};

extern const struct push_protocol push_otlp;
extern const struct push_protocol push_pyroscope;

#define PROFILE_ID_SIZE 16

/*
 * An ID of a window's profile, by its number in the window: the same whenever it is sent, and
 * different for others and on other hosts.
 */
void request_profile_id(const struct profile *p, size_t number, uint8_t id[static PROFILE_ID_SIZE]);

/*
 * Copies a text; bytes that are not UTF-8, which servers refuse, become U+FFFD. Returns NULL when
 * out of memory. The caller frees it.
 */
char *request_text(const char *text);

/* Whether request_text() would change nothing. */
bool request_is_utf8(const char *text);

#endif
