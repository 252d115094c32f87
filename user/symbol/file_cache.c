// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/file_cache.h"

#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "symbol/cfi/cfi.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/index.h"
#include "util/order.h"

#define MIB ((size_t)1024 * 1024)

/* Bound: as FILE_CACHE_GROUP_MAX. */
#define FILE_MAX (8 * MIB)
#define USER_MAX (8 * MIB)

/*
 * Each file counts for at least this: a user can make any number of small ones, and 2,048 are
 * looked through, for the one that was used least recently, in some 10 us.
 */
#define FILE_LEAST ((size_t)8 * 1024)

/* Longer names are truncated in profiles of windows. Bound: as WINDOW_NAME_SIZE. */
#define NAME_MAX_KEPT ((size_t)4096)

/*
 * Bound: users: time that unused symbols are kept, unless CAPTURE_KEEP_WINDOWS are shorter, and
 * those of a debug file at all; then: they are read again; again: at the next window; share: the
 * file's own; seen: not seen, but as CPU time.
 */
#define KEEP_NS (600 * NS_PER_S)
/* Bound: as is_refused. */
#define REFUSED_NS_MAX (24 * 3600 * NS_PER_S)

struct kept_symbol {
	uint64_t start, limit;
	uint32_t name; /* in names */
	uint8_t binding;
	bool sized, function;
};

/* Bound: size. */
#define BUCKETS 1024

/* Bound: as FILE_CACHE_GROUP_MAX. */
struct file_cache {
	struct kept_file *buckets[BUCKETS];
	uint64_t next_sweep_ns;
	uint32_t window; /* its number; 0: without windows */
};

struct file_cache *file_cache_new(void)
{
	return calloc(1, sizeof(struct file_cache));
}

void kept_symbols_free(struct kept_symbols *symbols)
{
	free(symbols->all);
	free(symbols->highest);
	free(symbols->names);
	*symbols = (struct kept_symbols){ 0 };
}

static void remove_file(struct kept_file **link)
{
	struct kept_file *file = *link;

	*link = file->next;
	kept_symbols_free(&file->symbols);
	if (file->functions)
		cfi_functions_free(file->functions);
	free(file->functions);
	free(file);
}

void file_cache_free(struct file_cache *cache)
{
	for (size_t i = 0; cache && i < BUCKETS; i++)
		while (cache->buckets[i])
			remove_file(&cache->buckets[i]);
	free(cache);
}

/* What a debug file or its absence has decided may be otherwise when a package was installed. */
static bool is_old(const struct file_cache *cache, const struct kept_file *file, uint64_t now)
{
	return now - file->used_ns > KEEP_NS ||
	       cache->window - file->used_window >= CAPTURE_KEEP_WINDOWS ||
	       (file->has_symbols && !file->of_itself && now - file->read_ns > KEEP_NS);
}

/*
 * Makes room for `bytes` more of a file of key's user: the only place where files are thrown out,
 * but for the end of the cache. First all old ones; then those that were used least recently, until
 * the limits hold: of this user, else of root or of all users. Never throws out `but`. Returns
 * whether there is room.
 */
static bool make_room(struct file_cache *cache, const struct file_key *key, size_t bytes,
		      const struct kept_file *but)
{
	uint64_t now = now_ns();

	if ((but ? but->bytes : 0) + bytes > FILE_MAX)
		return false;
	for (;;) {
		struct kept_file **oldest_of_user = NULL, **oldest = NULL;
		size_t user_bytes = bytes, group_bytes = bytes;

		for (size_t i = 0; i < BUCKETS; i++)
			for (struct kept_file **link = &cache->buckets[i]; *link;) {
				const struct kept_file *file = *link;
				bool stays = but && file == but;

				if (!stays && is_old(cache, file, now)) {
					remove_file(link);
					continue;
				}
				if (!file->key.user == !key->user) {
					group_bytes += file->bytes;
					if (!stays &&
					    (!oldest || file->used_ns < (*oldest)->used_ns))
						oldest = link;
				}
				if (file->key.user == key->user) {
					user_bytes += file->bytes;
					if (!stays && (!oldest_of_user ||
						       file->used_ns < (*oldest_of_user)->used_ns))
						oldest_of_user = link;
				}
				link = &(*link)->next;
			}
		if (key->user && user_bytes > USER_MAX)
			oldest = oldest_of_user;
		else if (group_bytes <= FILE_CACHE_GROUP_MAX)
			return true;
		if (!oldest)
			return false;
		remove_file(oldest);
	}
}

void file_cache_begin_window(struct file_cache *cache)
{
	const struct file_key none = { 0 };

	cache->window++;
	make_room(cache, &none, 0, NULL);
}

size_t file_cache_users_bytes(const struct file_cache *cache)
{
	size_t bytes = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct kept_file *file = cache->buckets[i]; file; file = file->next)
			bytes += file->key.user ? file->bytes : 0;
	return bytes;
}

struct kept_file *file_cache_get(struct file_cache *cache, const struct file_key *key)
{
	struct kept_file **bucket = &cache->buckets[hash_u64(key->device, key->inode) % BUCKETS];
	uint64_t now = now_ns();
	struct kept_file *file;

