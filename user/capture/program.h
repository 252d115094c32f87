/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROGRAM_H
#define PROFIL_CAPTURE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

/*
 * Calls load(object), which has libbpf load a BPF object and returns 0 or a negative errno. Returns
 * that, and sets *e to the cause, with libbpf's message.
 */
int program_load(int (*load)(void *object), void *object, struct error *e);

/*
 * Sets *e for `what`, failed with errno `code`; if a limit is the cause, with a hint. Returns
 * -code.
 */
int program_out_of(struct error *e, int code, const char *what);

/* Sets *e, with a hint: `what`, refused with errno `code` for lack of privileges. Returns -code. */
int program_not_permitted(struct error *e, int code, const char *what);

/* False if the kernel has no bpf_loop(), or says nothing about it: before Linux 5.17. */
bool program_has_loops(void);

/* What waits for BPF programs. Zero-initialised is none. */
struct program_barrier {
	int outer, inner; /* descriptors; 0: none */
};

/* Returns 0 or a negative errno. */
int program_barrier_open(struct program_barrier *barrier);

/*
 * Waits for the BPF programs that run now on any CPU: what was written before the call is seen by
 * those that run afterwards. Takes some milliseconds. Returns 0 or a negative errno.
 */
int program_barrier_wait(const struct program_barrier *barrier);
void program_barrier_close(struct program_barrier *barrier);

struct bpf_map;
struct bpf_program;

/*
 * Before the load: lets a hash map allocate its elements on demand, as to allocate all of them at
 * once takes memory and some milliseconds. perf_event programs may use such a map since Linux 6.1.
 */
void program_let_grow(struct bpf_map *map);

/* The memory of a map with BPF_F_MMAPABLE. NULL: errno says why; to unmap it does nothing. */
void *program_map(const struct bpf_map *map);
void program_unmap(const struct bpf_map *map, void *memory);

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

/* The kernel's BTF, read when something in it is looked for first. Zero-initialised is fine. */
struct kernel_types {
	struct btf *btf; /* NULL: not read */
	int used;	 /* descriptor of kernel_types_used(); 0: none */
	char used_path[32];
};

/*
 * The path of a file with those of the kernel's types alone that our programs use, for libbpf: it
 * searches all types for each that a program uses, which takes longer than all else of a load.
 * Exists until the types are closed. NULL: it cannot be made, and libbpf is to read all.
 */
const char *kernel_types_used(struct kernel_types *types);

/* Frees what has been read, but not that file. */
void kernel_types_forget(struct kernel_types *types);

/* Finds the offset of a per-CPU variable. Returns 0 or a negative errno: -ENOENT, or of reading. */
int kernel_variable_offset(struct kernel_types *types, const char *name, int64_t *offset);

/*
 * Finds the offset in bytes of a member of a struct, or of an unnamed part of it. Returns as above.
 * A type that the kernel may not have is found so, not by a relocation: libbpf 1.1 looks for it in
 * the BTF of all modules, which takes CAP_SYS_ADMIN.
 */
int kernel_member_offset(struct kernel_types *types, const char *type, const char *member,
			 uint32_t *offset);

/* Frees all. */
void kernel_types_close(struct kernel_types *types);

/*
 * Attaches a program to its tracepoint. Returns a descriptor that keeps it attached and that the
 * caller closes, or a negative errno.
 */
int program_attach(const struct bpf_program *program);

#endif
