/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The protocol between profiltool and profild --record, which records processes on behalf of their
 * user: a SOCK_SEQPACKET unix socket. All fields are in the machine's byte order. Versions change
 * by the same rule as in lib/protocol.h: what never changes is struct record_ready and
 * RECORD_REFUSED, which may come before a version is chosen.
 *
 * profild sends the first message, RECORD_READY (struct record_ready), or RECORD_REFUSED. Then the
 * client sends one struct record_request with a pidfd of each process (SCM_RIGHTS): unlike a PID,
 * it cannot come to mean another process, and it means the same in every PID namespace. The request
 * carries SCM_CREDENTIALS of its sender, which the kernel fills in: it must be the process that
 * connected.
 *
 * When ticks are counted, profild sends RECORD_STARTED. The client ends the recording by
 * RECORD_STOP, and may ask for what was counted since the last time by RECORD_CUT if it has asked
 * for windows; each is one byte. profild answers with RECORD_RESULT, and then with that many bytes
 * of a pprof file without names, in messages of RECORD_CHUNK bytes at most. It sends the last
 * result by itself when the targets or the time have ended. When the client closes the connection,
 * the recording ends without a result. No descriptor of the kernel's counters, of eBPF or of a file
 * ever goes to the client.
 */
#ifndef PROFIL_RECORD_SERVICE_H
#define PROFIL_RECORD_SERVICE_H

#include <stdint.h>

#define RECORD_SOCKET "/run/profild/record"
#define RECORD_OLDEST 1 /* versions that are spoken */
#define RECORD_NEWEST 4
/* Bound: caller: processes of one recording through profild --record; then: it is refused. */
#define RECORD_TARGETS_MAX  64
#define RECORD_CHUNK	    65536
#define RECORD_MESSAGE_SIZE 512
/* Bound: caller: bytes of a --label, as profiltool sends it; then: it is refused. */
#define RECORD_LABEL_SIZE 320

enum record_flag {
	RECORD_FROM_EXEC = 1 << 0,  /* the process is to execute the program to record */
	RECORD_INHERIT = 1 << 1,    /* child processes are recorded, too */
	RECORD_USER = 1 << 2,	    /* only ticks in user mode count */
	RECORD_NATIVE = 1 << 3,	    /* stacks of scripts keep the frames of their interpreter */
	RECORD_CPUS = 1 << 4,	    /* samples have their CPU */
	RECORD_WALL = 1 << 5,	    /* the threads' wall times */
	RECORD_WAITS = 1 << 6,	    /* their waits; without windows */
	RECORD_WINDOWS = 1 << 7,    /* RECORD_CUT will be sent */
	RECORD_EVERY_WAIT = 1 << 8, /* version 2: waits have their times, however short */
	RECORD_CONTEXT = 1 << 9,    /* version 3: labels of known programs */
	RECORD_LITERAL = 1 << 10,   /* version 3: and their texts as they are */
	RECORD_FLAGS = (1 << 11) - 1,
};

struct record_request {
	uint32_t version;	/* one that both speak */
	uint32_t flags;		/* enum record_flag */
	uint32_t event;		/* enum capture_event */
	uint32_t stacks;	/* enum capture_stacks */
	uint32_t frequency;	/* Hz; 0: of the scheduler's tick */
	uint32_t waits_percent; /* as in struct capture_options */
	uint32_t target_count;	/* how many pidfds come with it */
	uint32_t label_count;	/* version 4: how many struct record_label follow; before: 0 */
};

/* What --label takes, NUL-terminated. */
struct record_label {
	char text[RECORD_LABEL_SIZE];
};

enum record_command {
	RECORD_STOP = 'S',
	RECORD_CUT = 'C',
};

enum record_type {
	RECORD_READY = 1,
	RECORD_STARTED,
	RECORD_RESULT,
	RECORD_REFUSED, /* or failed: profild closes the connection */
};

enum record_end {
	RECORD_GOES_ON,	      /* a window's result */
	RECORD_ENDED,	      /* as the client has asked */
	RECORD_TARGETS_ENDED, /* or are not the user's any more */
	RECORD_TIME_IS_OVER,  /* profild allows no longer recording */
};

struct record_reply {
	uint32_t version;		   /* the request's; of REFUSED: RECORD_READY_VERSION */
	uint32_t type;			   /* enum record_type */
	uint32_t kind;			   /* of REFUSED: enum error_kind */
	int32_t error;			   /* of REFUSED: an errno */
	uint32_t end;			   /* of RESULT: enum record_end */
	uint32_t waits;			   /* of STARTED: 1: waits are recorded */
	uint64_t size;			   /* of RESULT: bytes that follow */
	char message[RECORD_MESSAGE_SIZE]; /* NUL-terminated; of STARTED: why waits are not */
};

/* The first message: a struct record_reply of version 1, which says more. */
#define RECORD_READY_VERSION 1
struct record_ready {
	uint32_t version; /* RECORD_READY_VERSION */
	uint32_t type;	  /* RECORD_READY */
	uint32_t oldest;  /* the versions that profild speaks; both 0: version 1 */
	uint32_t newest;
	char unused[sizeof(struct record_reply) - 16];
};

#endif
