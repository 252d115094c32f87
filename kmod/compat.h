/* SPDX-License-Identifier: GPL-2.0-only */
/* What a kernel must have. Linux 6.1 to 6.12 are nearly the same to this module. */
#ifndef PROFIL_KMOD_COMPAT_H
#define PROFIL_KMOD_COMPAT_H

#include <linux/kconfig.h>

#ifndef CONFIG_PERF_EVENTS
#error "profil.ko needs a kernel with CONFIG_PERF_EVENTS: its ticks are perf events"
#endif
#ifndef CONFIG_MMU_NOTIFIER
#error "profil.ko needs a kernel with CONFIG_MMU_NOTIFIER, to know when a buffer is unmapped"
#endif
#ifndef CONFIG_TRACEPOINTS
#error "profil.ko needs a kernel with CONFIG_TRACEPOINTS, to follow fork(2)"
#endif
#ifdef CONFIG_PREEMPT_RT
#error "profil.ko cannot allocate memory where it follows fork(2) in a PREEMPT_RT kernel"
#endif

#include <linux/sched.h>

#ifndef PF_USER_WORKER /* 6.1: all such are PF_IO_WORKER */
#define PF_USER_WORKER PF_IO_WORKER
#endif

#endif
