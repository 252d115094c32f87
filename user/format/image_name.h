/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_IMAGE_NAME_H
#define PROFIL_FORMAT_IMAGE_NAME_H

#include <stdbool.h>
#include <string.h>

/* The kernel's name as an image. Files add the symbol it is relocated by: "..._text". */
#define IMAGE_KERNEL "[kernel.kallsyms]"

static inline bool image_is_kernel(const char *path)
{
	return strncmp(path, IMAGE_KERNEL, strlen(IMAGE_KERNEL)) == 0;
}

#endif
