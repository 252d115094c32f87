/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's parameters, which root may change at any time. */
#ifndef PROFIL_KMOD_SETTINGS_H
#define PROFIL_KMOD_SETTINGS_H

#include <linux/types.h>

u32 settings_max_hz(void);
u32 settings_max_regions(void);

#endif
