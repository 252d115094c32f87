// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_copy.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "bpf/sample.h"
#include "capture/opener.h"
#include "util/clock.h"
#include "util/cpu.h"

/* What bpf_probe_read_user() reads. */
static _Thread_local const struct opener_memory *live_memory;

static long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	return opener_read_memory(live_memory, (uintptr_t)from, to, size) == (ssize_t)size ? 0 : -1;
}

static long bpf_probe_read_user_str(void *to, __u32 size, const void *from)
{
	ssize_t count = opener_read_memory(live_memory, (uintptr_t)from, to, size);
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

#define WALK_FUNCTION		static
#define WALK_READS_CODE		0
#define WALK_HAS_THREAD_POINTER 1
#include "bpf/script/scripts.h"
#include "bpf/walk.h"

struct stack_scratch {
	struct walk walk; /* first: walk.h has pointers to it */
	struct stack_sample sample;
	struct script_walk script;
	uint32_t depth;
	const struct unwind_copy *copy;
	const struct unwind_tables *tables;
	const struct unwind_space *space;
	const struct unwind_live *live;
	int err;
};

static long copy_words(void *to, const __u64 *from, __u64 count)
{
	memcpy(to, from, count * sizeof(*from));
	return 0;
}

#include "bpf/stack_walk.h"

static const struct stack_scratch *scratch_of(const struct walk *walk)
{
	return (const struct stack_scratch *)walk;
}

static const struct unwind_mapping *walk_mapping(const struct walk *walk, __u32 number)
{
	const struct unwind_space *space = scratch_of(walk)->space;

	return number < space->count ? &space->mappings[number] : NULL;
}

static struct unwind_image *walk_image(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = scratch_of(walk)->tables;

	return number < t->used.images ? &t->images[number] : NULL;
}

static const struct unwind_page *walk_page(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = scratch_of(walk)->tables;

	return number < t->used.pages ? &t->pages[number] : NULL;
}

static const struct unwind_row *walk_row(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = scratch_of(walk)->tables;

	return number < t->used.rows
		       ? &t->chunks[number / UNWIND_CHUNK_ROWS].rows[number % UNWIND_CHUNK_ROWS]
		       : NULL;
}

static const struct unwind_rule *walk_rule(const struct walk *walk, __u32 number)
{
	const struct unwind_tables *t = scratch_of(walk)->tables;

	return number < t->used.rules ? &t->rules[number] : NULL;
}

static long walk_read(const struct walk *walk, void *to, __u32 size, __u64 from)
{
	const struct unwind_copy *copy = scratch_of(walk)->copy;
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
	const struct unwind_live *live = scratch_of(walk)->live;

	return live ? live->thread_pointer : 0;
}

static const struct stack_scratch *scratch_of_script(const struct script_walk *script)
{
	return (const void *)((const char *)script - offsetof(struct stack_scratch, script));
}

static __always_inline void find_script_owner(struct script_walk *script)
{
	const struct unwind_live *live = scratch_of_script(script)->live;

	script->since_ns = live->since_ns;
	script->uid = live->uid;
}

static const struct language_image *language_image(const struct script_walk *script, __u32 number)
{
	const struct unwind_tables *t = scratch_of_script(script)->tables;

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

static __always_inline bool put_code(struct script_walk *script, struct language_code *code,
				     __u64 size, bool last)
{
	struct stack_scratch *w = (struct stack_scratch *)scratch_of_script(script);

	(void)last;
	w->err = w->err ?: scripts_add(w->live->scripts, code, size);
	return !w->err;
}

int unwind_copy_walk(const struct unwind_copy *copy, const struct unwind_tables *tables,
		     const struct unwind_space *space, const struct unwind_live *live,
		     struct unwind_found *found)
{
	struct stack_scratch w = { .copy = copy, .tables = tables, .space = space, .live = live };
	struct unwind_process *process = &w.walk.process;
	struct stack *stack = &w.sample.stack;
	struct walk *walk = &w.walk;

	stack->id = copy->id;
	stack->kernel_depth = copy->kernel_depth;
	memcpy(stack->pcs, copy->kernel_pcs, copy->kernel_depth * sizeof(*stack->pcs));
	memcpy(walk->registers, copy->registers, sizeof(walk->registers));
	walk->pc = copy->registers[UNWIND_REGISTERS];
	begin_walk(walk);
	process->count = space->count;
	walk->interrupted = 1;
	begin_stack_walk(&w, live && live->native);
	if (live)
		live_memory = live->memory;
	else
		w.script.looked = true; /* not to look for it */
	for (size_t i = 0; i < space->count && live; i++) {
		const struct language_image *image = &tables->languages[space->mappings[i].image];

		if (!process->thread_specific)
			process->thread_specific = image->thread_specific;
		if (image->language && !process->interpreter)
			process->interpreter = i + 1;
	}
	for (int i = 0; i < STACK_STEPS_MAX; i++)
		if (put_next_frame(&w))
			break;
	put_last_frames(&w);
	/* As mark_interrupted() in bpf/count.h. */
	if (copy->kernel_depth && !copy->in_system_call)
		stack->pcs[copy->kernel_depth]++;
	memcpy(found->pcs, stack->pcs, (copy->kernel_depth + w.depth) * sizeof(*found->pcs));
	found->user_depth = w.depth;
	found->end = may_lack_stack(walk->end) && copy->no_stack ? UNWIND_NO_STACK : walk->end;
	found->by_frame_pointer = walk->by_frame_pointer;
	return w.err;
}
