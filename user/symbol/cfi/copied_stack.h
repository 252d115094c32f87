/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_COPIED_STACK_H
#define PROFIL_SYMBOL_COPIED_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * Walks copies of stacks that another recorder took of programs of this kind of machine, as the
 * eBPF program walks a stack: by the call frame information of the files that are at the images'
 * paths now, or in perf's cache, if they have the recorded build ID.
 */
struct copied_stacks;

/* NULL: out of memory. The caller keeps the profile meanwhile. */
struct copied_stacks *copied_stacks_new(struct profile *p);
void copied_stacks_free(struct copied_stacks *c);

/*
 * Bound: files: frames of a copied stack; then: the callers beyond are cut off; seen: as stacks
 * that are truncated.
 */
#define COPIED_FRAMES_MAX 127

/* Drops the mappings. */
void copied_stacks_unmap(struct copied_stacks *c);

/*
 * Adds a mapping for the walks that follow, behind the others: [start, limit) of this mapping of
 * the profile. Opens the image's file when it is met first. Returns 0 or -ENOMEM.
 */
int copied_stacks_map(struct copied_stacks *c, uint64_t start, uint64_t limit, uint32_t mapping);

/*
 * Walks a stack. mask: which registers there are, by their bits in perf's numbering; registers: the
 * values of these, in its order, unaligned; bytes: the stack from the stack pointer on. Writes the
 * pcs, leaf first, callers as return addresses. Returns their number; 0: the pc, or the stack
 * pointer, is missing.
 */
uint32_t copied_stacks_walk(struct copied_stacks *c, uint64_t mask, const uint8_t *registers,
			    const uint8_t *bytes, size_t size, uint64_t pcs[COPIED_FRAMES_MAX]);

/* Whether call frame information was not read, as that took too long. */
bool copied_stacks_gave_up(const struct copied_stacks *c);

#endif
