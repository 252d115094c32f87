/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_REPLY_H
#define PROFIL_PUSH_REPLY_H

#include <stdint.h>

#include "push/http.h"

/* What an untrusted reply means for the window that was sent. */

enum reply_outcome {
	REPLY_ACCEPTED,
	REPLY_REFUSED, /* the window would be refused again */
	REPLY_BUSY,    /* the server cannot take it now */
	REPLY_FAILED,  /* the server failed, perhaps because of this window */
};

#define REPLY_MESSAGE_SIZE 256

struct reply {
	enum reply_outcome outcome;
	uint64_t rejected; /* profiles of an accepted window that the server did not take */
	/* What the server says, as one line of visible characters; "": nothing. */
	char message[REPLY_MESSAGE_SIZE];
};

void reply_read(const struct http_reply *http, struct reply *reply);

/* The name of an HTTP status; "": not well-known. */
const char *reply_status_name(long status);

#endif
