/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_PAGE_SERVER_H
#define PROFIL_TOOL_PAGE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/*
 * Shows one page to browsers of this machine, by HTTP. Its address has a random token, because all
 * users of the machine can connect to it; and pages of other sites must not, so requests have to
 * come to localhost by name (a name of another site can be made to mean 127.0.0.1), and not from
 * another origin.
 */

#define PAGE_SERVER_TOKEN 32 /* hexadecimal digits */

struct page_server {
	int listener;
	uint16_t port;
	char token[PAGE_SERVER_TOKEN + 1];
};

/*
 * Listens on a port of 127.0.0.1; 0: any. Returns 0, or a negative errno with e set; call
 * page_server_close() in any case.
 */
int page_server_open(struct page_server *s, uint16_t port, struct error *e);

/* Prints the address, and unless quiet, how to reach it from where the user logged in from. */
void page_server_introduce(const struct page_server *s, bool quiet);

/*
 * Answers until a signal comes from this descriptor, recording_open_signals(). Returns 0, or a
 * negative errno with e set.
 */
int page_server_run(const struct page_server *s, int signals, const char *page, size_t size,
		    struct error *e);
void page_server_close(struct page_server *s);

#endif
