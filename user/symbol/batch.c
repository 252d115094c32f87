// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/batch.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/pc_name.h"
#include "symbol/demangle.h"
#include "symbol/file_cache.h"
#include "symbol/file_limits.h"
#include "util/clock.h"
#include "util/file_open.h"
#include "util/order.h"

/*
 * Longer names are truncated: no compiler makes them, but a malicious file may have gigabytes. A
 * profile whose names already take NAMES_MAX bytes gets short ones: where strings overlap, a file
 * of 300 kB can have thousands of the greatest size.
 * Bound: files: bytes of a symbol's name, and of all names of a profile; then: longer ones are cut;
 * later ones to 256 bytes; seen: not seen.
 */
#define NAME_MAX_SIZE (64 * 1024)
#define NAMES_MAX     ((size_t)64 * 1024 * 1024)
#define SHORT_NAME    256

/*
 * The same in windows, which are written while recording goes on.
 * Bound: users: bytes of a symbol's name in a window of profild, and of all its names; then: longer
 * ones are cut; later ones to 256 bytes; again: at the next window; share: none; seen: not seen.
 */
#define WINDOW_NAME_SIZE 4096
#define WINDOW_NAMES_MAX ((size_t)16 * 1024 * 1024)

int batch_open(const struct batch *b, uid_t user, int root, const char *path, struct stat *status)
{
	return b->o.open ? b->o.open(user, root, path, status, b->o.context)
			 : file_open_regular(root, path, status);
}

bool batch_stopped(struct batch *b)
{
	uint64_t begin_ns;

	if (b->stopped || !b->o.stop)
		return b->stopped;
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	b->stopped = b->o.stop(b->o.context);
	if (b->budget) /* what the caller does meanwhile is not the file's cost */
		b->budget->until_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	return b->stopped;
}

bool batch_begin_reading(struct batch *b, int fd)
{
	const struct profile_image *image = &b->p->images[b->image];
	struct stat status;
	struct file_key key;

	if ((!b->limits && !b->o.cache) || fstat(fd, &status))
		return true; /* without a status reading will fail, too */
	key = (struct file_key){
		.device = status.st_dev,
		.inode = status.st_ino,
		.size = status.st_size,
		.changed = status.st_ctim,
		.user = image->provider
				?: status.st_uid == geteuid() ? 0
							      : status.st_uid,
	};
	b->user = key.user;
	if (b->o.cache)
		b->kept = file_cache_get(symbol_cache_files(b->o.cache), &key);
	if (b->limits && b->kept && b->kept->is_refused) {
		error_set(&b->why, 0, "%s", b->kept->why);
		b->is_unread = true;
		return false;
	}
	if (b->limits) {
		file_limits_begin(b->limits, key.user, &b->given);
		b->budget = &b->given;
	}
	return true;
}

int batch_end_reading(struct batch *b)
{
	int err = b->budget ? file_limits_end(b->limits, b->user, b->budget) : 0;

	if (b->budget)
		b->is_unread = b->budget->exceeded;
	if (b->budget && b->is_unread && !b->limits->is_whole) {
		error_set(&b->why, 0,
			  "not read in this window: files of %s have taken the time for it",
			  b->user ? "its user or of others" : "others");
	} else if (b->budget && b->is_unread) {
		error_set(&b->why, 0,
			  "not read: its symbols take more than %.2f s of CPU time, or %" PRIu64
			  " MiB",
			  b->limits->given.ns / 1e9, b->limits->given.bytes >> 20);
		/* With symbols it was the call frame information: from now on it has none. */
		if (b->kept && b->kept->has_symbols)
			file_cache_keep_functions(symbol_cache_files(b->o.cache), b->kept, NULL);
		else if (b->kept)
			file_cache_refuse(b->kept);
		if (b->kept)
			snprintf(b->kept->why, sizeof(b->kept->why), "%.255s", b->why.what);
	}
	b->budget = NULL;
	if (b->is_unread)
		batch_note_unread(b);
	return err;
}

void batch_note_unread(struct batch *b)
{
	b->is_unread = true;
	b->unwritten = false;
	if (b->o.unread)
		b->o.unread(b->p->images[b->image].path, b->why.what, b->o.context);
}

void batch_progress(const struct batch *b, size_t done, const char *what)
{
	if (!what && b->image == PROFILE_NONE)
		what = "the kernel";
	else if (!what)
		what = profile_basename(b->p->images[b->image].path);
	if (b->o.progress)
		b->o.progress(b->done + done, b->total, what, b->o.context);
}

ORDER(by_address, struct batch_address, LEAST(address) ?: LEAST(location))

void batch_sort(struct batch *b)
{
	qsort(b->addresses, b->count, sizeof(*b->addresses), by_address);
}

size_t batch_lower_bound(const struct batch_address *addresses, size_t from, size_t count,
			 uint64_t bound)
{
	size_t i;

	FIND_FIRST(i, from, count, addresses[i].address < bound);
	return i;
}

/* The length of a symbol's name without the "@VERSION" or "@@VERSION" that linkers append. */
static size_t unversioned_size(const char *symbol, size_t most)
{
	size_t size = strnlen(symbol, most);
	const char *at = memchr(symbol, '@', size);

	if (!at || at == symbol)
		return size;
	for (const char *c = at; c < symbol + size; c++)
		if (!isalnum((unsigned char)*c) && !strchr("@._-+", *c))
			return size;
	return at - symbol;
}

bool batch_is_name(const char *name, const char *symbol)
{
	size_t size = unversioned_size(symbol, NAME_MAX_SIZE);

	return strncmp(name, symbol, size) == 0 && !name[size];
}

int batch_name(struct batch *b, size_t i, const char *symbol)
{
	size_t used = b->p->string_bytes, most = NAME_MAX_SIZE, all = NAMES_MAX;
	struct profile_function f = { .file = "" };
	struct profile_line line = { 0 };
	char *demangled;
	int err;

	if (symbol != b->last_symbol) {
		if (b->limits) {
			most = WINDOW_NAME_SIZE;
			all = WINDOW_NAMES_MAX;
		}
		most = unversioned_size(symbol, used < all ? most : SHORT_NAME);
		err = profile_string_n(b->p, symbol, most, &f.system_name);
		if (err)
			return err;
		demangled = demangle(f.system_name);
		f.name = demangled ?: f.system_name;
		err = profile_add_function(b->p, &f, &b->last_function);
		free(demangled);
		if (err)
			return err;
		b->last_symbol = symbol;
	}
	line.function = b->last_function;
	return profile_set_lines(b->p, b->addresses[i].location, &line, 1);
}

int batch_name_by_start(struct batch *b, size_t i, uint64_t start)
{
	struct profile_function f = { .file = "" };
	struct profile_line line = { 0 };
	char *name = profile_pc_name(b->p->images[b->image].path, start);
	int err = name ? 0 : -ENOMEM;

	f.name = f.system_name = name;
	err = err ?: profile_add_function(b->p, &f, &line.function);
	err = err ?: profile_set_lines(b->p, b->addresses[i].location, &line, 1);
	free(name);
	return err;
}

bool batch_is_named(const struct batch *b, size_t i)
{
	return profile_is_named(b->p, b->addresses[i].location);
}
