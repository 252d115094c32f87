/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_SCRIPTS_H
#define PROFIL_CAPTURE_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/script/language.h"
#include "capture/process.h"
#include "util/index.h"

/*
 * Of a recording with an end, and always on: there a user other than root has no more than
 * SCRIPTS_USER_BYTES, which is enough for 10,000 functions, or for 1,000 in each of 100 workers.
 * Bound: users: bytes of the names of scripts' functions; then: the one with the most loses what
 * was used least recently, or gets no more: these have the language as their name; again: when the
 * next window begins; share: as much as others leave, and no less than they have; always on half to
 * a user other than root; seen: codes_lost in the summary, script_names in --status.
 */
#define SCRIPTS_BYTES_MAX	((size_t)64 << 20)
#define SCRIPTS_BYTES_ALWAYS_ON ((size_t)32 << 20)
#define SCRIPTS_USER_BYTES	((size_t)16 << 20)

/* What names code objects, each once for a user: forked processes have the same ones. */
struct script_text {
	uint32_t number, references;
	uint64_t hash; /* 0: it is not shared, as more of its line table may follow */
	struct script_user *user;
	struct language_code code; /* up to its last byte of lines; its process and time are 0 */
};

/* An address of a process, and the code objects that were there: memory is used again. */
struct script_place {
	uint64_t process, code;
	struct script_version {
		uint64_t time_ns, mark;
		struct script_text *text;
	} * versions; /* ordered by time; at least one */
	uint32_t count;
	uint32_t number;
	uint32_t used; /* in which window a tick came to it last, as far as is known */
	struct script_user *user;
	struct script_place *newer, *older; /* of the user's, by when they were used */
};

struct script_user {
	uint32_t uid;
	uint32_t number;
	size_t bytes;
	struct script_place *newest, *oldest; /* NULL: it has none */
	/* Code objects that had no room, or were dropped in the window of a tick, in this one. */
	uint64_t lost;
};

/*
 * The code objects that ticks came to, of all processes, as the BPF program sent them:
 * bpf/script/code_objects.h. Zero-initialised is empty.
 *
 * Users share the room. Who has the most gives way, what was used least recently first, to those
 * who have less. Who has the most himself replaces only what no tick came to since the last window,
 * and the rest is refused until this window ends.
 */
struct scripts {
	size_t bytes_max; /* 0: SCRIPTS_BYTES_MAX */
	size_t user_max;  /* of one user other than root; 0: bytes_max */
	/* Clears what does not matter in a code object, and differs: NULL: nothing. */
	void (*trim)(struct language_code *code);
	/* Called for each that is dropped: the BPF program has to send it again. */
	void (*dropped)(uint64_t process, uint64_t code, void *context);
	void *context;

	/* Private: */
	struct script_place **places;
	struct script_text **texts;
	struct script_user **users;
	size_t place_count, place_room, text_count, text_room, user_count, user_room;
	struct index by_address, by_content, by_uid;
	size_t bytes;
	uint32_t window; /* its number */
	uint64_t lost;	 /* of all users, in this window */
	/* Some, in this window. Bound: as SCRIPTS_BYTES_MAX. */
	bool refused;
};

/* Adds a record of `size` bytes. Returns 0, also if there is no room, or -ENOMEM. */
int scripts_add(struct scripts *s, const void *record, size_t size);

/*
 * Returns what was at an address at a time: of the process with this key (bpf/unwind_table.h),
 * which began at since_ns or before, and had ended by *until_ns; NULL: unknown. Valid until the
 * next call of the others. Lowers *until_ns to when something else was found there next.
 */
const struct language_code *scripts_find(struct scripts *s, uint64_t process, uint64_t code,
					 uint64_t since_ns, uint64_t time_ns, uint64_t *until_ns);

/*
 * After a window, which began at begin_ns: drops what is of processes that the table does not have,
 * what others had replaced by then, and where no tick came for CAPTURE_KEEP_WINDOWS. Returns
 * whether something was refused in the window: then the BPF program has to send all again that it
 * has sent.
 */
bool scripts_forget(struct scripts *s, const struct process_table *processes, uint64_t begin_ns);

/* The bytes of all users other than root. */
size_t scripts_users_bytes(const struct scripts *s);

/* Returns how many code objects had no room since the last call, and adds them to users' refusals.
 */
uint64_t scripts_take_losses(struct scripts *s, struct refusals *refusals);

void scripts_free(struct scripts *s);

#endif
