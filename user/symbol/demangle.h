/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DEMANGLE_H
#define PROFIL_SYMBOL_DEMANGLE_H

/*
 * The name as its author wrote it: C++ (Itanium ABI), Rust (both schemes) and D. Returns NULL when
 * the symbol is none of these, or takes more memory or time than a name is worth. The result is
 * never empty; the caller free()s it. Symbols may come from an attacker's hand.
 */
char *demangle(const char *symbol);

#endif
