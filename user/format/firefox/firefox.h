/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_FIREFOX_H
#define PROFIL_FORMAT_FIREFOX_H

#include "format/format.h"

/*
 * JSON of the Firefox Profiler, only written: its "processed profile format" of version 61
 * (docs-developer/CHANGELOG-formats.md and src/types/profile.ts of its sources), whose tables of
 * stacks, frames and functions all threads share. It opens files of older versions, too.
 */
extern const struct format format_firefox;

#endif
