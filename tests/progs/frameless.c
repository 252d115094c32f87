// SPDX-License-Identifier: GPL-2.0-only
/* The same as chains, built as most distributions build their programs. */
#define WITHOUT_FRAME_POINTERS
#pragma GCC optimize("omit-frame-pointer")
#include "chains.c"
