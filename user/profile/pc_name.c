// SPDX-License-Identifier: GPL-2.0-only
#include "profile/pc_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile/image_name.h"

const char *profile_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return image_is_bracketed(path) || !slash || !slash[1] ? path : slash + 1;
}

char *profile_pc_name(const char *path, uint64_t address)
{
	char *name;

	if (asprintf(&name, "%s%s0x%" PRIx64, profile_basename(path), *path ? "+" : "", address) <
	    0)
		return NULL;
	return name;
}
