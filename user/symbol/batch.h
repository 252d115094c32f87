/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_BATCH_H
#define PROFIL_SYMBOL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "symbol/symbol.h"
#include "util/error.h"

/* What symbol.c and the two readers (elf.c, kallsyms.c) exchange. */

/* One address that wants a name. */
struct batch_address {
	uint64_t address;  /* as in memory; a reader puts its own numbering in its place */
	uint32_t location; /* of the profile */
	uint32_t group;	   /* symbol.c's own */
};

/* All addresses of one image, or all of the kernel. */
struct batch {
	struct profile *p;
	uint32_t image;			 /* PROFILE_NONE: the kernel */
	struct batch_address *addresses; /* the reader may change their order */
	size_t count;			 /* and may lower this, dropping what it need not name */
	struct symbol_extent *extents; /* by location: wanted in place of names; NULL: names are */
	bool lines;		       /* source lines and inlined functions are wanted, too */
	bool (*stop)(void *context);   /* may be NULL */
	void *context;
	void (*progress)(size_t done, size_t count, const char *what, void *context); /* or NULL */
	size_t done, total;	       /* addresses of the batches before, and of all */
	struct debuginfod *debuginfod; /* NULL: servers are not asked for this image */
	struct symbol_cache *cache;    /* NULL: nothing is kept */
	struct error why; /* why some address stays without a name; why.what is "" at first */
	bool unwritten; /* whoever made the code can write names: runtimes_hints() go behind why */
	bool was_read;	/* the image's file: if it has no name for an address, nobody has */

	/* private to elf.c */
	bool proven; /* a build ID tells whether a file is the image */

	/* private to batch.c */
	const char *last_symbol;
	uint32_t last_function;
	bool stopped;
};

/* A reader. Returns 0, also when it names nothing, or -ENOMEM. */
typedef int batch_reader(struct batch *b);
batch_reader elf_resolve;
batch_reader kallsyms_resolve;

/* The same, from a file other than /proc/kallsyms, for tests. */
int kallsyms_resolve_from(struct batch *b, const char *path);

/* Whether to give up; stays true once it is. */
bool batch_stopped(struct batch *b);

/* Tells how many of the batch's addresses are done, and with what; NULL: with its image. */
void batch_progress(const struct batch *b, size_t done, const char *what);

void batch_sort(struct batch *b);

/* Of `count` sorted ones: the number of the first in [from, count) that is not below bound. */
size_t batch_lower_bound(const struct batch_address *addresses, size_t from, size_t count,
			 uint64_t bound);

/*
 * Names addresses[i]. symbol is the name as in the symbol table and must stay where it is until
 * the next call: a pointer seen in the call before is the same name. Returns 0 or -ENOMEM.
 */
int batch_name(struct batch *b, size_t i, const char *symbol);

/*
 * Names addresses[i] by the start of its function, which has no name, as profile_pc_name() does.
 * Returns 0 or -ENOMEM.
 */
int batch_name_by_start(struct batch *b, size_t i, uint64_t start);

/* Whether addresses[i] has a name, and not only by a start. */
bool batch_is_named(const struct batch *b, size_t i);

/* Whether batch_name() gives a function this system name for the symbol. */
bool batch_is_name(const char *name, const char *symbol);

#endif
