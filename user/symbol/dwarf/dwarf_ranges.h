/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_RANGES_H
#define PROFIL_SYMBOL_DWARF_RANGES_H

#include "symbol/dwarf/dwarf_unit.h"

/* Called for a range of code; start < limit. Returns 0, or an error that ends the reading. */
typedef int dwarf_range(void *context, uint64_t start, uint64_t limit);

/*
 * Calls visit() for each range of an entry's code. Returns 0, -EINVAL if the ranges are corrupt, or
 * visit()'s error.
 */
int dwarf_ranges(const struct dwarf_unit *unit, const struct dwarf_code *code, dwarf_range *visit,
		 void *context);

/* The same for each range in .debug_aranges, after it has set *unit to its unit's offset. */
int dwarf_unit_ranges(struct dwarf_file *file, uint64_t *unit, dwarf_range *visit, void *context);

#endif
