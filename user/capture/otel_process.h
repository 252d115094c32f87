/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_OTEL_PROCESS_H
#define PROFIL_CAPTURE_OTEL_PROCESS_H

#include "capture/process.h"

/*
 * What a process says of itself for readers outside, as OpenTelemetry has it (OTEP 4719): its
 * service, and the names of the attributes that its threads have (OTEP 4947, bpf/context.h). It is
 * in a mapping with a name, which may be there at any time, and change.
 */

/*
 * Bytes of it, and names.
 * Bound: users: bytes of what a process says, and names of attributes; then: nothing of it is read,
 * or attributes have no label; again: when it says less; share: the process's own; seen: not seen.
 */
#define OTEL_PAYLOAD_MAX 32768
#define OTEL_NAMES_MAX	 256

/* Bound: format. */
#define OTEL_NAME_SIZE 64

struct otel_process {
	uint64_t address; /* of its header; 0: none was found yet */
	uint64_t published_ns;
	uint64_t next_ns, wait_ns; /* when to look again, and how much later the next time */
	char *service, *version;   /* NULL: none */
	size_t name_count;
	char (*names)[OTEL_NAME_SIZE]; /* small letters, digits and underscores, and points */
};

/* Has otel_look_soon() look at the process from now on. Returns 0 or -ENOMEM. */
int otel_watch(struct process_table *table, struct process *process);

/* Looks at those of which it is time. Returns 0 or -ENOMEM. */
int otel_look_soon(struct process_table *table);

/*
 * Reads what the process says now; if it has ended, or is not readable, what is known stays.
 * process->otel is set. Returns 0 or -ENOMEM.
 */
int otel_read(struct process_table *table, struct process *process);

/* Of a program that has ended. */
void otel_free(struct process *process);

/* Takes what was read: an opentelemetry.proto.resource.v1.Resource. Returns 0, -EINVAL or -ENOMEM.
 */
int otel_parse(struct otel_process *otel, const uint8_t *payload, size_t size);

#endif
