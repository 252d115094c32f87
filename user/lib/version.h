/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Structs of profil.h, whose size is that of the version that the caller was compiled for. */
#ifndef PROFIL_LIB_VERSION_H
#define PROFIL_LIB_VERSION_H

#include <stddef.h>

/* The size of a struct that ended with `member` in its first version. */
#define SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/*
 * Whether `size` can be that of a struct whose first version had `first` bytes. `name` is the
 * struct's, for the message. Returns 0, or -EINVAL with profil__error() set.
 */
int profil__struct_check(size_t size, size_t first, const char *name);

/*
 * Copies a caller's struct of `size` bytes, which were checked, to one of `known` bytes. What the
 * caller does not have becomes 0. Returns 0, or -E2BIG with profil__error() set when a byte behind
 * those that are known is not 0.
 */
int profil__struct_read(void *to, size_t known, const void *from, size_t size, const char *name);

/* Fills in a caller's struct of `size` bytes, which were checked: those not known become 0. */
void profil__struct_write(void *to, size_t size, const void *from, size_t known);

#endif
