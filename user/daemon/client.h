/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_CLIENT_H
#define PROFIL_DAEMON_CLIENT_H

#include "daemon/account.h"
#include "daemon/peer.h"
#include "daemon/request.h"

/* One connection, and the histogram that it is. */
struct client {
	struct peer peer;
	struct user *user;
	int socket;
	struct histograms *histograms; /* that its own is to be of */
	struct histogram *histogram;   /* NULL: nothing is counted */
	size_t rate;		       /* of that, in its user's account */
	unsigned int mistakes;
};

/*
 * Takes over a connection that was just accepted, and tells the client so, or why not; then the
 * socket is closed. *client is the caller's, to client_free().
 */
int client_open(int socket, struct histograms *histograms, struct accounts *accounts,
		struct client **client, struct error *e);

/* Ends the counting. */
void client_free(struct client *client, struct accounts *accounts);

/*
 * Receives one request in the buffer, of REQUEST_SIZE bytes, and answers it. Returns 0, or a
 * negative errno with e set when there is no going on with this client. What is profild's trouble
 * and not the client's is logged.
 */
int client_serve(struct client *client, struct accounts *accounts, struct profild_request *buffer,
		 struct error *e);

#endif
