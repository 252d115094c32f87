/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_CPU_H
#define PROFIL_UTIL_CPU_H

#include <stdint.h>

/*
 * The frequency of this machine's fastest CPU in MHz: the nominal frequency if the kernel knows it,
 * else the highest, else the current one. 0: unknown.
 */
uint64_t cpu_mhz(void);

/*
 * The bits of a return address in user space that hold its signature: arm64's pointer
 * authentication code. 0: this machine signs none.
 */
uint64_t return_address_signature(void);

#endif
