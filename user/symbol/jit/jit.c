// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/jit/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DUMP_MAGIC "DTiJ" /* 0x4A695444 as little-endian machines write it */

const char jit_no_names[] =
	"anonymous memory (JIT or generated code): no /tmp/perf-PID.map has its names";

static void fill(struct jit_file *f, uint64_t offset)
{
	uint64_t left = offset < f->limit ? f->limit - offset : 0;
	size_t want = left < JIT_BUFFER ? left : JIT_BUFFER;
	ssize_t n = 1;

	f->offset = offset;
	f->size = 0;
	while (n > 0 && f->size < want) {
		n = pread(f->fd, f->buffer + f->size, want - f->size, offset + f->size);
		f->size += n > 0 ? n : 0;
	}
}

size_t jit_read(struct jit_file *f, uint64_t offset, size_t wanted, const char **bytes)
{
	uint64_t there = offset - f->offset;

	if (offset < f->offset || there > f->size || wanted > f->size - there) {
		fill(f, offset);
		there = 0;
	}
	*bytes = f->buffer + there;
	return wanted < f->size - there ? wanted : f->size - there;
}

bool jit_count_entry(struct jit_file *f, uint64_t at)
{
	if (at >= f->limit)
		return false;
	if (f->entries++ < JIT_ENTRIES_MAX)
		return true;
	f->crowded = true;
	f->limit = at;
	return false;
}

bool jit_count_line(struct jit_file *f)
{
	if (f->lines++ < JIT_ENTRIES_MAX)
		return true;
	f->long_winded = true;
	return false;
}

void jit_offer(struct jit_cover *c, uint64_t start, uint64_t size, uint64_t entry)
{
	uint64_t limit;
	size_t low, high;

	if (__builtin_add_overflow(start, size, &limit))
		limit = UINT64_MAX;
	low = batch_lower_bound(c->addresses, 0, c->count, start);
	if (low == c->count || c->addresses[low].address >= limit)
		return; /* almost all of them */
	high = batch_lower_bound(c->addresses, 0, c->count, limit) + c->count;
	for (low += c->count; low < high; low /= 2, high /= 2) {
		if (low % 2)
			c->tree[low++] = entry;
		if (high % 2)
			c->tree[--high] = entry;
	}
}

uint64_t jit_find(const struct jit_cover *c, size_t i)
{
	uint64_t last = 0;

	for (size_t node = i + c->count; node; node /= 2)
		if (c->tree[node] > last)
			last = c->tree[node];
	return last;
}

static int add_source_line(struct batch *b, uint32_t location, const struct jit_name *name)
{
	struct profile_line line = { .function = b->last_function, .line = name->line };

	return profile_string(b->p, name->file, &line.file)
		       ?: profile_set_lines(b->p, location, &line, 1);
}

/* batch_name() takes one pointer, twice in a row, for one name: so they are kept in turns. */
static int name_address(struct batch *b, size_t i, const struct jit_name *name, char *kept[2])
{
	uint32_t location = b->addresses[i].location;
	char *text = kept[0];
	int err;

	if (strlen(text) != name->size || memcmp(text, name->text, name->size) != 0) {
		text = kept[1];
		memcpy(text, name->text, name->size);
		text[name->size] = '\0';
		kept[1] = kept[0];
		kept[0] = text;
	}
	if (!*text)
		return 0;
	err = batch_name(b, i, text);
	return err || !name->file ? err : add_source_line(b, location, name);
}

int jit_name_all(struct batch *b, struct jit_file *f, const struct jit_cover *c,
		 jit_find_name *find, void *context)
{
	char *memory = calloc(2, JIT_WINDOW + 1), *kept[] = { memory, memory + JIT_WINDOW + 1 };
	int err = memory ? 0 : -ENOMEM;

	for (size_t i = 0; i < b->count && !err && !batch_stopped(b); i++) {
		uint64_t entry = jit_find(c, i);
		struct jit_name name = { 0 };

		if (!entry)
			continue;
		err = find(f, entry, b->addresses[i].address, context, &name);
		if (!err && name.size)
			err = name_address(b, i, &name, kept);
		free(name.file);
	}
	free(memory);
	return err;
}

static int resolve(struct batch *b, struct jit_file *f, struct jit_cover *c)
{
	size_t size = strlen(DUMP_MAGIC);
	struct stat status;
	const char *magic;
	bool dump;

	f->limit = JIT_DUMP_MAX;
	dump = jit_read(f, 0, size, &magic) == size && memcmp(magic, DUMP_MAGIC, size) == 0;
	if (!dump)
		f->limit = JIT_MAP_MAX;
	f->large = fstat(f->fd, &status) == 0 && (uint64_t)status.st_size > f->limit;
	return dump ? jit_dump_resolve(b, f, c) : jit_map_resolve(b, f, c);
}

static int warn(const struct batch *b, const struct jit_file *f)
{
	const char *path =
		f->large || f->crowded || f->long_winded ? b->p->images[b->image].path : NULL;
	int err = 0;

	if (f->crowded)
		err = profile_warn(
			b->p,
			"%s: its file of names has more than %" PRIu64
			" entries: those behind were not read, and functions may have no "
			"name or an older one",
			path, JIT_ENTRIES_MAX);
	else if (f->large)
		err = profile_warn(b->p,
				   "%s: its file of names is larger than %" PRIu64
				   " MiB: what is behind that was not read, and functions may have "
				   "no name or an older one",
				   path, f->limit >> 20);
	if (!err && f->long_winded)
		err = profile_warn(b->p,
				   "%s: its file of names has more than %" PRIu64
				   " source lines for the samples: some were not read",
				   path, JIT_ENTRIES_MAX);
	return err;
}

int jit_resolve_from(struct batch *b, int fd)
{
	struct jit_file f = { .fd = fd };
	struct jit_cover c = { .addresses = b->addresses, .count = b->count };
	int err = -ENOMEM;

	batch_sort(b);
	f.buffer = malloc(JIT_BUFFER);
	c.tree = calloc(b->count + 1, 2 * sizeof(*c.tree));
	if (f.buffer && c.tree)
		err = resolve(b, &f, &c) ?: warn(b, &f);
	free(f.buffer);
	free(c.tree);
	return err;
}

/* Names are all that is wanted of such code: where a function begins is in its file only. */
static void keep_unnamed(struct batch *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->count; i++)
		if (!b->p->locations[b->addresses[i].location].line_count)
			b->addresses[kept++] = b->addresses[i];
	b->count = kept;
}

int jit_resolve(struct batch *b)
{
	const struct profile_image *image = &b->p->images[b->image];

	/* Why a file was not taken is known since it was looked for. */
	b->unwritten = !image->unnamed;
	error_set(&b->why, 0, "%s", image->unnamed ?: jit_no_names);
	if (b->extents)
		return 0;
	keep_unnamed(b);
	if (image->fd < 0 || !b->count)
		return 0;
	b->unwritten = true;
	error_set(&b->why, 0, "its file of names, perf-PID.map or jit-PID.dump, has none for it");
	return jit_resolve_from(b, image->fd);
}
