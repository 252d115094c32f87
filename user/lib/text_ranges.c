// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/profil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/maps.h"
#include "lib/proc.h"
#include "lib/struct_size.h"

#define FIRST_SIZE SIZE_UP_TO(struct profil_text_range, path)

/* One block: the elements, of the caller's size, then their paths. Returns NULL without memory. */
static struct profil_text_range *make_array(const struct maps *maps, size_t count, size_t size)
{
	size_t text_size = 0;
	char *element, *text;
	void *block;

	for (size_t i = 0; i < maps->count; i++)
		if (maps->all[i].executable)
			text_size += strlen(maps->all[i].path) + 1;
	block = malloc(count * size + text_size);
	if (!block)
		return NULL;
	element = block;
	text = element + count * size;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->all[i];
		const struct profil_text_range range = { map->start, map->limit, map->offset,
							 text };

		if (!map->executable)
			continue;
		profil__struct_write(element, size, &range, sizeof(range));
		element += size;
		text = stpcpy(text, map->path) + 1;
	}
	return block;
}

static int find_ranges(const struct bytes *text, pid_t pid, struct profil_text_range **ranges,
		       size_t *count, size_t size)
{
	struct profil_text_range *array = NULL;
	struct maps maps;
	size_t found = 0;
	int err = profil__maps_parse(&maps, text);

	for (size_t i = 0; i < maps.count; i++)
		found += maps.all[i].executable;
	if (!err && !found)
		err = profil__error(ESRCH,
				    "process %d has no executable memory: it has ended, or is a "
				    "kernel thread",
				    pid);
	if (!err)
		array = make_array(&maps, found, size);
	if (err == -ENOMEM || (!err && !array))
		err = profil__error(ENOMEM, "out of memory");
	profil__maps_free(&maps);
	if (err)
		return err;
	*ranges = array;
	*count = found;
	return 0;
}

EXPORT int profil_text_ranges(pid_t pid, struct profil_text_range **ranges, size_t *count,
			      size_t size)
{
	struct bytes text = { 0 };
	int code = errno, err;

	profil__error_clear();
	err = profil__proc_check(pid);
	err = err ?: profil__struct_check(size, FIRST_SIZE, "profil_text_range");
	err = err ?: profil__proc_maps(&text, pid);
	err = err ?: find_ranges(&text, pid, ranges, count, size);
	free(text.data);
	errno = code;
	return err;
}
