// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/member.h" /* of the skeleton */
#include "sample.skel.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * More code than a linker puts into one image.
 * Bound: files: bytes of an image's code with rows; then: it has no rows: stacks end in its code;
 * again: never for this file; seen: unwind_no_room_images.
 */
#define IMAGE_BYTES_MAX (1ULL << 32)

/* Of the room for programs and libraries that are mapped later: */
#define MIB_ROWS  (16 * UNWIND_CHUNK_ROWS)
#define MIB_RULES (1U << 13)
#define MIB_PAGES (MIB_ROWS / UNWIND_PAGE_ROWS)
/*
 * Bound: users: images that are mapped after the start, and half of it those of users' files; then:
 * stacks end in their code; again: when others are unmapped, or are used less; share: half to
 * root's files; none among users; seen: unwind_no_room_images.
 */
#define SPARE_IMAGES   4096
#define SPARE_MAPPINGS (1U << 16)

/*
 * Any user can create files that would use up the tables. So all users' files together are limited:
 * to this when recording starts (ten of the largest browsers), and later to half of the room above.
 */
static const struct unwind_sizes users_max = {
	.images = 1U << 14,
	.pages = 1U << 19,
	.rows = 8000000,
	.rules = 1U << 18,
};

/* Processes with more mappings than this wait earlier: see unwind_tables_publish(). */
#define MANY_MAPPINGS 256

/*
 * 32 MiB: enough for ten thousand processes. Stacks of others are walked in user space.
 * Bound: users: executable mappings of all processes that the kernel walks; then: ticks in further
 * processes send copies, which user space walks; again: when others end, and then at that process's
 * next change; share: none; seen: not seen, but as CPU time.
 */
#define MAPPINGS_MAX (1U << 20)

static uint64_t byte_count(const struct unwind_rows *rows)
{
	return rows->rows[rows->count - 1].address - rows->rows[0].address;
}

static size_t page_count(const struct unwind_rows *rows, unsigned int shift)
{
	return (byte_count(rows) >> shift) + 1;
}

static unsigned int page_shift(const struct unwind_rows *rows)
{
	unsigned int shift = UNWIND_PAGE_SHIFT_MIN;

	while (shift < UNWIND_PAGE_SHIFT_MAX &&
	       page_count(rows, shift) > rows->count / UNWIND_PAGE_ROWS)
		shift++;
	return shift;
}

/* Adds the size of an image's rows. Returns false, and adds nothing, if that exceeds `room`. */
static bool add_sizes(struct unwind_sizes *sizes, const struct unwind_rows *rows,
		      const struct unwind_sizes *room)
{
	size_t pages = page_count(rows, page_shift(rows));

	if (byte_count(rows) >= IMAGE_BYTES_MAX || sizes->images + 1 > room->images ||
	    sizes->pages + pages > room->pages || sizes->rows + rows->count + 1 > room->rows ||
	    sizes->rules + rows->rule_count > room->rules)
		return false;
	sizes->images++;
	sizes->pages += pages;
	sizes->rows += rows->count + 1; /* and a gap before the first one */
	sizes->rules += rows->rule_count;
	return true;
}

bool unwind_tables_want(struct unwind_sizes *need, struct unwind_sizes *users,
			const struct unwind_rows *rows, bool root_owned)
{
	static const struct unwind_sizes any = { UINT32_MAX / 2, UINT32_MAX / 2, UINT32_MAX / 2,
						 UINT32_MAX / 2, UINT32_MAX / 2 };

	return (root_owned || add_sizes(users, rows, &users_max)) && add_sizes(need, rows, &any);
}

static size_t chunk_count(size_t rows)
{
	return (rows + UNWIND_CHUNK_ROWS - 1) / UNWIND_CHUNK_ROWS;
}

int unwind_tables_size(struct unwind_tables *t, const struct unwind_sizes *need,
		       const struct unwind_sizes *users, unsigned int spare_mib,
		       struct sample_bpf *bpf)
{
	size_t mappings = 2 * need->mappings + SPARE_MAPPINGS;
	size_t rows = (size_t)spare_mib * MIB_ROWS, pages = (size_t)spare_mib * MIB_PAGES;
	size_t rules = (size_t)spare_mib * MIB_RULES, chunks;
	int err;

