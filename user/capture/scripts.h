/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SCRIPTS_H
#define PROFIL_CAPTURE_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/language.h"
#include "capture/process.h"
#include "util/index.h"

struct script_code {
	struct language_code *what; /* up to its last byte of lines */
	uint32_t before;	    /* number of what was at this address before, or INDEX_NONE */
};

/*
 * The code objects that ticks came to, of all processes, as the BPF program sent them:
 * bpf/python.h. Zero-initialised is empty.
 */
struct scripts {
	struct script_code *codes;
	size_t count, room;
	struct index index; /* the last one at each address */
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

/* Removes those of processes that the table does not have. Returns 0 or -ENOMEM. */
int scripts_forget(struct scripts *s, struct process_table *processes);

void scripts_free(struct scripts *s);

#endif
