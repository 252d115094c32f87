/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the values of a thread's process that bpf/context.h describes, and finds or adds their
 * entry in the table of values. Its number is that of the stack's context, so equal values are one.
 *
 * The variables are found by the mapped images, as interpreters are: a process without any has no
 * number of a mapping in what the walk has looked up already, and nothing is done for it.
 */
#ifndef PROFIL_BPF_CONTEXT_READ_H
#define PROFIL_BPF_CONTEXT_READ_H

#include "count.h"
#include "owner.h"
#include "unwind_maps.h"
#include "walk.h"

#define CONTEXT_FUNCTION __noinline
#include "context_text.h"

/* By the number that struct unwind_image has. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CONTEXT_IMAGES);
	__type(key, __u32);
	__type(value, struct context_image);
} contexts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CONTEXT_VALUES);
	__type(key, __u32);
	__type(value, struct context_value);
} context_values SEC(".maps");

/* The first is of all; one half of the rest is of users, the other of processes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CONTEXT_SHARES);
	__type(key, __u32);
	__type(value, __u64);
} context_shares SEC(".maps");

/* Of the variables of one image, where a process has it. */
struct context_place {
	__u64 bias, thread_pointer;
	__u32 image; /* in `contexts` */
	__u32 unused;
};

static __always_inline __u64 *context_share(__u64 of, bool is_process)
{
	__u32 half = CONTEXT_SHARES / 2;
	__u32 key = 1 + (of * 0x9e3779b97f4a7c15 >> 32) % (half - 1) + (is_process ? half : 0);

	return bpf_map_lookup_elem(&context_shares, &key);
}

/* Adds a value, if there is room for its user and process, to this free entry. */
__noinline int add_context(struct context_scratch *c, __u32 number, __u64 hash, __u64 process)
{
	struct context_value *value = bpf_map_lookup_elem(&context_values, &number);
	__u64 *of_user = context_share(user_of(bpf_get_current_task_btf()), false), *all, free;
	__u64 *of_process = context_share(process, true);
	__u32 zero = 0;

	all = bpf_map_lookup_elem(&context_shares, &zero);
	if (!c || !value || !of_user || !of_process || !all)
		return false;
	free = CONTEXT_VALUES - CONTEXT_IMAGES - *all;
	if (*of_user >= free || *of_process >= free ||
	    __sync_val_compare_and_swap(&value->hash, 0, hash))
		return false;
	__sync_fetch_and_add(all, 1);
	__sync_fetch_and_add(of_user, 1);
	__sync_fetch_and_add(of_process, 1);
	bpf_probe_read_kernel(value->bytes, sizeof(value->bytes), c->words);
	write_in_order(&value->words, (unsigned long long)(c->used + 7) / 8);
	return true;
}

/* Whether the entry with this number has the value. */
__noinline int is_context_at(struct context_scratch *c, __u32 number)
{
	struct context_value *value = bpf_map_lookup_elem(&context_values, &number);
	struct stack_block *blocks, *there;
	__u32 count;

	if (!c || !value)
		return 0;
	count = (c->used + 7) / 8;
	if (value->words != count)
		return 0;
	blocks = (struct stack_block *)c->words;
	there = (struct stack_block *)value->bytes;
	for (__u32 i = 0; i < CONTEXT_VALUE_WORDS / STACK_BLOCK_WORDS; i++)
		if (i * STACK_BLOCK_WORDS < count &&
		    !blocks_are_equal(&blocks[i], &there[i], count - i * STACK_BLOCK_WORDS))
			return 0;
	return 1;
}

