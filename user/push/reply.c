// SPDX-License-Identifier: GPL-2.0-only
#include "push/reply.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "otlp_reply.pb-c.h"
#include "util/utf8.h"

/*
 * Copies the visible characters of a text of this size; others become one space each time. It is
 * cut between characters.
 */
static void set_message(struct reply *r, const char *text, size_t size)
{
	char character[5] = "";
	size_t used = 0;

	for (size_t i = 0; i < size;) {
		size_t left = MIN(size - i, 4), taken;
		uint32_t code;

		memcpy(character, text + i, left);
		character[left] = '\0';
		taken = *character ? utf8_decode(character, &code) : 0;
		i += taken ?: 1;
		if (!taken || utf8_is_hidden(code)) {
			*character = ' ';
			taken = 1;
		}
		if (*character == ' ' && (!used || r->message[used - 1] == ' '))
			continue;
		if (used + taken >= sizeof(r->message))
			break;
		memcpy(r->message + used, character, taken);
		used += taken;
	}
	while (used && r->message[used - 1] == ' ')
		used--;
	r->message[used] = '\0';
}

static bool is_protobuf(const char *type)
{
	return strcmp(type, "application/x-protobuf") == 0 ||
	       strcmp(type, "application/proto") == 0 || strcmp(type, "application/protobuf") == 0;
}

static bool is_json(const char *type)
{
	return strcmp(type, "application/json") == 0;
}

static enum reply_outcome outcome_of(long status)
{
	switch (status) {
	case 200 ... 299:
		return REPLY_ACCEPTED;
	case 408: /* Request Timeout */
	case 429: /* Too Many Requests */
	case 502: /* Bad Gateway */
	case 503: /* Service Unavailable */
	case 504: /* Gateway Timeout */
		return REPLY_BUSY;
	case 400 ... 407:
	case 409 ... 428:
	case 430 ... 499:
		return REPLY_REFUSED;
	default:
		return REPLY_FAILED;
	}
}

void reply_read(const struct http_reply *http, struct reply *r)
{
	Profil__Otlp__Response *response = NULL;
	Profil__Otlp__Status *status;

	*r = (struct reply){ .outcome = outcome_of(http->status) };
	if (r->outcome == REPLY_ACCEPTED) {
		if (!http->size || (is_json(http->type) && !http->too_long))
			return;
		if (is_protobuf(http->type) && !http->too_long)
			response = profil__otlp__response__unpack(NULL, http->size, http->body);
		if (!response) {
			/* Other servers also answer 200, with a page for people perhaps. */
			const char *text = "it answers as other servers do: is the URL right?";

			r->outcome = REPLY_REFUSED;
			set_message(r, text, strlen(text));
			return;
		}
		if (response->partial_success) {
			const Profil__Otlp__PartialSuccess *partial = response->partial_success;

			if (partial->rejected_profiles > 0)
				r->rejected = partial->rejected_profiles;
			set_message(r, partial->error_message, strlen(partial->error_message));
		}
		profil__otlp__response__free_unpacked(response, NULL);
	} else if (http->status >= 300 && http->status < 400) {
		char text[sizeof(http->location) + 64];

		snprintf(text, sizeof(text), "redirects are not followed%s%s",
			 *http->location ? ", to " : "", http->location);
		set_message(r, text, strlen(text));
	} else if (is_protobuf(http->type)) {
		status = profil__otlp__status__unpack(NULL, http->size, http->body);
		if (!status)
			return;
		set_message(r, status->message, strlen(status->message));
		profil__otlp__status__free_unpacked(status, NULL);
	} else if (!*http->type || is_json(http->type) || strncmp(http->type, "text/", 5) == 0) {
		set_message(r, (const char *)http->body, http->size);
	}
}

const char *reply_status_name(long status)
{
	static const struct {
		long status;
		const char *name;
	} names[] = {
		{ 301, "Moved Permanently" },	{ 302, "Found" },
		{ 307, "Temporary Redirect" },	{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },	{ 408, "Request Timeout" },
		{ 413, "Content Too Large" },	{ 415, "Unsupported Media Type" },
		{ 429, "Too Many Requests" },	{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },	{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" }, { 504, "Gateway Timeout" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].status == status)
			return names[i].name;
	return "";
}
