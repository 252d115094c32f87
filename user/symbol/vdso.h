/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_VDSO_H
#define PROFIL_SYMBOL_VDSO_H

/*
 * A copy of our own vDSO, which all processes of our kind have under this kernel: an ELF file in
 * memory. Returns a descriptor or a negative errno.
 */
int vdso_open(void);

#endif
