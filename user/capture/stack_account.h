/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_STACK_ACCOUNT_H
#define PROFIL_CAPTURE_STACK_ACCOUNT_H

#include "capture/capture.h"

/* How many stacks are complete, and why the others end. Zero-initialised is empty. */
struct stack_account {
	uint32_t limit; /* most frames that the kernel walks, in each mode; 0: no stacks */
	uint64_t truncated, user, complete; /* as in struct capture_totals */
	struct capture_stack_end *ends;
	size_t end_count, end_room;
};

/* To be called when stacks are recorded: sets the limit. */
void stack_account_begin(struct stack_account *a);

/* Adds a sample. Returns 0 or -ENOMEM. */
int stack_account_add(struct stack_account *a, const struct capture_sample *sample);

/* Sorts the ends, the most frequent first. */
void stack_account_sort(struct stack_account *a);

/* Clears all but the limit. */
void stack_account_clear(struct stack_account *a);
void stack_account_free(struct stack_account *a);

#endif