	t->room = (struct unwind_sizes){
		.images = need->images + SPARE_IMAGES,
		.pages = need->pages + pages,
		.rows = chunk_count(need->rows + rows) * UNWIND_CHUNK_ROWS,
		.rules = need->rules + rules,
		.mappings = mappings < MAPPINGS_MAX ? mappings : MAPPINGS_MAX,
	};
	t->users_room = (struct unwind_sizes){
		.images = users->images + SPARE_IMAGES / 2,
		.pages = users->pages + pages / 2,
		.rows = users->rows + rows / 2,
		.rules = users->rules + rules / 2,
	};
	t->used.images = 1; /* UNWIND_NO_IMAGE */
	err = bpf_map__set_max_entries(bpf->maps.unwind_images, t->room.images);
	err = err ?: bpf_map__set_max_entries(bpf->maps.unwind_languages, t->room.images);
	err = err ?: bpf_map__set_max_entries(bpf->maps.unwind_pages, t->room.pages);
	err = err ?: bpf_map__set_max_entries(bpf->maps.unwind_rules, t->room.rules);
	err = err ?: bpf_map__set_max_entries(bpf->maps.unwind_mappings, t->room.mappings);
	chunks = chunk_count(t->room.rows);
	return err ?: bpf_map__set_max_entries(bpf->maps.unwind_chunks, chunks);
}

size_t unwind_tables_bytes(const struct unwind_sizes *sizes)
{
	return sizes->images * sizeof(struct unwind_image) +
	       sizes->pages * sizeof(struct unwind_page) + sizes->rows * sizeof(struct unwind_row) +
	       sizes->rules * sizeof(struct unwind_rule);
}

static void *map_table(const struct bpf_map *map)
{
	size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int unwind_tables_map(struct unwind_tables *t, const struct sample_bpf *bpf)
{
	t->images = map_table(bpf->maps.unwind_images);
	t->languages = map_table(bpf->maps.unwind_languages);
	t->pages = map_table(bpf->maps.unwind_pages);
	t->chunks = map_table(bpf->maps.unwind_chunks);
	t->rules = map_table(bpf->maps.unwind_rules);
	t->mappings = map_table(bpf->maps.unwind_mappings);
	t->processes = bpf_map__fd(bpf->maps.unwind_processes);
	return t->images && t->languages && t->pages && t->chunks && t->rules && t->mappings
		       ? 0
		       : -errno;
}

/* The room of tables of our own: pages that stay unused take no memory. */
#define PRIVATE_IMAGES 16384
#define PRIVATE_PAGES  ((size_t)1 << 24)
#define PRIVATE_ROWS   ((size_t)1 << 28)
#define PRIVATE_RULES  ((size_t)1 << 24)

static void *private_table(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int unwind_tables_private(struct unwind_tables *t)
{
	const struct unwind_sizes room = {
		.images = PRIVATE_IMAGES,
		.pages = PRIVATE_PAGES,
		.rows = PRIVATE_ROWS,
		.rules = PRIVATE_RULES,
	};

	*t = (struct unwind_tables){ .room = room, .users_room = room, .used.images = 1 };
	t->images = private_table(room.images * sizeof(*t->images));
	t->languages = private_table(room.images * sizeof(*t->languages));
	t->pages = private_table(room.pages * sizeof(*t->pages));
	t->chunks = private_table(room.rows * sizeof(struct unwind_row));
	t->rules = private_table(room.rules * sizeof(*t->rules));
	return t->images && t->languages && t->pages && t->chunks && t->rules ? 0 : -ENOMEM;
}

static void unmap_table(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

void unwind_tables_free(struct unwind_tables *t)
{
	unmap_table(t->images, t->room.images * sizeof(*t->images));
	unmap_table(t->languages, t->room.images * sizeof(*t->languages));
	unmap_table(t->pages, t->room.pages * sizeof(*t->pages));
	unmap_table(t->chunks, t->room.rows * sizeof(struct unwind_row));
	unmap_table(t->rules, t->room.rules * sizeof(*t->rules));
	unmap_table(t->mappings, t->room.mappings * sizeof(*t->mappings));
	free(t->free_images.free);
	free(t->free_pages.free);
	free(t->free_rows.free);
	free(t->free_rules.free);
	free(t->free_mappings.free);
	free(t->extents);
	free(t->emptied);
	free(t->freed);
	*t = (struct unwind_tables){ 0 };
}

/* --- Blocks of a table --- */

/* Adds a block to the free ones, joined with adjacent ones. */
static int add_free(struct unwind_pool *pool, struct unwind_block block)
{
	size_t low = 0, high = pool->count;
	struct unwind_block *all;

	if (array_reserve(&pool->free, &pool->room, pool->count + 1, sizeof(*pool->free)))
		return -ENOMEM;
	all = pool->free;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle].first < block.first)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < pool->count && block.first + block.size == all[low].first) {
		all[low].first = block.first;
		all[low].size += block.size;
	} else {
		memmove(all + low + 1, all + low, (pool->count++ - low) * sizeof(*all));
		all[low] = block;
	}
	if (low > 0 && all[low - 1].first + all[low - 1].size == all[low].first) {
		all[low - 1].size += all[low].size;
		memmove(all + low, all + low + 1, (--pool->count - low) * sizeof(*all));
	}
	return 0;
}

