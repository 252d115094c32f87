// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Names are compared up to here: a malicious string table may be one name of a gigabyte.
 * Bound: files: bytes of two names that are compared to choose one; then: the first is chosen;
 * seen: not seen.
 */
#define COMPARED_MAX 256

int cover_init(struct cover *c, const struct batch_address *addresses, size_t count)
{
	*c = (struct cover){ .addresses = addresses, .count = count };
	c->tree = calloc(count ? count : 1, 2 * sizeof(*c->tree));
	c->nearest = calloc(count ? count : 1, sizeof(*c->nearest));
	c->next = calloc(count ? count : 1, sizeof(*c->next));
	if (c->tree && c->nearest && c->next) {
		memset(c->next, 0xff, count * sizeof(*c->next));
		return 0;
	}
	cover_free(c);
	return -ENOMEM;
}

void cover_free(struct cover *c)
{
	free(c->tree);
	free(c->nearest);
	free(c->next);
	*c = (struct cover){ 0 };
}

static size_t underscores(const char *name)
{
	size_t n = 0;

	while (n < COMPARED_MAX && name[n] == '_')
		n++;
	return n;
}

/* Without the "@VERSION" that linkers append in .symtab, but not in .dynsym. */
static size_t unversioned_length(const char *name)
{
	size_t length = strnlen(name, COMPARED_MAX);
	const char *at = memchr(name, '@', length);

	return at ? (size_t)(at - name) : length;
}

/*
 * Chooses between aliases. Fewer leading underscores count more than strong over weak, because C
 * libraries make the public name a weak alias of an internal one. Of names that are equal in all
 * that, the shortest is the one that others print.
 */
static bool better_name(const struct cover_symbol *a, const struct cover_symbol *b)
{
	size_t x, y;

	if (a->function != b->function)
		return a->function;
	if ((a->binding == COVER_LOCAL) != (b->binding == COVER_LOCAL))
		return b->binding == COVER_LOCAL;
	x = underscores(a->name);
	y = underscores(b->name);
	if (x != y)
		return x < y;
	if (a->binding != b->binding)
		return a->binding > b->binding;
	/* glibc has free and cfree, __GI___clone3 and __clone3. */
	x = unversioned_length(a->name);
	y = unversioned_length(b->name);
	if (x != y)
		return x < y;
	return strncmp(a->name, b->name, COMPARED_MAX) < 0;
}

/*
 * Chooses the inner of two symbols that cover an address, or the nearer of two before it; of the
 * same start the sized one.
 */
static bool is_better(const struct cover_symbol *a, const struct cover_symbol *b)
{
	if (!b->name)
		return true;
	if (a->start != b->start)
		return a->start > b->start;
	if (a->sized != b->sized)
		return a->sized;
	if (a->sized && a->limit != b->limit)
		return a->limit < b->limit;
	return better_name(a, b);
}

static void offer_node(struct cover_symbol *node, const struct cover_symbol *symbol)
{
	if (is_better(symbol, node))
		*node = *symbol;
}

void cover_offer(struct cover *c, const struct cover_symbol *symbol)
{
	size_t first = batch_lower_bound(c->addresses, 0, c->count, symbol->start), left, right;

	if (first && symbol->start < c->next[first - 1])
		c->next[first - 1] = symbol->start;
	if (first == c->count)
		return;
	if (is_better(symbol, &c->nearest[first]))
		c->nearest[first] = *symbol;
	if (!symbol->sized || c->addresses[first].address >= symbol->limit)
		return;
	/* The O(log n) nodes of the tree that make up the addresses that it covers. */
	left = first + c->count;
	right = batch_lower_bound(c->addresses, first, c->count, symbol->limit) + c->count;
	for (; left < right; left /= 2, right /= 2) {
		if (left % 2)
			offer_node(&c->tree[left++], symbol);
		if (right % 2)
			offer_node(&c->tree[--right], symbol);
	}
}

void cover_settle(struct cover *c)
{
	for (size_t i = 1; i < c->count; i++)
		if (!c->nearest[i].name)
			c->nearest[i] = c->nearest[i - 1];
	for (size_t i = c->count; i-- > 0;) {
		struct cover_symbol *nearest = &c->nearest[i];

		if (i + 1 < c->count && c->next[i + 1] < c->next[i])
			c->next[i] = c->next[i + 1];
		if (!nearest->sized && c->next[i] < nearest->limit)
			nearest->limit = c->next[i];
	}
}

const struct cover_symbol *cover_find(const struct cover *c, size_t i)
{
	const struct cover_symbol *best = NULL, *nearest = &c->nearest[i];

	for (size_t node = i + c->count; node; node /= 2)
		if (c->tree[node].name && (!best || is_better(&c->tree[node], best)))
			best = &c->tree[node];
	if (best)
		return best;
	if (nearest->name && !nearest->sized && c->addresses[i].address < nearest->limit)
		return nearest;
	return NULL;
}
