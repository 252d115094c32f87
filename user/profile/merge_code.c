// SPDX-License-Identifier: GPL-2.0-only
#include "profile/merge_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/build_id.h"
#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "util/array.h"
#include "util/sum.h"

/*
 * A mapping by its content: `offset` is that in its file; for memory without a file, and for images
 * in their own numbering, the address.
 */
struct content {
	uint32_t image;
	uint64_t offset;
	uint64_t start;
	uint64_t limit;
	uint32_t mapping;
};

struct merger {
	struct profile *to;
	const struct profile *from;
	struct merge_cache *cache;
	struct merged_code *map;
	struct content *contents; /* of all mappings of `to`, sorted by by_content() */
	size_t content_count;
	struct profile_line *lines; /* of one location */
	size_t line_room;
};

static uint32_t *new_map(size_t count)
{
	return calloc(count + 1, sizeof(uint32_t));
}

/* The first image of each build ID, name and provider, and the first of each path. */
struct image_indexes {
	struct index by_build_id;
	struct index by_path;
};

static bool same_build_id(const void *array, uint32_t id, const void *key)
{
	return build_id_is_copy((const struct profile_image *)array + id, key);
}

static bool same_path(const void *array, uint32_t id, const void *key)
{
	const struct profile_image *image = (const struct profile_image *)array + id, *wanted = key;

	return image->path == wanted->path && image->provider == wanted->provider;
}

static uint64_t path_hash(const struct profile_image *image)
{
	return hash_u64((uintptr_t)image->path, image->provider);
}

static int index_image(const struct profile *p, uint32_t id, struct image_indexes *indexes)
{
	const struct profile_image *image = &p->images[id];
	uint64_t hash = build_id_hash(image);

	if (image->build_id_size &&
	    index_find(&indexes->by_build_id, hash, same_build_id, p->images, image) ==
		    INDEX_NONE &&
	    index_add(&indexes->by_build_id, hash, id))
		return -ENOMEM;
	if (index_find(&indexes->by_path, path_hash(image), same_path, p->images, image) ==
	    INDEX_NONE)
		return index_add(&indexes->by_path, path_hash(image), id);
	return 0;
}

/* INDEX_NONE when there is none. image: its path is a string of p. */
static uint32_t find_image(const struct profile *p, const struct image_indexes *indexes,
			   const struct profile_image *image)
{
	uint32_t id = INDEX_NONE;

	if (image->build_id_size)
		id = index_find(&indexes->by_build_id, build_id_hash(image), same_build_id,
				p->images, image);
	if (id != INDEX_NONE || !*image->path)
		return id;
	id = index_find(&indexes->by_path, path_hash(image), same_path, p->images, image);
	if (id != INDEX_NONE && image->build_id_size && p->images[id].build_id_size)
		return INDEX_NONE;
	return id;
}

/* What only `from` knows of an image that both have. */
static int complete_image(struct profile *to, uint32_t id, const struct profile_image *from)
{
	struct profile_image *image = &to->images[id];

	if (!image->build_id_size) {
		memcpy(image->build_id, from->build_id, from->build_id_size);
		image->build_id_size = from->build_id_size;
	}
	if (!image->text_size) {
		image->text_start = from->text_start;
		image->text_size = from->text_size;
	}
	if (!image->bits)
		image->bits = from->bits;
	if (image->unnamed || !from->unnamed)
		return 0;
	return profile_string(to, from->unnamed, &image->unnamed);
}

static int merge_image(struct merger *m, struct image_indexes *indexes, uint32_t number)
{
	struct profile_image image = m->from->images[number];
	uint32_t *id = &m->map->images[number];

	if (profile_string(m->to, image.path, &image.path))
		return -ENOMEM;
	*id = find_image(m->to, indexes, &image);
	if (*id == INDEX_NONE && (profile_add_image_of(m->to, image.path, image.build_id,
						       image.build_id_size, image.provider, id) ||
				  index_image(m->to, *id, indexes)))
		return -ENOMEM;
	return complete_image(m->to, *id, &image);
}

