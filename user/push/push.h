/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PUSH_PUSH_H
#define PROFIL_PUSH_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

/*
 * Sends the windows of a host's archive to a server, in the order of their times.
 *
 * The archive is the queue. DIRECTORY/HOST/.pushed holds up to where windows were sent to this URL,
 * so that a restart neither skips windows nor sends them again, but for one: the server may have
 * accepted a window whose reply was lost. Its profiles then have the same IDs.
 */

/*
 * The default limit on the bytes of waiting windows. Above it the oldest are dropped.
 * Bound: machine: bytes of windows that wait for a server; then: the oldest are given up; again:
 * when the server answers; share: none; seen: push_dropped.
 */
#define PUSH_QUEUE_BYTES (UINT64_C(256) << 20)

enum push_report {
	PUSH_NOTE,    /* e->what says what has changed */
	PUSH_PROBLEM, /* e: what went wrong; repeated only after it has changed */
};

/* Texts must outlive the pusher. */
struct push_options {
	const char *url;      /* http:// or https://: see http_new() for its path */
	const char *protocol; /* "otlp" or "pyroscope"; NULL: "otlp" */
	/*
	 * Holds a bearer token; read for each request; NULL: none. By http://, it is sent to
	 * loopback addresses only, without a proxy.
	 */
	const char *token_file;
	const char *tenant; /* of the server's, sent as X-Scope-OrgID; NULL: none */
	const char *ca;	    /* file of certificates to trust instead of the system's; or NULL */
	const char *certificate; /* of the client, with its key; or NULL */
	const char *key;
	uint64_t queue_bytes; /* 0: PUSH_QUEUE_BYTES */
	uint64_t timeout_ms;  /* of a request with its reply; 0: 30 s */

	const char *directory, *host; /* the archive, and the host as for archive_open() */
	/*
	 * Windows that began before (since the epoch) are not sent, unless earlier ones were sent
	 * to this URL already.
	 */
	uint64_t since_ns;

	void (*report)(enum push_report kind, const struct error *e, void *context);
	/* Asked about once a second during a request; true: push_step() returns early. Or NULL. */
	bool (*stopped)(void *context);
	void *context;
};

/* Since push_new(). */
struct push_counters {
	uint64_t sent;	     /* windows that the server accepted */
	uint64_t refused;    /* windows that it refused; they are not sent again */
	uint64_t unreadable; /* windows whose files are corrupt */
	uint64_t dropped;    /* windows that waited when the queue was full */
	uint64_t rejected;   /* profiles of accepted windows that it did not take (OTLP) */
	uint64_t retried;    /* requests that failed, and are repeated */
	uint64_t bytes;	     /* of the bodies of all requests */
	uint64_t waiting, waiting_bytes; /* windows at the last push_step() */
};

struct push;

/*
 * Checks the options, without connecting. Returns 0, and the caller frees *p with push_free(), or
 * -errno with e set (ERROR_USAGE: a value is invalid). One thread; libcurl is initialized.
 */
int push_new(const struct push_options *options, struct push **p, struct error *e);
void push_free(struct push *p);

/*
 * Sends windows that wait, for about 5 s and at most one request longer. Does nothing while it is
 * too early for another attempt. Sets *next_ms: when to call again; UINT64_MAX: when there is
 * another window. What the server does is reported and counted, and is no error. Returns 0, or
 * -errno with e set when the archive cannot be listed, or .pushed not be written.
 */
int push_step(struct push *p, uint64_t *next_ms, struct error *e);

const struct push_counters *push_counters(const struct push *p);

/*
 * Windows that began up to then (since the epoch) are sent, or never will be: they need not be kept
 * for the server.
 */
uint64_t push_sent_until(const struct push *p);

#endif
