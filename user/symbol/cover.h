/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_COVER_H
#define PROFIL_SYMBOL_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/batch.h"

/*
 * Finds for each of a set of addresses the symbol that covers it. Symbols, of which there may be
 * millions, are offered once, in any order, and are not stored: memory is O(addresses), and a
 * symbol takes O(log addresses), however many addresses it covers.
 */

enum cover_binding {
	COVER_LOCAL,
	COVER_WEAK,
	COVER_GLOBAL
};

struct cover_symbol {
	uint64_t start;
	uint64_t limit; /* its end if sized, else that of its section, or the next symbol's start */
	const char *name;
	bool sized;    /* false: it ends at the next symbol, or at limit */
	bool function; /* false: a label */
	enum cover_binding binding;
};

struct cover {
	const struct batch_address *addresses;
	size_t count;
	struct cover_symbol *tree;    /* sized symbols, in a segment tree over the addresses */
	struct cover_symbol *nearest; /* by address: the last symbol that starts at or before it */
	uint64_t *next;		      /* by address: the start of the first symbol above it */
};

/* addresses: sorted; the caller owns them and leaves them unchanged. Returns 0 or -ENOMEM. */
int cover_init(struct cover *c, const struct batch_address *addresses, size_t count);
void cover_free(struct cover *c);

/* The caller keeps symbol->name. */
void cover_offer(struct cover *c, const struct cover_symbol *symbol);

/* To be called between the last cover_offer() and the first cover_find(). */
void cover_settle(struct cover *c);

/*
 * The symbol that covers address i, or NULL: sized symbols before others, then the innermost. The
 * result does not depend on the order of the offers.
 */
const struct cover_symbol *cover_find(const struct cover *c, size_t i);

#endif
