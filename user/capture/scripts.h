/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SCRIPTS_H
#define PROFIL_CAPTURE_SCRIPTS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/language.h"
#include "capture/process.h"
#include "util/index.h"

/* An address of a process, and the code objects that were there: memory is used again. */
struct script_place {
	uint64_t process, code;
	struct language_code **codes; /* ordered by time; each up to its last byte of lines */
	size_t count, room;
};

/*
 * The code objects that ticks came to, of all processes, as the BPF program sent them:
 * bpf/code_objects.h. Zero-initialised is empty.
 */
struct scripts {
	struct script_place *places;
	size_t count, room;
	struct index index; /* of the places */
	size_t bytes;
	uint64_t lost; /* how many had no room */
};

/* Adds a record of `size` bytes. Returns 0, also if there is no room, or -ENOMEM. */
int scripts_add(struct scripts *s, const void *record, size_t size);

/*
 * Returns what was at an address at a time: of the process with this key (bpf/unwind_table.h);
 * NULL: unknown. Valid until the next call of the others. Lowers *until_ns to when something else
 * was found there next.
 */
const struct language_code *scripts_find(const struct scripts *s, uint64_t process, uint64_t code,
					 uint64_t time_ns, uint64_t *until_ns);

/*
 * Removes those of processes that the table does not have, and all but the last one of each place.
 * Returns 0 or -ENOMEM.
 */
int scripts_forget(struct scripts *s, struct process_table *processes);

void scripts_free(struct scripts *s);

#endif
