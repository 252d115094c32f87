// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for replies to pushed windows: what is printed of them is one line of visible
 * UTF-8. The input: two bytes with the status, one with the Content-Type and whether the body is
 * cut, and the body.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "push/reply.h"
#include "util/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "push: %s\n", what);
	abort();
}

static void check(const struct http_reply *http, const struct reply *r)
{
	uint32_t code;

	require(memchr(r->message, '\0', sizeof(r->message)), "the message's end");
	for (const char *at = r->message; *at;) {
		size_t size = utf8_decode(at, &code);

		require(size && !utf8_is_hidden(code), "the message's characters");
		at += size;
	}
	require(r->outcome != REPLY_ACCEPTED || http->status / 100 == 2, "what is accepted");
	require(!r->rejected || r->outcome == REPLY_ACCEPTED, "what is rejected");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const types[] = { "",	  "application/x-protobuf",
					     "text/html", "application/json",
					     "image/png", "application/proto" };
	static struct http_reply http;
	struct reply reply;

	if (size < 3 || size - 3 > sizeof(http.body))
		return 0;
	http.status = bytes[0] | bytes[1] << 8;
	strcpy(http.type, types[(bytes[2] & 0x7f) % (sizeof(types) / sizeof(*types))]);
	http.too_long = bytes[2] >> 7;
	/* Text without an end: sanitizers notice who relies on one. */
	memset(http.body, 'x', sizeof(http.body));
	http.size = size - 3;
	memcpy(http.body, bytes + 3, http.size);
	snprintf(http.location, sizeof(http.location), "%.*s", (int)http.size, http.body);
	reply_read(&http, &reply);
	check(&http, &reply);
	require(strlen(reply_status_name(http.status)) < 64, "the status's name");
	return 0;
}
