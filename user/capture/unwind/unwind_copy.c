// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_copy.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "bpf/sample.h"
#include "capture/remote_memory.h"
#include "util/clock.h"
#include "util/cpu.h"

/* What bpf_probe_read_user() reads. */
static _Thread_local struct remote_memory *live_memory;

static long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	return remote_memory_read(live_memory, (uintptr_t)from, to, size) == (ssize_t)size ? 0 : -1;
}

static long bpf_probe_read_user_str(void *to, __u32 size, const void *from)
{
	ssize_t count = remote_memory_read(live_memory, (uintptr_t)from, to, size);
	char *text = to, *end = count > 0 ? memchr(text, '\0', count) : NULL;

	if (!end && count != (ssize_t)size)
		return -1;
	end = end ?: text + size - 1;
	*end = '\0';
	return end + 1 - text;
}

static __u64 bpf_ktime_get_ns(void)
{
	return now_ns();
}

#define WALK_FUNCTION	static
#define WALK_READS_CODE 0
#include "bpf/scripts.h"
#include "bpf/walk.h"

struct copy_walk {
	struct walk walk; /* first: walk.h has pointers to it */
	const struct unwind_copy *copy;
	const struct unwind_tables *tables;
	const struct unwind_space *space;
	const struct unwind_live *live;
	struct script_walk script;
	int err;
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

/* The memory that it points to is not copied. */
static __always_inline __u64 walk_thread_pointer(const struct walk *walk)
{
	const struct unwind_live *live = copy_walk_of(walk)->live;

	return live ? live->thread_pointer : 0;
}

static const struct copy_walk *walk_of_script(const struct script_walk *script)
{
	return (const void *)((const char *)script - offsetof(struct copy_walk, script));
}

static const struct language_image *language_image(const struct script_walk *script, __u32 number)
{
	const struct unwind_tables *t = walk_of_script(script)->tables;

	return number < t->used.images ? &t->languages[number] : NULL;
}

static __always_inline bool is_code_known(struct script_walk *script, __u64 address, __u64 mark)
{
	(void)script;
	(void)address;
	(void)mark;
	return false; /* scripts_add() knows */
}

static __always_inline bool is_code_wanted(struct script_walk *script, __u64 address, __u64 mark)
{
	(void)address;
	(void)mark;
	if (!script->codes_left)
		return false;
	script->codes_left--;
	return true;
}

static __always_inline void put_code(struct script_walk *script, struct language_code *code,
				     __u64 size)
{
	struct copy_walk *w = (struct copy_walk *)walk_of_script(script);

	w->err = w->err ?: scripts_add(w->live->scripts, code, size);
}

int unwind_copy_walk(const struct unwind_copy *copy, const struct unwind_tables *tables,
		     const struct unwind_space *space, const struct unwind_live *live,
		     struct unwind_found *found)
{
	struct copy_walk w = { .copy = copy, .tables = tables, .space = space, .live = live };
	struct script_walk *script = &w.script;
	struct walk *walk = &w.walk;
	uint64_t *pcs = found->pcs + copy->kernel_depth;
	uint32_t depth = 0;

	memcpy(found->pcs, copy->kernel_pcs, copy->kernel_depth * sizeof(*found->pcs));
	memcpy(walk->registers, copy->registers, sizeof(walk->registers));
	walk->pc = copy->registers[UNWIND_REGISTERS];
	begin_walk(walk);
	walk->process.count = space->count;
	walk->interrupted = 1;
	if (live) {
		live_memory = live->memory;
		script->process =
			sample_id_make(sample_id_exec(copy->id), sample_id_tgid(copy->id), 0);
		for (size_t i = 0; i < space->count && !walk->process.thread_specific; i++)
			walk->process.thread_specific =
				tables->languages[space->mappings[i].image].thread_specific;
	}
	for (;;) {
		uint64_t pc = walk->pc, sp = walk->sp;

		if (depth == STACK_DEPTH_MAX) {
			walk->end = UNWIND_TRUNCATED;
			break;
		}
		pcs[depth++] = pc + walk->mark;
		if (step(walk))
			break;
		/* As write_script_frames() in bpf/unwind.h. */
		if (!live || !walk->image.language)
			continue;
		if (!script->looked)
			begin_script(walk, script);
		if (!runs_script(script, walk, pc, sp))
			continue;
		for (uint32_t i = 0; i < script->count && depth < STACK_DEPTH_MAX; i++)
			pcs[depth++] = script->words[i];
		read_script_frames(script);
	}
	/* As mark_interrupted() in bpf/count.h. */
	if (copy->kernel_depth && !copy->in_system_call)
		pcs[0]++;
	found->user_depth = depth;
	found->end = may_lack_stack(walk->end) && copy->no_stack ? UNWIND_NO_STACK : walk->end;
	found->by_frame_pointer = walk->by_frame_pointer;
	return w.err;
}
