/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CLIENT_H
#define PROFIL_DAEMON_CLIENT_H

#include "daemon/account.h"
#include "daemon/peer.h"
#include "lib/protocol.h"

/* Bytes of the longest request. */
#define REQUEST_SIZE (sizeof(struct profild_request) + PROFIL_RANGES * sizeof(struct profil_range))

/* One connection with its histogram. */
struct client {
	struct peer peer;
	struct user *user;
	int socket;
	struct histograms *histograms; /* the set to which `histogram` is added */
	struct histogram *histogram;   /* NULL: nothing is counted */
	size_t rate;		       /* of the histogram, as in the user's account */
	unsigned int invalid_requests;
};

/*
 * Takes over an accepted connection and sends the first reply. Returns 0 with *client to be freed
 * by client_free(), or a negative errno with e set: then the client has been sent the reason, and
 * the socket is closed.
 */
int client_open(int socket, struct histograms *histograms, struct accounts *accounts,
		struct client **client, struct error *e);

/* Ends the counting and closes the connection, at the expense of its user. */
void client_free(struct client *client, struct accounts *accounts);

/*
 * Receives one request, if there is one, into the buffer of REQUEST_SIZE bytes, and replies.
 * Returns 0, also if the request failed, or a negative errno with e set: then the connection is to
 * be closed. Logs errors that are profild's and not the client's.
 */
int client_serve(struct client *client, struct accounts *accounts, struct profild_request *buffer,
		 struct error *e);

#endif
