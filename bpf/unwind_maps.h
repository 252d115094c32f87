/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables that user space fills for the walk of stacks, and what walk.h asks of whoever includes
 * it: here each element is looked up in a map.
 */
#ifndef PROFIL_BPF_UNWIND_MAPS_H
#define PROFIL_BPF_UNWIND_MAPS_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "unwind_table.h"

#define WALK_FUNCTION	__noinline
#define WALK_READS_CODE 1

struct walk;

/*
 * A table begins with a map whose size is set before the load. When that is full, user space adds
 * parts, each a map of its own: of those the map NAME_more has as many as the table may ever get,
 * by the numbers of their elements. The first ones, which are in the first map, stay empty. A part
 * has no types, as those that user space creates: before Linux 6.2, NAME_more refuses any other.
 */
#define UNWIND_TABLE(name, element, elements)                                   \
	struct name##_part {                                                    \
		__uint(type, BPF_MAP_TYPE_ARRAY);                               \
		__uint(map_flags, BPF_F_MMAPABLE);                              \
		__uint(max_entries, elements);                                  \
		__uint(key_size, sizeof(__u32));                                \
		__uint(value_size, sizeof(struct element));                     \
	};                                                                      \
	struct {                                                                \
		__uint(type, BPF_MAP_TYPE_ARRAY);                               \
		__uint(map_flags, BPF_F_MMAPABLE);                              \
		__uint(max_entries, 1);                                         \
		__type(key, __u32);                                             \
		__type(value, struct element);                                  \
	} name SEC(".maps");                                                    \
	struct {                                                                \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                       \
		__uint(max_entries, 1);                                         \
		__type(key, __u32);                                             \
		__array(values, struct name##_part);                            \
	} name##_more SEC(".maps");                                             \
                                                                                \
	static __always_inline struct element *find_in_##name(__u32 number)     \
	{                                                                       \
		struct element *found = bpf_map_lookup_elem(&name, &number);    \
		__u32 part = number / (elements), within = number % (elements); \
		void *map;                                                      \
                                                                                \
		if (found)                                                      \
			return found;                                           \
		map = bpf_map_lookup_elem(&name##_more, &part);                 \
		return map ? bpf_map_lookup_elem(map, &within) : NULL;          \
	}

UNWIND_TABLE(unwind_mappings, unwind_mapping, UNWIND_PART_MAPPINGS)
UNWIND_TABLE(unwind_images, unwind_image, UNWIND_PART_IMAGES)
UNWIND_TABLE(unwind_pages, unwind_page, UNWIND_PART_PAGES)
UNWIND_TABLE(unwind_chunks, unwind_chunk, UNWIND_PART_CHUNKS)
UNWIND_TABLE(unwind_rules, unwind_rule, UNWIND_PART_RULES)

static const struct unwind_mapping *walk_mapping(const struct walk *unused, __u32 number)
{
	(void)unused;
	return find_in_unwind_mappings(number);
}

static struct unwind_image *walk_image(const struct walk *unused, __u32 number)
{
	(void)unused;
	return find_in_unwind_images(number);
}

static const struct unwind_page *walk_page(const struct walk *unused, __u32 number)
{
	(void)unused;
	return find_in_unwind_pages(number);
}

static const struct unwind_row *walk_row(const struct walk *unused, __u32 number)
{
	const struct unwind_chunk *chunk = find_in_unwind_chunks(number / UNWIND_CHUNK_ROWS);

	(void)unused;
	return chunk ? &chunk->rows[number % UNWIND_CHUNK_ROWS] : NULL;
}

static const struct unwind_rule *walk_rule(const struct walk *unused, __u32 number)
{
	(void)unused;
	return find_in_unwind_rules(number);
}

static long walk_read(const struct walk *unused, void *to, __u32 size, __u64 from)
{
	(void)unused;
	return bpf_probe_read_user(to, size, (void *)from);
}

/* Set by user space before the load. */
const volatile __u64 signature = 0;

static __always_inline __u64 walk_signature(const struct walk *unused)
{
	(void)unused;
	return signature;
}

#ifdef UNWIND_X86
#define WALK_HAS_THREAD_POINTER 1
#else
#define WALK_HAS_THREAD_POINTER 0
#endif

/* 0: unknown. */
static __always_inline __u64 thread_pointer_of(struct task_struct *task)
{
#ifdef UNWIND_X86
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return BPF_CORE_READ(task, thread.uw.tp_value);
#endif
}

static __always_inline __u64 walk_thread_pointer(const struct walk *unused)
{
	(void)unused;
	return thread_pointer_of(bpf_get_current_task_btf());
}

#endif