/*
 * Copies of a file have the path of one of them, which does not depend on what was merged first:
 * the shortest.
 */
static int choose_path(struct merger *m, uint32_t number)
{
	const struct profile_image *theirs = &m->from->images[number];
	struct profile_image *ours = &m->to->images[m->map->images[number]];
	size_t size = strlen(theirs->path), our_size = strlen(ours->path);

	if (!build_id_is_copy(ours, theirs) || image_kind(ours->path) != image_kind(theirs->path) ||
	    size > our_size || (size == our_size && strcmp(theirs->path, ours->path) >= 0))
		return 0;
	return profile_string(m->to, theirs->path, &ours->path);
}

static int merge_images(struct merger *m)
{
	struct image_indexes indexes = { 0 };
	int err = 0;

	for (uint32_t i = 0; i < m->to->image_count && !err; i++)
		err = index_image(m->to, i, &indexes);
	for (uint32_t i = 0; i < m->from->image_count && !err; i++)
		err = merge_image(m, &indexes, i);
	/* The indexes know images by the paths that they had. */
	for (uint32_t i = 0; i < m->from->image_count && !err; i++)
		err = choose_path(m, i);
	index_free(&indexes.by_build_id);
	index_free(&indexes.by_path);
	return err;
}

/* Whether an offset identifies code in it, as in a file. The vdso is one image at any address. */
static bool has_offsets(const char *path)
{
	enum image_kind kind = image_kind(path);

	return kind == IMAGE_FILE || kind == IMAGE_VDSO;
}

static struct content content_of(const struct profile *p, uint32_t mapping)
{
	const struct profile_mapping *m = &p->mappings[mapping];
	bool by_address = m->linked || !has_offsets(p->images[m->image].path);

	return (struct content){ m->image, by_address ? m->start : m->offset, m->start, m->limit,
				 mapping };
}

static int by_content(const void *x, const void *y)
{
	const struct content *a = x, *b = y;

	return compare_u64(a->image, b->image)	       ?:
		       compare_u64(a->offset, b->offset)   ?:
		       compare_u64(a->mapping, b->mapping);
}

static int sort_contents(struct merger *m)
{
	m->content_count = m->to->mapping_count;
	m->contents = calloc(m->content_count + 1, sizeof(*m->contents));
	if (!m->contents)
		return -ENOMEM;
	for (size_t i = 0; i < m->content_count; i++)
		m->contents[i] = content_of(m->to, i);
	qsort(m->contents, m->content_count, sizeof(*m->contents), by_content);
	return 0;
}

