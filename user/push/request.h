/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_REQUEST_H
#define PROFIL_PUSH_REQUEST_H

#include "format/message.h"
#include "util/error.h"

/* How windows are sent to a kind of server. */
struct push_protocol {
	const char *name;
	const char *path;	 /* behind the user's URL, unless that ends in its last part */
	const char *bad_request; /* what status 400 may mean, or NULL */
	const char *content_type;
	const char *header; /* one more, or NULL */

	/* Sets the body, which the caller frees. Returns 0 or -errno with e set. */
	int (*encode)(const struct profile *p, struct message_bytes *body, struct error *e);
};

extern const struct push_protocol push_otlp;
extern const struct push_protocol push_pyroscope;

#endif
