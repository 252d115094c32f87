/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions of maps, in one line each. */
#ifndef PROFIL_BPF_MAPS_H
#define PROFIL_BPF_MAPS_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/* For entries: as many as there can be CPUs, times the banks where there are. Set before the load.
 */
#define POSSIBLE_CPUS 1

/* kind: BPF_MAP_TYPE_kind is its type. */
#define MAP(kind, name, entries, key_type, value_type) \
	struct {                                       \
		__uint(type, BPF_MAP_TYPE_##kind);     \
		__uint(max_entries, entries);          \
		__type(key, key_type);                 \
		__type(value, value_type);             \
	} name SEC(".maps")

/* An array that user space maps into its memory. */
#define MAPPED_ARRAY(name, entries, value_type)    \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, entries);      \
		__type(key, __u32);                \
		__type(value, value_type);         \
	} name SEC(".maps")

#define RING(name, bytes)                           \
	struct {                                    \
		__uint(type, BPF_MAP_TYPE_RINGBUF); \
		__uint(max_entries, bytes);         \
	} name SEC(".maps")

/* The key of the only element of a map of maps: on the stack of a deep call it has no room. */
static const volatile __u32 only_key = 0;

/*
 * A ring buffer that begins small, as NAME_first. When that was half full, user space puts a larger
 * one into NAME.
 */
#define GROWING_RING(name)                                                              \
	struct name##_ring {                                                            \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                     \
		__uint(max_entries, 1 << 16); /* of the first: set before the load */   \
	};                                                                              \
	struct name##_ring name##_first SEC(".maps");                                   \
	struct {                                                                        \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                               \
		__uint(max_entries, 1);                                                 \
		__type(key, __u32);                                                     \
		__array(values, struct name##_ring);                                    \
	} name SEC(".maps") = { .values = { &name##_first } };                          \
                                                                                        \
	static __always_inline bool send_to_##name(void *data, __u64 size, __u64 flags) \
	{                                                                               \
		void *ring = bpf_map_lookup_elem(&name, (void *)&only_key);             \
                                                                                        \
		return ring && bpf_ringbuf_output(ring, data, size, flags) == 0;        \
	}

/* One value for each task. */
#define TASK_STORAGE(name, value_type)                   \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE); \
		__uint(map_flags, BPF_F_NO_PREALLOC);    \
		__type(key, int);                        \
		__type(value, value_type);               \
	} name SEC(".maps")

#endif
