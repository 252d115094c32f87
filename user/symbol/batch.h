/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_BATCH_H
#define PROFIL_SYMBOL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/profile.h"
#include "symbol/symbol.h"
#include "util/error.h"
#include "util/read_budget.h"

/* What symbol.c and the readers (elf.c, jit.c, kallsyms.c) exchange. */

/* An address to resolve. */
struct batch_address {
	uint64_t address;  /* in memory; elf.c replaces it by the ELF virtual address */
	uint32_t location; /* of the profile */
	uint32_t group;	   /* private to symbol.c */
};

/* All addresses of one image, or all of the kernel. */
struct batch {
	struct profile *p;
	uint32_t image;			 /* PROFILE_NONE: the kernel */
	struct batch_address *addresses; /* the reader may reorder them */
	size_t count;			 /* the reader may lower it, to drop addresses */
	struct symbol_extent *extents;	 /* by location: set these instead of names; or NULL */
	struct symbol_options o;	 /* the callers' */
	size_t done, total;		 /* addresses in the batches before; in all batches */
	struct file_limits *limits;	 /* of all batches; NULL: none */
	struct debuginfod *debuginfod;	 /* NULL: do not ask servers for this image */
	uint64_t *checksum_bytes;  /* debug_file_find(): of all batches; only elf.c needs it */
	const uint32_t *same_code; /* build_id_circles(); NULL: look at no other image */
	/*
	 * Of the kernel: where it had the symbol _text when the profile was recorded, which may
	 * have been in another boot; 0: this is the recording.
	 */
	uint64_t kernel_text;
	struct error why; /* set by the reader: why some addresses have no name; "" at first */
	bool unwritten;	  /* the code's runtime can write names: add runtimes_hints() to why */
	bool was_read;	  /* the image's file was read */

	/* set by batch_begin_reading() */
	struct read_budget *budget; /* of the image; NULL: no limit */
	struct kept_file *kept;	    /* of the image's file; NULL: nothing is kept */
	/* Bound: as WINDOW_BYTES. */
	bool is_unread; /* because of limits */

	/* private to elf.c and symbol_table.c */
	struct kept_symbols *recording; /* gets what is offered; NULL: nothing does */
	bool proven;			/* a build ID proves that a file is the image */
	bool exports_only;		/* other functions have no symbols */
	/* Code of which another table has the functions: symbols there are not offered. Both 0:
	 * none */
	uint64_t excluded_start, excluded_limit;

	/* private to batch.c */
	struct read_budget given;
	uid_t user; /* whose file it is; 0: root's, or the caller's */
	const char *last_symbol;
	uint32_t last_function;
	bool stopped;
};

struct file_cache *symbol_cache_files(struct symbol_cache *cache);

/* A reader: names a batch's addresses. Returns 0, also if it names none, or -ENOMEM. */
typedef int batch_reader(struct batch *b);
batch_reader elf_resolve;

/* The same from the image's file, whose descriptor it takes over. */
int elf_resolve_from(struct batch *b, int fd);

/*
 * Three seconds. Only debug files without a build ID, as of tools of 2007, need any.
 * Bound: files: bytes of debug files without a build ID that are read to compare their checksums;
 * then: further ones are not used.
 */
#define SYMBOL_CHECKSUM_BYTES ((uint64_t)1024 * 1024 * 1024)

batch_reader kallsyms_resolve;

/* Reads the running kernel's build ID. Returns its size; 0: unknown. */
size_t kallsyms_build_id(uint8_t bytes[static PROFILE_BUILD_ID_MAX]);

/* For tests: the same from another file than /proc/kallsyms; NULL: that. */
int kallsyms_resolve_from(struct batch *b, const char *path);

/* As file_open_regular(), by b->o.open where there is one. user: who may have provided the file. */
int batch_open(const struct batch *b, uid_t user, int root, const char *path, struct stat *status);

/* Whether to stop; once true it stays true. */
bool batch_stopped(struct batch *b);

/*
 * Before an image's file is read: finds what is kept of it, and sets what reading it may cost.
 * False: it is not to be read, and b->why says why.
 */
bool batch_begin_reading(struct batch *b, int fd);

/*
 * Accounts for what was read. If it was more than the budget, sets b->why, and remembers a file
 * that takes more than any may. Also to be called if the file was not to be read. Returns 0 or
 * -ENOMEM.
 */
int batch_end_reading(struct batch *b);

/* Notes and reports an image whose file was not read, because of limits. */
void batch_note_unread(struct batch *b);

/* Reports that `done` of the batch's addresses are resolved. what: NULL for the image's name. */
void batch_progress(const struct batch *b, size_t done, const char *what);

void batch_sort(struct batch *b);

/* The first i >= from of `count` sorted addresses that is not below bound; `count`: none. */
size_t batch_lower_bound(const struct batch_address *addresses, size_t from, size_t count,
			 uint64_t bound);

/*
 * Names addresses[i]. symbol: as in the symbol table. The caller keeps it until the next call,
 * where the same pointer means the same name. Returns 0 or -ENOMEM.
 */
int batch_name(struct batch *b, size_t i, const char *symbol);

/*
 * Names addresses[i], in a function without a symbol, by the function's start: profile_pc_name().
 * Returns 0 or -ENOMEM.
 */
int batch_name_by_start(struct batch *b, size_t i, uint64_t start);

/* Whether addresses[i] has a name other than one by batch_name_by_start(). */
bool batch_is_named(const struct batch *b, size_t i);

/* Whether `name` is the system name that batch_name() gives to a symbol. */
bool batch_is_name(const char *name, const char *symbol);

#endif
