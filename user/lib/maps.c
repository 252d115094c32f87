// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/proc.h"
#include "lib/profil.h"
#include "lib/version.h"
#include "util/array.h"
#include "util/index.h"
#include "util/order.h"

#define RANGE_FIRST_SIZE SIZE_UP_TO(struct profil_text_range, path)

EQUAL(same_file, struct proc_map, struct proc_map, SAME(inode) && strcmp(a->path, b->path) == 0)

int profil__maps_parse(struct maps *maps, const struct bytes *text)
{
	struct index files = { 0 };
	uint64_t limit = 0, hash;
	char *line, *next;
	int err = 0;

	*maps = (struct maps){ .text = malloc(text->size + 1) };
	if (!maps->text)
		return -ENOMEM;
	if (text->size)
		memcpy(maps->text, text->data, text->size);
	maps->text[text->size] = '\0';
	for (line = maps->text; *line && !err; line = next) {
		struct proc_map map;
		uint32_t image;

		next = strchrnul(line, '\n');
		next += *next == '\n';
		if (!proc_map_parse(line, &map) || map.start < limit)
			continue;
		limit = map.limit;
		map.path[proc_path_size(map.path)] = '\0'; /* a deleted file keeps its path */
		/* 32-bit programs have another vDSO. */
		if (strcmp(map.path, "[vdso]") == 0 && map.limit <= UINT32_MAX)
			map.path = (char *)"[vdso32]";
		if (array_reserve(&maps->all, &maps->room, maps->count + 1, sizeof(map)) ||
		    array_reserve(&maps->images, &maps->image_room, maps->count + 1, sizeof(image)))
			err = -ENOMEM;
		hash = hash_bytes(map.path, strlen(map.path), map.inode);
		image = err ? INDEX_NONE : index_find(&files, hash, same_file, maps->all, &map);
		if (!err && image == INDEX_NONE) {
			image = maps->count;
			err = index_add(&files, hash, image);
		}
		if (!err) {
			maps->images[maps->count] = image;
			maps->all[maps->count++] = map;
		}
	}
	index_free(&files);
	return err;
}

void profil__maps_free(struct maps *maps)
{
	free(maps->all);
	free(maps->images);
	free(maps->text);
	*maps = (struct maps){ 0 };
}

ORDER_OF_KEY(compare_map, uint64_t, struct proc_map, *a < b->start ? -1 : *a >= b->limit)

const struct proc_map *profil__maps_find(const struct maps *maps, uint64_t address)
{
	if (!maps->count)
		return NULL;
	return bsearch(&address, maps->all, maps->count, sizeof(*maps->all), compare_map);
}

/*
 * Returns one block: `count` elements of the caller's size, then their paths. NULL: out of memory.
 */
static struct profil_text_range *make_ranges(const struct maps *maps, size_t count, size_t size)
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
		const struct proc_map *map = &maps->all[i];
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

EXPORT int profil_text_ranges(pid_t pid, struct profil_text_range **ranges, size_t *count,
			      size_t size)
{
	struct profil_text_range *found = NULL;
	struct bytes text = { 0 };
	struct maps maps = { 0 };
	int code = errno, err;
	size_t n = 0;

	profil__error_clear();
	err = profil__proc_check(pid);
	err = err ?: profil__struct_check(size, RANGE_FIRST_SIZE, "profil_text_range");
	err = err ?: profil__proc_maps(&text, pid);
	if (!err) {
		err = profil__maps_parse(&maps, &text);
		for (size_t i = 0; i < maps.count; i++)
			n += maps.all[i].executable;
		if (!err && n)
			found = make_ranges(&maps, n, size);
		if (err || (n && !found))
			err = profil__error(ENOMEM, "out of memory");
		else if (!n)
			err = profil__error(ESRCH,
					    "process %d has no executable memory: it has ended, or "
					    "is a kernel thread",
					    pid);
	}
	if (!err) {
		*ranges = found;
		*count = n;
	}
	profil__maps_free(&maps);
	free(text.data);
	errno = code;
	return err;
}