/* Takes a free block, or else one behind the last that is in use; all have `room` elements. */
static int take_block(struct unwind_pool *pool, size_t *used, size_t room, size_t count,
		      struct unwind_block *block)
{
	const struct unwind_block *last;
	size_t begin;

	*block = (struct unwind_block){ .size = count };
	for (size_t i = 0; i < pool->count && count; i++) {
		struct unwind_block *free = &pool->free[i];

		if (free->size < count)
			continue;
		block->first = free->first;
		free->first += count;
		free->size -= count;
		if (!free->size)
			memmove(free, free + 1, (--pool->count - i) * sizeof(*free));
		return 0;
	}
	/* A free block at the end is continued there. */
	last = count && pool->count ? &pool->free[pool->count - 1] : NULL;
	begin = last && last->first + last->size == *used ? last->first : *used;
	if (begin + count > room) {
		block->size = 0;
		return -ENOSPC;
	}
	pool->count -= begin < *used;
	block->first = begin;
	*used = begin + count;
	return 0;
}

static int give_back(struct unwind_pool *pool, struct unwind_block *block)
{
	int err = block->size ? add_free(pool, *block) : 0;

	*block = (struct unwind_block){ 0 };
	return err;
}

/* --- Images --- */

static void write_row(struct unwind_tables *t, size_t number, uint64_t address, uint16_t rule)
{
	t->chunks[number / UNWIND_CHUNK_ROWS].rows[number % UNWIND_CHUNK_ROWS] =
		(struct unwind_row){ .address = address, .rule = rule };
}

/* Writes rows and pages. Every page has a first row, even if no row starts in it. */
static void write_rows(struct unwind_tables *t, const struct unwind_rows *rows,
		       const struct unwind_image *image, size_t page_count, size_t next)
{
	size_t row = 0;

	/* The gap before the first function. */
	write_row(t, next++, 0, rows->rows[rows->count - 1].rule);
	for (size_t i = 0; i < page_count; i++) {
		struct unwind_page *page = &t->pages[image->first_page + i];
		uint64_t start = image->begin + ((uint64_t)i << image->page_shift);

		page->first = next;
		for (; row < rows->count &&
		       rows->rows[row].address - start < 1ULL << image->page_shift;
		     row++)
			write_row(t, next++, rows->rows[row].address - start, rows->rows[row].rule);
		page->count = next - page->first;
	}
}

static int give_extent_back(struct unwind_tables *t, struct unwind_extent *extent)
{
	int err = give_back(&t->free_pages, &extent->pages);

	err = give_back(&t->free_rows, &extent->rows) ?: err;
	return give_back(&t->free_rules, &extent->rules) ?: err;
}

static int take_extent(struct unwind_tables *t, const struct unwind_rows *rows,
		       struct unwind_extent *extent)
{
	int err = take_block(&t->free_pages, &t->used.pages, t->room.pages,
			     page_count(rows, page_shift(rows)), &extent->pages);

	if (!err)
		err = take_block(&t->free_rows, &t->used.rows, t->room.rows, rows->count + 1,
				 &extent->rows);
	if (!err)
		err = take_block(&t->free_rules, &t->used.rules, t->room.rules, rows->rule_count,
				 &extent->rules);
	if (err && give_extent_back(t, extent))
		return -ENOMEM;
	return err;
}

int unwind_tables_reserve(struct unwind_tables *t, bool root_owned, uint32_t *image)
{
	struct unwind_block number;
	int err;

	if (!root_owned && t->users_used.images >= t->users_room.images)
		return -EDQUOT;
	err = take_block(&t->free_images, &t->used.images, t->room.images, 1, &number);
	if (err)
		return err;
	if (array_reserve(&t->extents, &t->extent_room, number.first + 1, sizeof(*t->extents)))
		return -ENOMEM;
	t->extents[number.first] = (struct unwind_extent){ .root_owned = root_owned };
	t->images[number.first] = (struct unwind_image){ 0 };
	t->users_used.images += !root_owned;
	*image = number.first;
	return 0;
}

