/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_ASK_RUNTIMES_H
#define PROFIL_RECORD_ASK_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/capture.h"

/*
 * Asks the runtimes among the targets of a recording to write the names of the code that they have
 * compiled: HotSpot, see record/hotspot.h. A runtime is asked while it is recorded, since it may
 * end at any time and take its names along, and once more after the recording. The requests are
 * made by child processes, so that a runtime that hangs holds up nothing.
 */
struct runtime_asker;

struct runtime_asker *runtime_asker_new(void); /* NULL: out of memory */
void runtime_asker_free(struct runtime_asker *a);

/*
 * While recording, ten times a second: asks the runtimes that are due, and waits for none. Each is
 * asked less and less often, and writing its names takes 1 % of a CPU at most. True: one has
 * written names since the last call.
 */
bool runtime_asker_poll(struct runtime_asker *a, const struct capture *c);

/* After capture_stop(): asks all that are left once more. Takes some two seconds at most. */
void runtime_asker_finish(struct runtime_asker *a, const struct capture *c);

/* A runtime that was found. */
struct asked_runtime {
	const char *name; /* "Java" */
	pid_t pid;
	unsigned int answers;
	uint64_t longest_ns; /* until an answer */
	const char *why;     /* why the last request failed; "": it did not */
};

/*
 * Calls visit for each. `why` may hold a text of the runtime's: print it as untrusted.
 */
void runtime_asker_each(const struct runtime_asker *a,
			void (*visit)(const struct asked_runtime *runtime, void *context),
			void *context);

#endif
