/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_PARSER_H
#define PROFIL_SYMBOL_PARSER_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/unwind/unwind_rows.h"
#include "symbol/file_limits.h"
#include "util/error.h"

/*
 * A process without rights (util/confine.h) that reads the files of all users: rows of call frame
 * information, and names. It gets open files, and what it answers is checked before it is used: a
 * file may have taken it over. It asks back for debug files, and gets those alone that belong to
 * the file. One that ends, that waits for a file for too long, or whose answer is invalid is
 * killed, and another one starts with the next file.
 *
 * What is refused for it, and for how long:
 * - the file with which it ended: ten minutes, or one minute if it was waited for;
 * - all files of a user with whose files it ended USER_ENDS_MAX times in a minute;
 * - all files of root, or of all other users, after ENDS_MAX times in a minute.
 * One that was killed and is still there, as its file system does not answer, counts until it is
 * gone.
 */
struct parser;

/* Starts it, while this process is small. Returns 0, or a negative errno and sets e. */
int parser_new(struct parser **out, struct error *e);
void parser_free(struct parser *p); /* NULL is fine */

/* How many have ended unasked. */
uint64_t parser_ends(const struct parser *p);

/* What it keeps of the files of users other than root, FILE_CACHE_GROUP_MAX at most. */
uint64_t parser_users_bytes(const struct parser *p);

/* Its number; 0: none runs. */
pid_t parser_pid(const struct parser *p);

/* The reader of rows; parser == NULL: this process reads the file itself. */
unwind_reader parser_read_rows;

/* Names of a batch (symbol/batch.h), from an open file of the caller. */
struct batch;

/* Before the batches of a profile. window_ns: as in struct symbol_options. */
void parser_begin(struct parser *p, uint64_t window_ns);

/* After them: it gives back the memory that they took. */
void parser_rest(struct parser *p);

/* As elf_resolve_from() and jit_resolve_from(), in the parser. Returns 0 or -ENOMEM. */
int parser_resolve(struct batch *b, int fd, bool is_jit);

/*
 * The messages of names, for parser.c and for tests: each side packs what the other unpacks. The
 * recorder's side of the unpacking changes nothing if the answer is invalid.
 */
struct pack;
struct unpack;

/* What the parser keeps between requests. */
struct names_session {
	struct symbol_cache *cache;
	uint64_t number; /* of the profile, from 1 on */
	struct file_limits limits;
	uint64_t checksum_bytes;
};

void names_pack_request(struct pack *k, const struct batch *b, uint64_t session, uint64_t window_ns,
			bool is_jit);

/* Answers a request; closes fd. Returns 0, -ENOMEM or -EBADMSG. */
int names_answer(struct unpack *u, struct names_session *session, int fd, struct pack *answer);

/* Takes the answer to names_pack_request(). Returns 0, -ENOMEM or -EBADMSG. */
int names_unpack_answer(struct unpack *u, struct batch *b);

/* The same of rows. */
void rows_pack(struct pack *k, const struct unwind_rows *rows);
int rows_unpack(struct unpack *u, struct unwind_rows *rows);

#endif
