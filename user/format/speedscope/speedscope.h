/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_SPEEDSCOPE_H
#define PROFIL_FORMAT_SPEEDSCOPE_H

#include "format/format.h"

/*
 * JSON of www.speedscope.app (file-format-schema.json of its sources), only written: a profile of
 * the kind "sampled" for each thread, its stacks in the order of time where that is known.
 */
extern const struct format format_speedscope;

#endif
