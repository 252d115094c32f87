/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_BPF_ORDER_H
#define PROFIL_BPF_ORDER_H

#include <bpf/bpf_helpers.h>

/*
 * Adds, and returns the previous value. A full memory barrier: other CPUs and user space see
 * earlier writes before later ones. On arm64, an atomic add whose result is unused is no barrier.
 */
#define add_and_order(to, value)                                         \
	({                                                               \
		typeof(*(to)) before_ = __sync_fetch_and_add(to, value); \
		barrier_var(before_); /* the result is used */           \
		before_;                                                 \
	})

/*
 * Writes what this CPU alone writes: others see earlier writes before it. x86 writes in order, and
 * so needs no atomic operation, which would cost 7 ns.
 */
#if defined(__TARGET_ARCH_x86)
#define write_in_order(to, value)                        \
	do {                                             \
		barrier();                               \
		*(volatile typeof(*(to)) *)(to) = value; \
	} while (0)
#else
#define write_in_order(to, value)                                            \
	do {                                                                 \
		typeof(*(to)) before_ = __sync_lock_test_and_set(to, value); \
		barrier_var(before_);                                        \
	} while (0)
#endif

#endif