/* The first that does not come before this image and offset. */
static size_t lower_bound(const struct merger *m, uint32_t image, uint64_t offset)
{
	struct content key = { .image = image, .offset = offset };
	size_t from = 0, to = m->content_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (by_content(&m->contents[middle], &key) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool overlaps(const struct content *a, const struct content *b)
{
	if (a->image != b->image)
		return false;
	return a->offset <= b->offset ? b->offset - a->offset < a->limit - a->start
				      : a->offset - b->offset < b->limit - b->start;
}

/* A mapping of `to` that overlaps it, or NULL; preferably one at the same addresses. */
static struct content *find_content(struct merger *m, const struct content *wanted)
{
	size_t at = lower_bound(m, wanted->image, wanted->offset), first = at;

	for (size_t i = at; i < m->content_count && m->contents[i].image == wanted->image &&
			    m->contents[i].offset == wanted->offset;
	     i++)
		if (m->contents[i].start == wanted->start && m->contents[i].limit == wanted->limit)
			return &m->contents[i];
	if (at < m->content_count && overlaps(&m->contents[at], wanted))
		return &m->contents[at];
	if (at == 0)
		return NULL;
	first = lower_bound(m, m->contents[at - 1].image, m->contents[at - 1].offset);
	return overlaps(&m->contents[first], wanted) ? &m->contents[first] : NULL;
}

/*
 * Extends a mapping of `to` to the content of another one that overlaps it: loaders map whole
 * pages, other files know the text only. Returns whether that was possible.
 */
static bool widen(struct merger *m, struct content *have, const struct content *wanted)
{
	struct profile_mapping *mapping = &m->to->mappings[have->mapping];
	uint64_t less = have->offset > wanted->offset ? have->offset - wanted->offset : 0;
	uint64_t size = wanted->offset - (have->offset - less) + (wanted->limit - wanted->start);
	uint64_t limit;

	if (less > mapping->start || (!mapping->linked && less > mapping->offset) ||
	    __builtin_add_overflow(mapping->start - less, size, &limit))
		return false;
	mapping->start -= less;
	mapping->offset -= mapping->linked ? 0 : less;
	if (limit > mapping->limit)
		mapping->limit = limit;
	*have = content_of(m->to, have->mapping);
	return true;
}

static int merge_mapping(struct merger *m, uint32_t number)
{
	const struct profile_mapping *mapping = &m->from->mappings[number];
	struct content wanted = content_of(m->from, number), *have;
	uint32_t *id = &m->map->mappings[number];

	wanted.image = m->map->images[wanted.image];
	have = find_content(m, &wanted);
	if (have && m->to->mappings[have->mapping].linked == mapping->linked &&
	    widen(m, have, &wanted)) {
		*id = have->mapping;
		return 0;
	}
	if (profile_add_mapping(m->to, mapping->start, mapping->limit, mapping->offset,
				wanted.image, id))
		return -ENOMEM;
	m->to->mappings[*id].linked = mapping->linked;
	return 0;
}

static int merge_mappings(struct merger *m)
{
	int err = sort_contents(m);

	for (uint32_t i = 0; i < m->from->mapping_count && !err; i++)
		err = merge_mapping(m, i);
	return err;
}

static bool same_place(const void *array, uint32_t id, const void *key)
{
	const struct profile_location *a = (const struct profile_location *)array + id, *b = key;

	return a->address == b->address && a->mapping == b->mapping;
}

static uint64_t place_hash(const struct profile_location *l)
{
	return hash_u64(l->address, l->mapping);
}

/* The first location of m->to at the place of this one, or INDEX_NONE. */
static uint32_t find_place(const struct merger *m, const struct profile_location *l)
{
	return index_find(&m->cache->locations, place_hash(l), same_place, m->to->locations, l);
}

/* Adds the locations that are new in m->to. */
static int index_places(struct merger *m)
{
	struct merge_cache *cache = m->cache;

	for (; cache->indexed < m->to->location_count; cache->indexed++) {
		const struct profile_location *l = &m->to->locations[cache->indexed];

		if (find_place(m, l) == INDEX_NONE &&
		    index_add(&cache->locations, place_hash(l), cache->indexed))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Whether the lines of two files for one address agree. One of them may lack inlined functions or
 * the line number.
 */
static bool lines_agree(const struct profile *p, uint32_t location,
			const struct profile_line *lines, uint32_t count)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_line *a, *b;

	a = &p->lines[l->first_line + l->line_count - 1];
	b = &lines[count - 1];
	return p->functions[a->function].name == p->functions[b->function].name &&
	       (a->line == b->line || !a->line || !b->line);
}

/* Translates the lines of a location of `from` into m->lines. */
static int translate_lines(struct merger *m, const struct profile_location *l)
{
	if (array_reserve(&m->lines, &m->line_room, l->line_count, sizeof(*m->lines)))
		return -ENOMEM;
	for (uint32_t i = 0; i < l->line_count; i++) {
		m->lines[i] = m->from->lines[l->first_line + i];
		m->lines[i].function = m->map->functions[m->lines[i].function];
	}
	return 0;
}

static int add_location(struct merger *m, const struct profile_location *l, uint32_t *id)
{
	int err;

	if (l->line_count)
		err = profile_add_line_location(m->to, l->address, l->mapping, m->lines,
						l->line_count, id);
	else
		err = profile_add_location(m->to, l->address, l->mapping, id);
	if (err)
		return err;
	m->to->locations[*id].image_address = l->image_address;
	m->to->locations[*id].folded |= l->folded;
	return 0;
}

/*
 * l: a location of `from`, moved to its address in `to`; named: whether it has a real name. In
 * files without addresses, lines identify locations.
 */
static int place_location(struct merger *m, const struct profile_location *l, bool named,
			  uint32_t *id)
{
	struct profile_location *same;
	bool same_named;

	*id = l->address ? find_place(m, l) : INDEX_NONE;
	if (*id == INDEX_NONE)
		return add_location(m, l, id);
	same_named = profile_is_named(m->to, *id);
	if (named && same_named && !lines_agree(m->to, *id, m->lines, l->line_count))
		return add_location(m, l, id);
	same = &m->to->locations[*id];
	if (!l->line_count || (same->line_count && (same_named || !named)))
		return 0;
	same->image_address = l->image_address;
	return profile_set_lines(m->to, *id, m->lines, l->line_count);
}

static int merge_location(struct merger *m, uint32_t number)
{
	struct profile_location l = m->from->locations[number];

	if (l.mapping != PROFILE_NONE) {
		struct content old = content_of(m->from, l.mapping);
		struct content place = content_of(m->to, m->map->mappings[l.mapping]);

		l.mapping = place.mapping;
		if (l.address)
			l.address += old.offset - old.start + place.start - place.offset;
	}
	if (translate_lines(m, &l) ||
	    place_location(m, &l, profile_is_named(m->from, number), &m->map->locations[number]))
		return -ENOMEM;
	return index_places(m);
}

/* Which locations samples and arcs refer to; to be free()d. NULL: out of memory. */
static bool *find_used(const struct profile *p)
{
	bool *used = calloc(p->location_count + 1, sizeof(*used));

	for (size_t i = 0; used && i < p->sample_count; i++)
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			used[p->frames[p->samples[i].first_frame + j]] = true;
	for (size_t i = 0; used && i < p->arc_count; i++)
		used[p->arcs[i].from] = used[p->arcs[i].to] = true;
	return used;
}

static int merge_locations(struct merger *m)
{
	bool *used = find_used(m->from);
	int err = used ? index_places(m) : -ENOMEM;

	for (uint32_t i = 0; i < m->from->location_count && !err; i++)
		if (used[i])
			err = merge_location(m, i);
	free(used);
	return err;
}

static int merge_functions(struct merger *m)
{
	for (uint32_t i = 0; i < m->from->function_count; i++)
		if (profile_add_function(m->to, &m->from->functions[i], &m->map->functions[i]))
			return -ENOMEM;
	return 0;
}

int merge_code(struct profile *to, const struct profile *from, struct merge_cache *cache,
	       struct merged_code *c)
{
	struct merger m = { .to = to, .from = from, .cache = cache, .map = c };
	int err;

	*c = (struct merged_code){
		.images = new_map(from->image_count),
		.mappings = new_map(from->mapping_count),
		.functions = new_map(from->function_count),
		.locations = new_map(from->location_count),
	};
	err = c->images && c->mappings && c->functions && c->locations ? 0 : -ENOMEM;
	err = err ?: merge_images(&m);
	err = err ?: merge_mappings(&m);
	err = err ?: merge_functions(&m);
	err = err ?: merge_locations(&m);
	free(m.contents);
	free(m.lines);
	return err;
}

void merged_code_free(struct merged_code *c)
{
	free(c->images);
	free(c->mappings);
	free(c->functions);
	free(c->locations);
}
