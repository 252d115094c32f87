/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_COVER_H
#define PROFIL_SYMBOL_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/batch.h"

/*
 * Which of very many symbols covers each of some addresses. The symbols pass by once, in any
 * order, and are not kept: memory follows the addresses, and every symbol costs O(log addresses),
 * however many addresses it covers.
 */

enum cover_binding {
	COVER_LOCAL,
	COVER_WEAK,
	COVER_GLOBAL
};

struct cover_symbol {
	uint64_t start;
	uint64_t limit; /* where it ends at the latest: by its size, else the section's end */
	const char *name;
	bool sized;    /* false: it ends where the next symbol starts, at the latest at limit */
	bool function; /* false: some label */
	enum cover_binding binding;
};

struct cover {
	const struct batch_address *addresses;
	size_t count;
	struct cover_symbol *tree;    /* a segment tree over the addresses, of sized symbols */
	struct cover_symbol *nearest; /* per address: the last symbol of any kind before it */
};

/* addresses: sorted, the caller's, and unchanged while cover lives. Returns 0 or -ENOMEM. */
int cover_init(struct cover *c, const struct batch_address *addresses, size_t count);
void cover_free(struct cover *c);

/* name is not copied. */
void cover_offer(struct cover *c, const struct cover_symbol *symbol);

/* After the last offer, before the first question. */
void cover_settle(struct cover *c);

/*
 * The symbol that covers address i, or NULL. A symbol with a size goes before one without; then
 * the innermost wins. The choice does not depend on the order of the offers.
 */
const struct cover_symbol *cover_find(const struct cover *c, size_t i);

#endif
