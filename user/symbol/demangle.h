/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DEMANGLE_H
#define PROFIL_SYMBOL_DEMANGLE_H

/*
 * Demangles C++ (Itanium ABI), Rust (both schemes) and D. symbol is untrusted. Returns the name,
 * not empty, which the caller free()s, or NULL: not mangled, or it would take too much memory or
 * time.
 */
char *demangle(const char *symbol);

#endif
