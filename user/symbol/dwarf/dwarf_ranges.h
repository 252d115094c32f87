/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DWARF_RANGES_H
#define PROFIL_SYMBOL_DWARF_RANGES_H

#include "symbol/dwarf/dwarf_unit.h"

/* Told of code from start to limit, which is above it. Returns 0, or an error that ends it all. */
typedef int dwarf_range(void *context, uint64_t start, uint64_t limit);

/*
 * Tells the ranges of an entry by its attributes, whose class is CLASS_OTHER when it has none.
 * Returns 0, -EINVAL when they are corrupt, or what `tell` returned.
 */
int dwarf_ranges(const struct dwarf_unit *unit, const struct dwarf_value *low,
		 const struct dwarf_value *high, const struct dwarf_value *ranges,
		 dwarf_range *tell, void *context);

/* Tells of all of .debug_aranges, with the offset of the unit in .debug_info. Returns as above. */
int dwarf_unit_ranges(struct dwarf_file *file,
		      int (*tell)(void *context, uint64_t start, uint64_t limit, uint64_t unit),
		      void *context);

#endif
