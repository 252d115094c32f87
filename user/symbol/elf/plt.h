/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_PLT_H
#define PROFIL_SYMBOL_PLT_H

#include "symbol/batch.h"
#include "symbol/elf_file.h"

/*
 * Names the addresses in the procedure linkage table, which has no symbols, by the targets of its
 * stubs: "memcmp@plt"; "[plt]" if the target is unknown, as on machines other than x86-64 and
 * arm64. Returns 0 or -ENOMEM.
 */
int plt_name_all(struct batch *b, const struct elf_file *file);

#endif