/* Has the rows that were emptied, and that no tick reads any more, used again. */
static int end_grace_of_rows(struct unwind_tables *t)
{
	uint64_t now = now_ns();
	size_t count = 0;
	int err = 0;

	while (count < t->emptied_count && t->emptied[count].since_ns + UNWIND_GRACE_NS < now)
		err = give_extent_back(t, &t->emptied[count++].extent) ?: err;
	t->emptied_count -= count;
	if (count) /* else there may be no memory yet */
		memmove(t->emptied, t->emptied + count, t->emptied_count * sizeof(*t->emptied));
	return err;
}

int unwind_tables_fill(struct unwind_tables *t, const struct unwind_rows *rows, bool root_owned,
		       uint32_t image)
{
	struct unwind_sizes alone = { .images = 1 }; /* UNWIND_NO_IMAGE */
	struct unwind_sizes users = t->users_used;
	struct unwind_extent *extent = &t->extents[image];
	struct unwind_image *entry = &t->images[image];
	int err;

	if (!add_sizes(&alone, rows, root_owned ? &t->room : &t->users_room))
		return -EFBIG;
	users.images -= !extent->root_owned; /* by unwind_tables_reserve() */
	if (!root_owned && !add_sizes(&users, rows, &t->users_room))
		return -EDQUOT;
	err = end_grace_of_rows(t) ?: take_extent(t, rows, extent);
	if (err)
		return err;
	t->users_used = users;
	extent->root_owned = root_owned;
	entry->begin = rows->rows[0].address;
	entry->first_page = extent->pages.first;
	entry->first_rule = extent->rules.first;
	entry->page_shift = page_shift(rows);
	t->languages[image] = rows->language;
	if (rows->rule_count)
		memcpy(&t->rules[extent->rules.first], rows->rules,
		       rows->rule_count * sizeof(*rows->rules));
	write_rows(t, rows, entry, extent->pages.size, extent->rows.first);
	/* Last: ticks may come to the image meanwhile, and find it without rows until then. */
	__atomic_store_n(&entry->page_count, extent->pages.size, __ATOMIC_RELEASE);
	return 0;
}

int unwind_tables_add(struct unwind_tables *t, const struct unwind_rows *rows, bool root_owned,
		      uint32_t *image)
{
	int err = unwind_tables_reserve(t, root_owned, image);

	if (err)
		return err;
	err = unwind_tables_fill(t, rows, root_owned, *image);
	if (err && unwind_tables_remove(t, *image))
		return -ENOMEM;
	return err;
}

static void uncharge_rows(struct unwind_tables *t, const struct unwind_extent *extent)
{
	if (extent->root_owned)
		return;
	t->users_used.pages -= extent->pages.size;
	t->users_used.rows -= extent->rows.size;
	t->users_used.rules -= extent->rules.size;
}

int unwind_tables_empty(struct unwind_tables *t, uint32_t image)
{
	struct unwind_extent *extent = &t->extents[image];

	if (array_reserve(&t->emptied, &t->emptied_room, t->emptied_count + 1, sizeof(*t->emptied)))
		return -ENOMEM;
	__atomic_store_n(&t->images[image].page_count, 0, __ATOMIC_RELEASE);
	uncharge_rows(t, extent);
	t->emptied[t->emptied_count++] = (struct unwind_emptied){ *extent, now_ns() };
	*extent = (struct unwind_extent){ .root_owned = extent->root_owned };
	return 0;
}

bool unwind_tables_has_rows(const struct unwind_tables *t, uint32_t image)
{
	return image != UNWIND_NO_IMAGE && t->extents[image].rows.size;
}

void unwind_tables_image_sizes(const struct unwind_rows *rows, struct unwind_sizes *sizes)
{
	*sizes = (struct unwind_sizes){
		.images = 1,
		.pages = page_count(rows, page_shift(rows)),
		.rows = rows->count + 1,
		.rules = rows->rule_count,
	};
}

static bool has_block(const struct unwind_pool *pool, size_t used, size_t room, size_t count)
{
	const struct unwind_block *last = pool->count ? &pool->free[pool->count - 1] : NULL;

	for (size_t i = 0; i < pool->count; i++)
		if (pool->free[i].size >= count)
			return true;
	return (last && last->first + last->size == used ? last->size : 0) + room - used >= count;
}

