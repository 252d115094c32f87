// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_copy.h"

#include <linux/types.h>
#include <stdbool.h>
#include <string.h>

#include "bpf/sample.h"
#include "util/cpu.h"

#define WALK_FUNCTION	static
#define WALK_READS_CODE 0
#include "bpf/walk.h"

struct copy_walk {
	struct walk walk; /* first: walk.h has pointers to it */
	const struct unwind_copy *copy;
	const struct unwind_tables *tables;
	const struct unwind_space *space;
};

static const struct copy_walk *copy_walk_of(const struct walk *walk)
{
	return (const struct copy_walk *)walk;
}

static const struct unwind_mapping *walk_mapping(const struct walk *walk, __u32 number)
{
	const struct unwind_space *space = copy_walk_of(walk)->space;

	return number < space->count ? &space->mappings[number] : NULL;
}

static struct unwind_image *walk_image(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = copy_walk_of(walk)->tables;

	return number < t->used.images ? &t->images[number] : NULL;
}

static const struct unwind_page *walk_page(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = copy_walk_of(walk)->tables;

	return number < t->used.pages ? &t->pages[number] : NULL;
}

static const struct unwind_row *walk_row(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = copy_walk_of(walk)->tables;

	return number < t->used.rows
		       ? &t->chunks[number / UNWIND_CHUNK_ROWS].rows[number % UNWIND_CHUNK_ROWS]
		       : NULL;
}

static const struct unwind_rule *walk_rule(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = copy_walk_of(walk)->tables;

	return number < t->used.rules ? &t->rules[number] : NULL;
}

static long walk_read(const struct walk *walk, void *to, __u32 size, __u64 from)
{
	const struct unwind_copy *copy = copy_walk_of(walk)->copy;
	uint64_t at = from - copy->begin;

	if (at > copy->size || size > copy->size - at)
		return -1;
	memcpy(to, copy->bytes + at, size);
	return 0;
}

static __always_inline __u64 walk_signature(const struct walk *unused)
{
	(void)unused;
	return return_address_signature();
}

static __always_inline __u64 walk_thread_pointer(const struct walk *unused)
{
	(void)unused;
	return 0; /* the memory that it points to is not copied */
}

void unwind_copy_walk(const struct unwind_copy *copy, const struct unwind_tables *tables,
		      const struct unwind_space *space, struct unwind_found *found)
{
	struct copy_walk w = { .copy = copy, .tables = tables, .space = space };
	struct walk *walk = &w.walk;
	uint64_t *pcs = found->pcs + copy->kernel_depth;
	uint32_t depth = 0;

	memcpy(found->pcs, copy->kernel_pcs, copy->kernel_depth * sizeof(*found->pcs));
	memcpy(walk->registers, copy->registers, sizeof(walk->registers));
	walk->pc = copy->registers[UNWIND_REGISTERS];
	begin_walk(walk);
	walk->process.count = space->count;
	walk->interrupted = 1;
	do {
		if (depth == STACK_DEPTH_MAX) {
			walk->end = UNWIND_TRUNCATED;
			break;
		}
		pcs[depth] = walk->pc + walk->mark;
		depth++;
	} while (!step(walk));
	/* As mark_interrupted() in bpf/count.h. */
	if (copy->kernel_depth && !copy->in_system_call)
		pcs[0]++;
	found->user_depth = depth;
	found->end = may_lack_stack(walk->end) && copy->no_stack ? UNWIND_NO_STACK : walk->end;
	found->by_frame_pointer = walk->by_frame_pointer;
}