	if (now >= cache->next_sweep_ns) {
		cache->next_sweep_ns = now + KEEP_NS / 10;
		make_room(cache, key, 0, NULL);
	}
	for (file = *bucket; file; file = file->next) {
		const struct file_key *k = &file->key;

		if (k->device != key->device || k->inode != key->inode || k->size != key->size ||
		    k->changed.tv_sec != key->changed.tv_sec ||
		    k->changed.tv_nsec != key->changed.tv_nsec || k->user != key->user)
			continue;
		if (is_old(cache, file, now))
			break;
		file->used_ns = now;
		file->used_window = cache->window;
		file->is_refused &= now < file->refused_until_ns;
		return file;
	}
	make_room(cache, key, FILE_LEAST, NULL);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = *key;
	file->bytes = FILE_LEAST;
	file->read_ns = file->used_ns = now;
	file->used_window = cache->window;
	file->next = *bucket;
	*bucket = file;
	return file;
}

void file_cache_refuse(struct kept_file *file)
{
	file->refused_for_ns = file->refused_for_ns ? 2 * file->refused_for_ns : KEEP_NS;
	file->refused_for_ns = MIN(file->refused_for_ns, REFUSED_NS_MAX);
	file->refused_until_ns = now_ns() + file->refused_for_ns;
	file->is_refused = true;
}

void file_cache_add(struct kept_symbols *s, const struct cover_symbol *symbol)
{
	size_t size = strnlen(symbol->name, NAME_MAX_KEPT);
	struct kept_symbol *kept;

	if (s->dropped)
		return;
	if (s->names_size + size + 1 + s->count * (sizeof(*kept) + sizeof(*s->highest)) >
		    FILE_MAX - FILE_LEAST ||
	    array_reserve(&s->all, &s->room, s->count + 1, sizeof(*kept)) ||
	    array_reserve(&s->names, &s->names_room, s->names_size + size + 1, 1)) {
		kept_symbols_free(s);
		s->dropped = true;
		return;
	}
	kept = &s->all[s->count++];
	*kept = (struct kept_symbol){
		.start = symbol->start,
		.limit = symbol->limit,
		.name = s->names_size,
		.binding = symbol->binding,
		.sized = symbol->sized,
		.function = symbol->function,
	};
	memcpy(s->names + s->names_size, symbol->name, size);
	s->names_size += size;
	s->names[s->names_size++] = '\0';
}

ORDER(by_start, struct kept_symbol, LEAST(start))

/* Sorts them, and gives back what they have reserved. */
static bool sort_symbols(struct kept_symbols *s)
{
	struct kept_symbol *all = realloc(s->all, (s->count + 1) * sizeof(*all));
	char *names = realloc(s->names, s->names_size + 1);

	s->all = all ?: s->all;
	s->names = names ?: s->names;
	s->highest = calloc(s->count + 1, sizeof(*s->highest));
	if (!all || !names || !s->highest)
		return false;
	qsort(s->all, s->count, sizeof(*s->all), by_start);
	for (size_t i = 0; i < s->count; i++) {
		uint64_t limit = s->all[i].sized ? s->all[i].limit : 0;

		s->highest[i] = i && s->highest[i - 1] > limit ? s->highest[i - 1] : limit;
	}
	return true;
}

void file_cache_keep_symbols(struct file_cache *cache, struct kept_file *file,
			     struct kept_symbols *symbols)
{
	size_t bytes = symbols->names_size +
		       symbols->count * (sizeof(*symbols->all) + sizeof(*symbols->highest));

	if (symbols->dropped || !make_room(cache, &file->key, bytes, file) ||
	    !sort_symbols(symbols)) {
		kept_symbols_free(symbols);
		return;
	}
	file->symbols = *symbols;
	file->has_symbols = true;
	file->bytes += bytes;
	file->read_ns = now_ns();
	*symbols = (struct kept_symbols){ 0 };
}

void file_cache_keep_functions(struct file_cache *cache, struct kept_file *file,
			       struct cfi_functions *functions)
{
	struct cfi_functions none = { 0 };
	size_t bytes;

	functions = functions ?: &none;
	bytes = sizeof(*functions) + functions->count * sizeof(*functions->all);

	if (make_room(cache, &file->key, bytes, file))
		file->functions = malloc(sizeof(*functions));
	if (!file->functions) {
		cfi_functions_free(functions);
		return;
	}
	*file->functions = *functions;
	file->bytes += bytes;
	*functions = (struct cfi_functions){ 0 };
}

static void offer_kept(const struct kept_symbols *s, size_t i, struct cover *c)
{
	const struct kept_symbol *kept = &s->all[i];
	const struct cover_symbol symbol = {
		.start = kept->start,
		.limit = kept->limit,
		.name = s->names + kept->name,
		.sized = kept->sized,
		.function = kept->function,
		.binding = kept->binding,
	};

	cover_offer(c, &symbol);
}

/*
 * Offers what decides the symbol of each address: the symbols that cover it, the last ones that
 * start before it, and the next one. Where very many symbols cover the same addresses, all are
 * offered once.
 */
void file_cache_offer(const struct kept_file *file, struct cover *c)
{
	const struct kept_symbols *s = &file->symbols;
	size_t steps = 8 * (s->count + c->count);

	for (size_t i = 0; i < c->count && steps; i++) {
		uint64_t address = c->addresses[i].address;
		size_t next;

		FIND_FIRST(next, 0, s->count, s->all[next].start <= address);
		if (next < s->count)
			offer_kept(s, next, c);
		for (size_t k = next; k-- > 0 && steps; steps--) {
			bool nearest = s->all[k].start == s->all[next - 1].start;

			if (!nearest && s->highest[k] <= address)
				break;
			if (nearest || s->all[k].limit > address)
				offer_kept(s, k, c);
		}
	}
	for (size_t k = 0; k < s->count && !steps; k++)
		offer_kept(s, k, c);
}
