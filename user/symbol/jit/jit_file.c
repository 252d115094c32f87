// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/jit/jit_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct jit_file *f, uint64_t offset)
{
	uint64_t left = offset < f->limit ? f->limit - offset : 0;
	size_t want = left < JIT_BUFFER ? left : JIT_BUFFER;

	f->offset = offset;
	f->size = elf_source_read(&f->source, f->buffer, want, offset);
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
	f->many_entries = true;
	f->limit = at;
	return false;
}

bool jit_count_line(struct jit_file *f)
{
	if (f->lines++ < JIT_ENTRIES_MAX)
		return true;
	f->many_lines = true;
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
		return; /* as of almost all entries */
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

/* batch_name() takes the same pointer for the same name: names alternate between two buffers. */
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

		if (b->budget && b->budget->exceeded)
			break; /* entries that were not read may be newer */
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