bool unwind_tables_fit(struct unwind_tables *t, const struct unwind_sizes *sizes, bool root_owned)
{
	const struct unwind_sizes *users = &t->users_used, *most = &t->users_room;

	if (end_grace_of_rows(t))
		return false;
	if (!root_owned &&
	    (users->pages + sizes->pages > most->pages || users->rows + sizes->rows > most->rows ||
	     users->rules + sizes->rules > most->rules))
		return false;
	return has_block(&t->free_pages, t->used.pages, t->room.pages, sizes->pages) &&
	       has_block(&t->free_rows, t->used.rows, t->room.rows, sizes->rows) &&
	       has_block(&t->free_rules, t->used.rules, t->room.rules, sizes->rules);
}

static size_t free_size(const struct unwind_pool *pool, size_t used, size_t room)
{
	size_t size = room - used;

	for (size_t i = 0; i < pool->count; i++)
		size += pool->free[i].size;
	return size;
}

void unwind_tables_free_sizes(const struct unwind_tables *t, struct unwind_sizes *sizes)
{
	sizes->pages = free_size(&t->free_pages, t->used.pages, t->room.pages);
	sizes->rows = free_size(&t->free_rows, t->used.rows, t->room.rows);
	sizes->rules = free_size(&t->free_rules, t->used.rules, t->room.rules);
	for (size_t i = 0; i < t->emptied_count; i++) {
		sizes->pages += t->emptied[i].extent.pages.size;
		sizes->rows += t->emptied[i].extent.rows.size;
		sizes->rules += t->emptied[i].extent.rules.size;
	}
}

int unwind_tables_remove(struct unwind_tables *t, uint32_t image)
{
	struct unwind_extent *extent = &t->extents[image];
	struct unwind_block number = { image, 1 };

	uncharge_rows(t, extent);
	t->users_used.images -= !extent->root_owned;
	t->images[image] = (struct unwind_image){ 0 };
	return give_extent_back(t, extent) ?: give_back(&t->free_images, &number);
}

/* --- Processes --- */

/* Moves the blocks that no tick reads any more to the free ones. */
static int end_grace(struct unwind_tables *t)
{
	uint64_t now = now_ns();
	int err = 0;

	while (!err && t->freed_begin < t->freed_end &&
	       t->freed[t->freed_begin].freed_ns + UNWIND_GRACE_NS < now) {
		struct unwind_block block = t->freed[t->freed_begin++].block;

		t->freed_mappings -= block.size;
		err = add_free(&t->free_mappings, block);
	}
	return err;
}

static int free_block(struct unwind_tables *t, struct unwind_block *block)
{
	if (!block->size)
		return 0;
	if (t->freed_begin > t->freed_room / 2) { /* reuse the front */
		t->freed_end -= t->freed_begin;
		memmove(t->freed, t->freed + t->freed_begin, t->freed_end * sizeof(*t->freed));
		t->freed_begin = 0;
	}
	if (array_reserve(&t->freed, &t->freed_room, t->freed_end + 1, sizeof(*t->freed)))
		return -ENOMEM;
	t->freed[t->freed_end++] = (struct unwind_freed_block){ *block, now_ns() };
	t->freed_mappings += block->size;
	*block = (struct unwind_block){ 0 };
	return 0;
}

int unwind_tables_publish(struct unwind_tables *t, uint64_t process,
			  const struct unwind_mapping *mappings, size_t count,
			  struct unwind_block *block)
{
	struct unwind_block fresh;
	struct unwind_process entry = { .count = count };
	int err = end_grace(t);

	/* A process with few mappings may use what those with many may not. */
	if (!err && block->size &&
	    t->freed_mappings + count > t->room.mappings / (count > MANY_MAPPINGS ? 4 : 2))
		err = -EAGAIN;
	if (!err)
		err = take_block(&t->free_mappings, &t->used.mappings, t->room.mappings, count ?: 1,
				 &fresh);
	if (err)
		return err;
	entry.first = fresh.first;
	if (count)
		memcpy(&t->mappings[fresh.first], mappings, count * sizeof(*mappings));
	for (size_t i = 0; i < count; i++) {
		const struct language_image *image = &t->languages[mappings[i].image];

		entry.thread_specific = entry.thread_specific ?: image->thread_specific;
		if (image->language && !entry.interpreter)
			entry.interpreter = i + 1;
	}
	/* The system call is a barrier: the program sees the mappings before the entry. */
	err = bpf_map_update_elem(t->processes, &process, &entry, BPF_ANY);
	if (err) {
		free_block(t, &fresh);
		return err == -E2BIG ? -ENOSPC : err;
	}
	err = free_block(t, block);
	*block = fresh;
	return err;
}

int unwind_tables_withdraw(struct unwind_tables *t, uint64_t process, struct unwind_block *block)
{
	if (block->size && process)
		bpf_map_delete_elem(t->processes, &process);
	return free_block(t, block);
}
