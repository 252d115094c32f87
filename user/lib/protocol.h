/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
/*
 * The protocol between libprofil and profild: a SOCK_SEQPACKET unix socket, one message for each
 * request and one for each reply. All fields are in the machine's byte order, at their offsets in
 * 64-bit programs.
 *
 * profild sends the first message, struct profild_hello: a reply to the connection itself. If that
 * has an error, profild closes the connection. The client sends nothing before it has read that
 * reply, and no request before it has read the reply to the one before; otherwise profild closes
 * the connection.
 *
 * So every request is sent after profild has accepted the connection. It carries SCM_CREDENTIALS of
 * its sender, which the kernel fills in (profild's socket has SO_PASSCRED). When it accepts,
 * profild opens a pidfd of the process that has connected: as long as that process lives, its PID
 * is no other process's. profild counts for a process about itself only; a child that inherits the
 * connection must open its own. profild closes the connection of a client that sends descriptors.
 *
 * One connection is one histogram. The histogram ends with STOP, when the connection is closed
 * (also by exec: the client's socket is close-on-exec), and when the process executes another
 * program or ends. The map that the client gets counts against its user's memory limit until no
 * process has it mapped or open.
 *
 * How versions change. A program that has libprofil.a in it keeps its version for ever, so profild
 * may be older or newer than any client:
 *
 * - struct profild_hello keeps its size, layout and version for ever. It says which versions
 *   profild speaks. The client chooses the newest that it speaks, too, and writes it into each
 *   request; the reply is of the request's version.
 * - The first two fields of a request and of a reply stay what they are and where they are.
 * - A version does not change. What changes a message, what a field may hold or means, or the map
 *   (bpf/profil.h), is a new version: PROFILD_NEWEST. profild goes on to speak the ones before, and
 *   libprofil to speak them to an older profild.
 * - A version is given up (PROFILD_OLDEST) with a new major version of profil only, and NEWS.md
 *   says so. Both sides then refuse it by name, and say which ones they speak.
 *
 * tests/profil/protocol.py has the bytes of each version: to be added to, never to be changed.
 */
#ifndef PROFIL_LIB_PROTOCOL_H
#define PROFIL_LIB_PROTOCOL_H

#include <stdint.h>

#include "bpf/profil.h"

#define PROFILD_SOCKET "/run/profild/socket"
#define PROFILD_OLDEST 3 /* versions that are spoken; those before were never released */
#define PROFILD_NEWEST 3
/* Bound: caller: ticks per second of profil() through profild; then: the call fails: EINVAL. */
#define PROFILD_MOST_HZ 10000

/* The first message: a struct profild_reply of version 3, which says more. */
#define PROFILD_HELLO_VERSION 3
struct profild_hello {
	uint32_t version; /* PROFILD_HELLO_VERSION */
	int32_t error;	  /* 0 or an errno */
	uint32_t oldest;  /* the versions that profild speaks; both 0: version 3 */
	uint32_t newest;
	uint64_t unused; /* 0 */
	char message[240];
};

enum {
	/* Starts to count; if the connection counts already, with a new histogram. */
	PROFILD_START = 1,
	/*
	 * Stops counting: after the reply no tick is counted, except one that had begun. Once
	 * `done` equals `ticks` in struct profil_state, the counts do not change any more.
	 */
	PROFILD_STOP = 2,
};

struct profild_request {
	uint32_t version; /* one that both speak */
	uint32_t type;
	/* For START; otherwise 0, without ranges. */
	uint32_t frequency;   /* approximate ticks per second of CPU time, 1 to PROFILD_MOST_HZ */
	uint32_t except;      /* a thread of the sender not to count, by its ID there; 0: none */
	uint32_t range_count; /* 1 to PROFIL_RANGES */
	uint32_t unused;      /* 0 */
	uint64_t cell_count;  /* 1 to PROFIL_CELLS; each takes 8 bytes of the user's memory limit */
	struct profil_range ranges[];
};

/*
 * The reply to a START that succeeds has one descriptor (SCM_RIGHTS) of a map of profil_pages()
 * struct profil_page (bpf/profil.h), which the client maps by mmap(2), shared, readable and
 * writable.
 */
struct profild_reply {
	uint32_t version;  /* the request's; PROFILD_NEWEST if profild does not speak that */
	int32_t error;	   /* 0 or an errno */
	uint64_t tick_ns;  /* of a START that succeeds: the CPU time that a tick stands for */
	uint64_t wait_ns;  /* sleep so long, or a new clock's first tick is late; at most 0.1 s */
	char message[240]; /* the reason of the error, NUL-terminated; "" without one */
};

/* The newest version that profild and a client of these versions speak; 0: none. */
static inline uint32_t profild_choose_version(const struct profild_hello *hello, uint32_t oldest,
					      uint32_t newest)
{
	uint32_t first = hello->oldest ? hello->oldest : PROFILD_HELLO_VERSION;
	uint32_t last = hello->newest ? hello->newest : PROFILD_HELLO_VERSION;
	uint32_t version = last < newest ? last : newest;

	return version >= first && version >= oldest ? version : 0;
}

#endif
