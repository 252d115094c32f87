// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/index.h"
#include "util/proc_path.h"
#include "util/scan.h"

static bool skip_word(struct text *line)
{
	take_token(line);
	return take_blanks(line);
}

/* START-LIMIT MODE OFFSET DEVICE INODE PATH. Writes a NUL behind the path, in place. */
static bool parse_line(struct text line, struct map *map)
{
	if (!take_number(&line, 16, &map->start) || !take(&line, "-") ||
	    !take_number(&line, 16, &map->limit) || !take_blanks(&line))
		return false;
	map->executable = line.end - line.at > 3 && line.at[2] == 'x';
	if (!skip_word(&line) || !take_number(&line, 16, &map->offset) || !take_blanks(&line) ||
	    !skip_word(&line) || !take_number(&line, 10, &map->inode))
		return false;
	take_blanks(&line);
	map->path = (char *)line.at;
	*(char *)line.end = '\0';
	proc_path_unescape(map->path);
	map->path[proc_path_size(map->path)] = '\0'; /* a deleted file keeps its path */
	/* 32-bit programs have another vDSO. */
	if (strcmp(map->path, "[vdso]") == 0 && map->limit <= UINT32_MAX)
		map->path = (char *)"[vdso32]";
	return map->start < map->limit;
}

static bool same_file(const void *array, uint32_t id, const void *key)
{
	const struct map *a = (const struct map *)array + id, *b = key;

	return a->inode == b->inode && strcmp(a->path, b->path) == 0;
}

static int add_map(struct maps *maps, struct index *files, struct map *map)
{
	uint64_t hash = hash_bytes(map->path, strlen(map->path), map->inode);

	if (array_reserve(&maps->all, &maps->room, maps->count + 1, sizeof(*map)))
		return -ENOMEM;
	map->image = index_find(files, hash, same_file, maps->all, map);
	if (map->image == INDEX_NONE) {
		map->image = maps->count;
		if (index_add(files, hash, map->image))
			return -ENOMEM;
	}
	maps->all[maps->count++] = *map;
	return 0;
}

int profil__maps_parse(struct maps *maps, const struct bytes *text)
{
	struct index files = { 0 };
	uint64_t limit = 0;
	struct text all, line;
	int err = 0;

	*maps = (struct maps){ .text = malloc(text->size + 1) };
	if (!maps->text)
		return -ENOMEM;
	if (text->size)
		memcpy(maps->text, text->data, text->size);
	maps->text[text->size] = '\0';
	all = (struct text){ maps->text, maps->text + text->size };
	while (!err && take_line(&all, &line)) {
		struct map map;

		if (!parse_line(line, &map) || map.start < limit)
			continue;
		limit = map.limit;
		err = add_map(maps, &files, &map);
	}
	index_free(&files);
	return err;
}

void profil__maps_free(struct maps *maps)
{
	free(maps->all);
	free(maps->text);
	*maps = (struct maps){ 0 };
}

const struct map *profil__maps_find(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct map *map = &maps->all[middle];

		if (address < map->start)
			high = middle;
		else if (address >= map->limit)
			low = middle + 1;
		else
			return map;
	}
	return NULL;
}
