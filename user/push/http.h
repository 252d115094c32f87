/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_HTTP_H
#define PROFIL_PUSH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/push.h"
#include "push/request.h"
#include "util/error.h"

/* The only user of libcurl: POSTs to one URL, within limits. */

/*
 * Bound: machine: bytes of a server's reply; then: the connection is closed, and the rest ignored;
 * again: at the next window; share: none; seen: not seen.
 */
#define HTTP_BODY_MAX ((size_t)65536) /* of a reply; the connection of a longer one is closed */

/* An untrusted reply. The texts are cut. */
struct http_reply {
	int problem; /* below 0, and different for each reason, when http_post() fails */
	long status;
	char type[64]; /* Content-Type without parameters, in lower case; "": none */
	char location[256];
	uint8_t body[HTTP_BODY_MAX];
	size_t size;
	bool too_long;		/* the body is only the beginning */
	uint64_t retry_after_s; /* 0: not said */
};

struct http;

/*
 * Checks the URL and the files of the options, and appends the path of the protocol, unless the URL
 * ends in that path's last part: then it is exact. Returns 0, and the caller frees *h with
 * http_free(), or -errno with e set (ERROR_USAGE: a value is invalid).
 */
int http_new(const struct push_options *options, const struct push_protocol *protocol,
	     struct http **h, struct error *e);
void http_free(struct http *h);

/* The URL with the path. */
const char *http_url(const struct http *h);

/*
 * Sends a body. Returns 0: *reply has come; or -errno with e set: none has, or it is not HTTP, or
 * the token cannot be read; -ECANCELED: options->stopped() returned true.
 */
int http_post(struct http *h, const struct message_bytes *body, struct http_reply *reply,
	      struct error *e);

#endif
