/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_REFERENCES_H
#define PROFIL_LIB_REFERENCES_H

#include <stdbool.h>

/*
 * Whether the program, or a library that is loaded with it, refers to profil(), sprofil(),
 * monstartup() or moncontrol(), and libc's memory can be used before main(): false if the program
 * itself defines malloc(3). One that finds the functions by dlsym(3) does not refer to them.
 */
bool profil__is_referenced(void);

#endif
