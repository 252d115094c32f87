// SPDX-License-Identifier: GPL-2.0-only
#include "profile/pc_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "util/array.h"

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

char **profile_pc_names(const struct profile *p)
{
	char **names = calloc(p->location_count + 1, sizeof(*names));

	for (uint32_t i = 0; names && i < p->location_count; i++) {
		const struct profile_image *image = profile_location_image(p, i);

		if (p->locations[i].line_count)
			continue;
		names[i] = profile_pc_name(image ? image->path : "", p->locations[i].image_address);
		if (!names[i]) {
			array_free_texts(names, p->location_count);
			return NULL;
		}
	}
	return names;
}

bool profile_is_pc_name(const char *name, const char *path)
{
	const char *base = profile_basename(path);
	size_t size = strlen(base);

	if (strncmp(name, base, size) != 0 || (*base && name[size++] != '+') ||
	    strncmp(name + size, "0x", 2) != 0)
		return false;
	name += size + 2;
	return *name && !name[strspn(name, "0123456789abcdef")];
}

bool profile_is_named(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_image *image = profile_location_image(p, location);
	const size_t perhaps = strlen(PROFILE_PERHAPS);
	const char *name;
	size_t size;

	if (l->line_count != 1 || !image)
		return l->line_count > 0;
	name = p->functions[p->lines[l->first_line].function].name;
	size = strlen(name);
	return !profile_is_pc_name(name, image->path) &&
	       !(size > perhaps && strcmp(name + size - perhaps, PROFILE_PERHAPS) == 0);
}
