/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_FILE_CACHE_H
#define PROFIL_SYMBOL_FILE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "symbol/cover.h"

/*
 * What was read of files, for callers that resolve repeatedly: the symbols, the functions of call
 * frame information, and which files are not to be read again because they took too much. Files
 * are thrown out that were not used for ten minutes or CAPTURE_KEEP_WINDOWS, and those used least
 * recently when memory reaches a limit: for root's files and for users' apart, and for each user.
 */
struct file_cache;

/*
 * What all of root's files may take, and all users'. A megabyte holds the symbols of Python; the C
 * library's are a quarter of it.
 * Bound: users: bytes of symbols that are kept between windows, of all of root's or of all users'
 * files, of a file, and of a user; then: what was used least recently is read again; again: at the
 * next window; share: a user's own; root's apart from users'; seen: users_bytes, and CPU time and
 * symbol_files_unread.
 */
#define FILE_CACHE_GROUP_MAX ((size_t)16 << 20)

/* A file as it was when it was read. */
struct file_key {
	dev_t device;
	ino_t inode;
	uint64_t size;
	struct timespec changed;
	uid_t user; /* who chose what it holds; 0: root */
};

struct cfi_functions;
struct kept_symbol;

/* Symbols in the order in which they are offered, until they are sorted. Zero-initialised. */
struct kept_symbols {
	struct kept_symbol *all;
	size_t count, room;
	uint64_t *highest; /* by symbol: the highest limit of a sized one up to here */
	char *names;
	size_t names_size, names_room;
	/* Bound: state. */
	bool dropped; /* they are too many to be kept */
};

struct kept_file {
	struct file_key key;
	char why[256]; /* why it is not read again, or, with symbols, some addresses have none */
	/*
	 * Bound: users: a file whose symbols took more than one file may; then: it is not read
	 * again: its code has no names; again: when the file changes, or after KEEP_NS, twice that,
	 * and so on, up to a day: its debug file may be another;
	 * share: the file's own; seen: symbol_files_unread, and the reason with its code.
	 */
	bool is_refused; /* it is not to be read again until: */
	uint64_t refused_until_ns, refused_for_ns;
	bool has_symbols;
	/* With symbols: */
	struct kept_symbols symbols;
	bool of_itself;			 /* they come from its own symbol table */
	bool exports_only;		 /* see struct batch */
	struct cfi_functions *functions; /* NULL: none are kept */

	/* private to file_cache.c */
	struct kept_file *next;
	uint64_t read_ns, used_ns;
	uint32_t used_window;
	size_t bytes;
};

struct file_cache *file_cache_new(void);	/* NULL: out of memory */
void file_cache_free(struct file_cache *cache); /* NULL is fine */

/* Another window begins; where none ever does, files are kept for a time alone. */
void file_cache_begin_window(struct file_cache *cache);

/* What is kept of files of users other than root. */
size_t file_cache_users_bytes(const struct file_cache *cache);

/*
 * Finds or adds a file, which is valid until the next call. Returns NULL if memory runs out.
 * Also throws out other files.
 */
struct kept_file *file_cache_get(struct file_cache *cache, const struct file_key *key);

/* Has a file not read again, for twice as long as the last time. */
void file_cache_refuse(struct kept_file *file);

/* Adds a symbol while the file's tables are read. */
void file_cache_add(struct kept_symbols *symbols, const struct cover_symbol *symbol);
void kept_symbols_free(struct kept_symbols *symbols);

/* Keeps all symbols of a file, which it takes over, unless they take too much memory. */
void file_cache_keep_symbols(struct file_cache *cache, struct kept_file *file,
			     struct kept_symbols *symbols);

/*
 * Keeps the functions, too, which it takes over, unless they take too much memory. NULL: there are
 * none, and they are not to be read.
 */
void file_cache_keep_functions(struct file_cache *cache, struct kept_file *file,
			       struct cfi_functions *functions);

/* Offers those of the kept symbols that matter for c's addresses. */
void file_cache_offer(const struct kept_file *file, struct cover *c);

#endif
