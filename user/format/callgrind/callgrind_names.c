// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "format/callgrind/callgrind_read.h"
#include "util/array.h"

struct callgrind_name {
	uint64_t number;
	const char *text;
	uint32_t part; /* the part of the file that defines it */
};

int callgrind_intern(struct callgrind_reader *r, struct text t, const char **interned)
{
	return profile_string_n(r->p, t.at, t.end - t.at, interned) ? error_no_memory(r->e) : 0;
}

static bool number_equal(const void *array, uint32_t id, const void *key)
{
	const struct callgrind_name *names = array;

	return names[id].number == *(const uint64_t *)key;
}

static struct callgrind_name *find_name(const struct callgrind_names *names, uint64_t number)
{
	uint32_t id =
		index_find(&names->index, hash_u64(number, 0), number_equal, names->list, &number);

	return id == INDEX_NONE ? NULL : &names->list[id];
}

/* Each part may define all numbers again. */
static int define_name(struct callgrind_reader *r, struct callgrind_names *names, uint64_t number,
		       const char *text)
{
	struct callgrind_name *name = find_name(names, number);

	if (!name) {
		if (array_reserve(&names->list, &names->room, names->count + 1,
				  sizeof(*names->list)) ||
		    index_add(&names->index, hash_u64(number, 0), names->count))
			return error_no_memory(r->e);
		name = &names->list[names->count++];
	} else if (name->part == r->part && name->text != text) {
		callgrind_overlook(r, OVERSIGHT_REDEFINED);
	}
	*name = (struct callgrind_name){ number, text, r->part };
	return 0;
}

int callgrind_take_name(struct callgrind_reader *r, struct callgrind_names *names, struct text t,
			const char **name)
{
	const struct callgrind_name *known;
	struct text rest;
	uint64_t number;
	int err;

	take_blanks(&t);
	rest = t;
	if (!take(&rest, "(") || !callgrind_take_number(&rest, &number) || !take(&rest, ")"))
		return callgrind_intern(r, t, name);
	take_blanks(&rest);
	if (!is_empty(&rest)) {
		err = callgrind_intern(r, rest, name);
		return err ?: define_name(r, names, number, *name);
	}
	known = find_name(names, number);
	if (known) {
		*name = known->text;
		return 0;
	}
	callgrind_overlook(r, OVERSIGHT_UNDEFINED);
	return callgrind_intern(r, t, name);
}

void callgrind_names_free(struct callgrind_names *names)
{
	free(names->list);
	index_free(&names->index);
}

static bool mapping_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile *p = array;

	return p->images[p->mappings[id].image].path == key;
}

int callgrind_object(struct callgrind_reader *r, const char *path, const uint8_t *build_id,
		     size_t build_id_size, uint32_t *mapping)
{
	struct profile *p = r->p;
	uint64_t hash = hash_u64((uintptr_t)path, 0);
	uint32_t image;

	*mapping = PROFILE_NONE;
	if (!*path)
		return 0;
	*mapping = index_find(&r->mapping_index, hash, mapping_equal, p, path);
	if (*mapping != INDEX_NONE)
		return 0;
	if (profile_add_image(p, path, build_id, build_id_size, &image) ||
	    profile_add_mapping(p, 0, 0, 0, image, mapping) ||
	    index_add(&r->mapping_index, hash, *mapping))
		return error_no_memory(r->e);
	p->mappings[*mapping].linked = true;
	return 0;
}

static bool function_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_function *a = (const struct profile_function *)array + id, *b = key;

	return a->name == b->name && a->file == b->file;
}

/* Each call names its callee: an index by interned texts is faster than profile_add_function(). */
int callgrind_function(struct callgrind_reader *r, struct callgrind_place *place)
{
	const struct profile_function f = { place->function, place->function, place->home, 0 };
	uint64_t hash = hash_u64((uintptr_t)f.name, (uintptr_t)f.file);

	if (place->id != PROFILE_NONE)
		return 0;
	place->id = index_find(&r->function_index, hash, function_equal, r->p->functions, &f);
	if (place->id != INDEX_NONE)
		return 0;
	if (profile_add_function(r->p, &f, &place->id) ||
	    index_add(&r->function_index, hash, place->id))
		return error_no_memory(r->e);
	return 0;
}
