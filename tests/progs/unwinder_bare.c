// SPDX-License-Identifier: GPL-2.0-only
/* The same as unwinder, without frame pointers. */
#pragma GCC optimize("omit-frame-pointer")
#include "unwinder.c"
