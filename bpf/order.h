/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_BPF_ORDER_H
#define PROFIL_BPF_ORDER_H

#include <bpf/bpf_helpers.h>

/*
 * Adds, and returns the value before. It is a memory barrier: other CPUs and user space see what
 * was written before it before they see what is written after it. On arm64 an atomic add whose
 * result nobody uses is no barrier.
 */
#define add_and_order(to, value)                                         \
	({                                                               \
		typeof(*(to)) before_ = __sync_fetch_and_add(to, value); \
		barrier_var(before_); /* the result is used */           \
		before_;                                                 \
	})

#endif
