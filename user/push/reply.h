/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_REPLY_H
#define PROFIL_PUSH_REPLY_H

#include <stdint.h>

#include "push/http.h"

/* Interprets untrusted replies. */

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
	/* The server's message, as one line of visible characters; "": none. */
	char message[REPLY_MESSAGE_SIZE];
};

/* Sets *reply to the meaning of an HTTP reply. */
void reply_read(const struct http_reply *http, struct reply *reply);

/* Returns the name of an HTTP status; "": not well-known. */
const char *reply_status_name(long status);

#endif
