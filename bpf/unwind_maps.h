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

/* The sizes of these are set before the load. */

/* Bound: as MAPPINGS_MAX. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_mapping);
} unwind_mappings SEC(".maps");

/* Bound: as SPARE_IMAGES. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_image);
} unwind_images SEC(".maps");

/* Bound: as UNWIND_SPARE_MIB. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_page);
} unwind_pages SEC(".maps");

/* Bound: as UNWIND_SPARE_MIB. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_chunk);
} unwind_chunks SEC(".maps");

/* Bound: as UNWIND_SPARE_MIB. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

static const struct unwind_mapping *walk_mapping(const struct walk *unused, __u32 number)
{
	(void)unused;
	return bpf_map_lookup_elem(&unwind_mappings, &number);
}

static struct unwind_image *walk_image(const struct walk *unused, __u32 number)
{
	(void)unused;
	return bpf_map_lookup_elem(&unwind_images, &number);
}

static const struct unwind_page *walk_page(const struct walk *unused, __u32 number)
{
	(void)unused;
	return bpf_map_lookup_elem(&unwind_pages, &number);
}

static const struct unwind_row *walk_row(const struct walk *unused, __u32 number)
{
	__u32 key = number / UNWIND_CHUNK_ROWS;
	const struct unwind_chunk *chunk = bpf_map_lookup_elem(&unwind_chunks, &key);

	(void)unused;
	return chunk ? &chunk->rows[number % UNWIND_CHUNK_ROWS] : NULL;
}

static const struct unwind_rule *walk_rule(const struct walk *unused, __u32 number)
{
	(void)unused;
	return bpf_map_lookup_elem(&unwind_rules, &number);
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
	return WALK_HAS_THREAD_POINTER ? BPF_CORE_READ(task, thread.fsbase) : 0;
}

static __always_inline __u64 walk_thread_pointer(const struct walk *unused)
{
	(void)unused;
	return thread_pointer_of(bpf_get_current_task_btf());
}

#endif
