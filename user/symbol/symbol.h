/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_SYMBOL_H
#define PROFIL_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "profile/profile.h"
#include "util/error.h"

/*
 * Symbols of files and, but for windows, of the kernel, kept for callers that resolve repeatedly.
 * The kernel's are read again after a minute.
 */
struct symbol_cache;
struct symbol_cache *symbol_cache_new(void); /* NULL: out of memory */
void symbol_cache_free(struct symbol_cache *cache);

/* Zero-initialised: resolves functions of all locations, by symbol tables. */
struct symbol_options {
	bool lines;	    /* also resolve source lines and inlined functions */
	bool debuginfod;    /* ask servers for missing symbols of hot images; see symbol_check() */
	const bool *wanted; /* by location: which to resolve; NULL: all */
	struct symbol_cache *cache; /* NULL: keep nothing between calls */
	/*
	 * The process that reads files (symbol/parser.h), and keeps what it has read for windows:
	 * the cache is then for the kernel's symbols alone. NULL: this one reads them.
	 */
	struct parser *parser;
	/*
	 * The length of the window that the profile is of: limits what reading files may take, in
	 * all, for one user and for one file, and remembers in the cache which files took too much.
	 * 0: this is no window, and there is no limit.
	 */
	uint64_t window_ns;
	/* Called for each image whose file was not read, or not to its end, because of limits. */
	void (*unread)(const char *path, const char *why, void *context);
	/* Called repeatedly. Once it returns true, the rest stays unnamed; that is no error. */
	bool (*stop)(void *context);
	/* Called repeatedly: `done` of `count` addresses; what: the image being resolved. */
	void (*progress)(size_t done, size_t count, const char *what, void *context);
	/*
	 * Opens a file by its path as file_open_regular() does, for a user whose file system may
	 * never answer (0: root's). NULL: it is waited for.
	 */
	int (*open)(uid_t user, int root, const char *path, struct stat *status, void *context);
	void *context; /* for unread(), stop(), progress() and open(), each of which may be NULL */
};

/*
 * Checks before long work that these options can be used. Returns 0, or a negative errno and sets
 * e: debuginfod lacks something.
 */
int symbol_check(const struct symbol_options *options, struct error *e);

/* What image.unnamed has at its end where the file's debug symbols would give names. */
#define SYMBOL_DEBUG_HINT "; its debug package or --debuginfod has them"

/* What --debuginfod needs. */
#define SYMBOL_SERVER_HINT "export DEBUGINFOD_URLS=https://debuginfod.debian.net"

/*
 * Sets the function of every location that has no lines yet, if it can be found. Symbols of an
 * image come from its open file, else from the file at its path, which must have the recorded build
 * ID, else from separate debug files; those of Go from Go's own table; those of the kernel from
 * /proc/kallsyms. A function without a symbol gets the name that profile_pc_name() makes of the
 * start of its frame description entry; a later call replaces that by a symbol. With
 * options->lines, locations that have only a function also get their source line and inlined
 * functions, from DWARF, else from Go's table.
 *
 * Also sets location.image_address of all locations, image.unnamed (why some address has no symbol)
 * and unknown build IDs. options may be NULL. Returns 0, -ENOMEM, or what symbol_check() returns.
 */
int symbol_resolve(struct profile *p, const struct symbol_options *options, struct error *e);

/* The addresses of a function, as image_address. Both 0: unknown. */
struct symbol_extent {
	uint64_t start;
	uint64_t limit;
};

/*
 * Sets extents[i] to the function around location i if wanted[i] is true (wanted == NULL: for all),
 * by symbol tables, else by frame description entries. Both arrays have location_count elements.
 * Kernel locations have no extent. If an image's file cannot be read, image.unnamed says why.
 * Returns 0 or -ENOMEM.
 */
int symbol_extents(struct profile *p, const bool *wanted, struct symbol_extent *extents,
		   struct error *e);

#endif
