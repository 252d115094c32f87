/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
/*
 * What libprofil and profild say to each other through a SOCK_SEQPACKET unix socket, one message
 * for each request and one for each reply. All fields are in the machine's byte order and lie where
 * they lie in 64-bit programs.
 *
 * profild speaks first: a reply as soon as it has accepted the connection, with an error when it
 * refuses, and then it closes. The client sends nothing before it has read that, and no second
 * request before it has read the reply to the first: profild hangs up on one that does.
 *
 * So every request was sent after the accept, and it carries SCM_CREDENTIALS of its sender, filled
 * in by the kernel (profild's socket has SO_PASSCRED on). At the accept profild opened a pidfd of
 * the process that had connected: as long as that one lives, whoever has its number is this
 * process. profild serves a process about itself and nobody else; a child that inherits the
 * connection must make its own. profild hangs up on one that sends descriptors.
 *
 * One connection is one histogram. It ends with STOP, when the connection is closed (by exec too:
 * the client's socket is close-on-exec), when the process executes another program, and when it
 * ends. The map that it was given counts as the user's memory until nobody has it mapped or open
 * any more.
 */
#ifndef PROFIL_LIB_PROTOCOL_H
#define PROFIL_LIB_PROTOCOL_H

#include <stdint.h>

#include "bpf/profil.h"

#define PROFILD_SOCKET	"/run/profild/socket"
#define PROFILD_VERSION 2
#define PROFILD_MOST_HZ 10000

enum {
	/* Begin to count; a START on a connection that counts replaces the histogram by a new one.
	 */
	PROFILD_START = 1,
	/* End; when the reply has come, the counts do not change any more. */
	PROFILD_STOP = 2,
};

struct profild_request {
	uint32_t version; /* PROFILD_VERSION */
	uint32_t type;
	/* START only; else 0, and no ranges follow. */
	uint32_t frequency;   /* ticks per second of CPU time, 1 to PROFILD_MOST_HZ; about */
	uint32_t except;      /* a thread of the sender, as the sender numbers it, or 0 */
	uint32_t range_count; /* 1 to PROFIL_RANGES */
	uint32_t unused;      /* 0 */
	uint64_t cell_count;  /* 1 to PROFIL_CELLS; each takes 8 bytes of profild's limit */
	struct profil_range ranges[];
};

/*
 * A START that succeeds brings SCM_RIGHTS with one descriptor: to mmap(2) shared, readable and
 * writable, the struct profil_page that are all that the client has (bpf/profil.h), profil_pages()
 * of them.
 */
struct profild_reply {
	uint32_t version;
	int32_t error;	    /* 0, or an errno */
	uint64_t period_ns; /* of START that succeeds: of CPU time between two ticks */
	char message[240];  /* why, for a person; ends with NUL; empty when all went well */
};

#endif
