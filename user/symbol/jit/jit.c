// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/jit/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "symbol/jit/jit_file.h"

#define DUMP_MAGIC "DTiJ" /* 0x4A695444 as little-endian machines write it */

const char jit_no_names[] =
	"anonymous memory (JIT or generated code): no /tmp/perf-PID.map has its names";

static int resolve(struct batch *b, struct jit_file *f, struct jit_cover *c)
{
	size_t size = strlen(DUMP_MAGIC);
	const char *magic;
	bool dump;

	f->limit = JIT_DUMP_MAX;
	dump = jit_read(f, 0, size, &magic) == size && memcmp(magic, DUMP_MAGIC, size) == 0;
	if (!dump)
		f->limit = JIT_MAP_MAX;
	f->large = f->source.size > f->limit;
	return dump ? jit_dump_resolve(b, f, c) : jit_map_resolve(b, f, c);
}

static int warn(const struct batch *b, const struct jit_file *f)
{
	const char *path =
		f->large || f->many_entries || f->many_lines ? b->p->images[b->image].path : NULL;
	int err = 0;

	if (f->many_entries)
		err = profile_warn(
			b->p,
			"%s: its file of names has more than %" PRIu64
			" entries: the rest was not read, and functions may have no name "
			"or an outdated one",
			path, JIT_ENTRIES_MAX);
	else if (f->large)
		err = profile_warn(b->p,
				   "%s: its file of names is larger than %" PRIu64
				   " MiB: the rest was not read, and functions may have no name or "
				   "an outdated one",
				   path, f->limit >> 20);
	if (!err && f->many_lines)
		err = profile_warn(b->p,
				   "%s: its file of names has more than %" PRIu64
				   " source lines for the samples: some were not read",
				   path, JIT_ENTRIES_MAX);
	return err;
}

int jit_resolve_from(struct batch *b, int fd)
{
	struct jit_file f = { .source = { .fd = fd } };
	struct jit_cover c = { .addresses = b->addresses, .count = b->count };
	struct stat status;
	int err = -ENOMEM;

	if (fstat(fd, &status))
		return 0;
	if (!batch_begin_reading(b, fd))
		return batch_end_reading(b);
	f.source.size = status.st_size;
	f.source.budget = b->budget;
	batch_sort(b);
	f.buffer = malloc(JIT_BUFFER);
	c.tree = calloc(b->count + 1, 2 * sizeof(*c.tree));
	if (f.buffer && c.tree)
		err = resolve(b, &f, &c) ?: warn(b, &f) ?: batch_end_reading(b);
	free(f.buffer);
	free(c.tree);
	return err;
}

static void drop_named(struct batch *b)
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

	/* image->unnamed: why the file was refused when it was opened. */
	b->unwritten = !image->unnamed;
	error_set(&b->why, 0, "%s", image->unnamed ?: jit_no_names);
	if (b->extents)
		return 0;
	drop_named(b);
	if (image->fd < 0 || !b->count)
		return 0;
	b->unwritten = true;
	error_set(&b->why, 0, "its file of names, perf-PID.map or jit-PID.dump, has none for it");
	return jit_resolve_from(b, image->fd);
}
