/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_SYMBOL_H
#define PROFIL_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "util/error.h"

/* The kernel's symbols, for who asks for names again and again: they are read once a minute. */
struct symbol_cache;
struct symbol_cache *symbol_cache_new(void); /* NULL: memory has run out */
void symbol_cache_free(struct symbol_cache *cache);

/* Zero-initialised: functions by symbol tables, of all locations, without a word. */
struct symbol_options {
	bool lines;	 /* from DWARF: source lines, and the functions inlined there */
	bool debuginfod; /* hot images' symbols that are not here are asked for: symbol_check() */
	const bool *wanted;	    /* location_count of them: only these; NULL: all */
	struct symbol_cache *cache; /* NULL: nothing is kept from call to call */
	/* Asked now and then: once it says true the rest stays without names, which is no error. */
	bool (*stop)(void *context);
	/* Told now and then how many of the addresses are done, and what is worked on. */
	void (*progress)(size_t done, size_t count, const char *what, void *context);
	void *context; /* of both; each may be NULL */
};

/*
 * Whether names can be looked for like that, to be asked before long work begins. Returns 0 or a
 * negative errno: what debuginfod needs is missing.
 */
int symbol_check(const struct symbol_options *options, struct error *e);

/*
 * Gives every location without lines its function, as far as one can be found: from the image's
 * open file, else from its path (whose build ID must then be the recorded one), else from
 * separate debug files; kernel addresses from /proc/kallsyms. A function without a symbol gets the
 * name that profile_pc_name() makes of where its frame description begins, until there is a symbol.
 * With options->lines, also gives those that have a function alone their source line and what is
 * inlined there. Sets location.image_address of all locations. An image in which some address stays
 * without a symbol is told why in image.unnamed. Fills in build IDs that are not known.
 *
 * options may be NULL. Returns 0, -ENOMEM, or what symbol_check() returns.
 */
int symbol_resolve(struct profile *p, const struct symbol_options *options, struct error *e);

/* Where a function stands, in its image's own numbering. Both 0: not known. */
struct symbol_extent {
	uint64_t start;
	uint64_t limit;
};

/*
 * Finds the functions that hold some locations, by symbol tables, else by frame descriptions:
 * extents[i] becomes that of location i if wanted[i] (NULL: of all), and else stays as it is. Both
 * are location_count long. Locations in the kernel have none. An image whose file cannot be read is
 * told why in image.unnamed. Returns 0 or -ENOMEM.
 */
int symbol_extents(struct profile *p, const bool *wanted, struct symbol_extent *extents,
		   struct error *e);

#endif