/* The number of the value's entry; `others`: there is no room for it. */
__noinline int find_context(struct context_scratch *c, __u64 process, __u32 others)
{
	struct stack_block *blocks;
	__u64 hash = 0;
	__u32 count;

	if (!c)
		return 0;
	count = context_end(c);
	blocks = (struct stack_block *)c->words;
	for (__u32 i = 0; i < CONTEXT_VALUE_WORDS / STACK_BLOCK_WORDS; i++)
		if (i * STACK_BLOCK_WORDS < count)
			hash = hash_block(&blocks[i], count - i * STACK_BLOCK_WORDS, hash);
	hash |= 1;
	for (__u32 i = 0; i < CONTEXT_PROBES; i++) {
		__u32 number = CONTEXT_IMAGES + ((hash >> 32) + i * probe_step(hash)) %
							(CONTEXT_VALUES - CONTEXT_IMAGES);
		struct context_value *value = bpf_map_lookup_elem(&context_values, &number);

		if (!value)
			break;
		if (value->hash == hash && is_context_at(c, number))
			return number;
		if (value->hash)
			continue;
		return add_context(c, number, hash, process) ? number : others;
	}
	return others;
}

/* Appends a number to the values. */
static __always_inline void put_number(struct context_scratch *c, __u64 number)
{
	for (int i = 0; i < CONTEXT_NUMBER_BYTES; i++, number >>= 7)
		context_put(c, 0x80 | (number & 0x7f));
}

/* Appends the value of a variable. What cannot be read is no value. */
__noinline int read_variable(struct context_scratch *c, const struct context_place *place,
			     __u32 index)
{
	const struct context_image *image;
	const struct context_variable *variable;
	__u64 address, number = 0;
	__u32 key, begin, length;
	long size;

	if (!c || !place)
		return 0;
	key = place->image;
	image = bpf_map_lookup_elem(&contexts, &key);
	if (!image || index >= CONTEXT_VARIABLES || index >= image->count ||
	    c->used >= CONTEXT_VALUE_BYTES - 2 * CONTEXT_SPARE)
		return 0;
	variable = &image->variables[index];
	if (variable->is_thread_local && !place->thread_pointer)
		return 0;
	address = variable->address +
		  (variable->is_thread_local ? place->thread_pointer : place->bias);
	begin = c->used;
	switch (variable->kind) {
	case CONTEXT_U32:
	case CONTEXT_U64:
		if (bpf_probe_read_user(&number, variable->kind == CONTEXT_U32 ? 4 : 8,
					(void *)address))
			return 0;
		context_put(c, CONTEXT_NUMBER | (variable->label + 1));
		put_number(c, number);
		break;
	case CONTEXT_POINTER:
		if (bpf_probe_read_user(&address, sizeof(address), (void *)address) || !address)
			return 0;
	/* fallthrough */
	case CONTEXT_STRING:
		length = variable->length;
		if (length >= CONTEXT_TEXT_BYTES)
			length = CONTEXT_TEXT_BYTES - 1;
		/* With the 0: where that was not reached, it stands for the last byte. */
		size = bpf_probe_read_user_str(c->text, length + 1, (void *)address);
		if (size <= 1) /* empty, or unreadable */
			return 0;
		context_put(c, variable->label + 1);
		context_put_text(c, variable->rule, size, size > length);
		if (c->used == begin + 1) { /* nothing but blanks and comments */
			c->used = begin;
			return 0;
		}
		break;
	default:
		return 0;
	}
	context_put(c, 0);
	return 1;
}

/*
 * Returns the number of the values that the current thread's process has now: walk->process was
 * looked up. 0: it has none.
 */
__noinline int read_context(struct walk *walk, struct context_scratch *c, __u64 process)
{
	struct context_place place = { .thread_pointer = walk_thread_pointer(walk) };
	__u32 others = 0;

	if (!walk || !c)
		return 0;
	c->used = 0;
	for (__u32 i = 0; i < CONTEXT_PROCESS_IMAGES; i++) {
		__u32 number = walk->process.contexts[i];
		const struct unwind_mapping *mapping;
		const struct unwind_image *image;

		if (!number)
			break;
		mapping = walk_mapping(walk, walk->process.first + number - 1);
		image = mapping ? walk_image(walk, mapping->image) : NULL;
		if (!image || !image->context)
			continue;
		place.bias = mapping->bias;
		place.image = image->context;
		others = others ?: image->context;
		for (__u32 k = 0; k < CONTEXT_VARIABLES; k++)
			read_variable(c, &place, k);
	}
	return c->used ? find_context(c, process, others) : 0;
}

#endif
