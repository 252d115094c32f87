/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of one function: shared by the sample programs and user space. Includes nothing. */
#ifndef PROFIL_BPF_CALL_H
#define PROFIL_BPF_CALL_H

/* An outermost call of the function, which has ended: a record of the ring buffer. */
struct call_record {
	unsigned long long id;		       /* sample.h */
	unsigned long long pc;		       /* where the function begins */
	unsigned long long since_ns, until_ns; /* CLOCK_MONOTONIC */
};

/*
 * Bound: users: bytes of calls on their way to user space; then: the call is not recorded; again:
 * at the next reading, ten times a second; share: none; seen: calls_lost.
 */
#define CALL_RING_BYTES (1U << 20)

#endif
