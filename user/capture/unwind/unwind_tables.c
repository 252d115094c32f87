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

/* More code than a linker puts into one image. */
#define IMAGE_BYTES_MAX (1ULL << 32)

/* Room for programs and libraries that are mapped later: 16 MiB of rows, some ten large ones. */
#define SPARE_ROWS     (256 * UNWIND_CHUNK_ROWS)
#define SPARE_RULES    (1U << 17)
#define SPARE_PAGES    (SPARE_ROWS / UNWIND_PAGE_ROWS)
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

/* 32 MiB: enough for ten thousand processes. Stacks of others are walked in user space. */
#define MAPPINGS_MAX (1U << 20)

/* For how long a walk may read a replaced block: it takes microseconds, but a host may pause it. */
#define GRACE_NS (200 * NS_PER_MS)

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
		       const struct unwind_sizes *users, struct sample_bpf *bpf)
{
	size_t mappings = 2 * need->mappings + SPARE_MAPPINGS;

	t->room = (struct unwind_sizes){
		.images = need->images + SPARE_IMAGES,
		.pages = need->pages + SPARE_PAGES,
		.rows = chunk_count(need->rows + SPARE_ROWS) * UNWIND_CHUNK_ROWS,
		.rules = need->rules + SPARE_RULES,
		.mappings = mappings < MAPPINGS_MAX ? mappings : MAPPINGS_MAX,
	};
	t->users_room = (struct unwind_sizes){
		.images = users->images + SPARE_IMAGES / 2,
		.pages = users->pages + SPARE_PAGES / 2,
		.rows = users->rows + SPARE_ROWS / 2,
		.rules = users->rules + SPARE_RULES / 2,
	};
	t->used.images = 1; /* UNWIND_NO_IMAGE */
	return bpf_map__set_max_entries(bpf->maps.unwind_images, t->room.images)
		       ?: bpf_map__set_max_entries(bpf->maps.unwind_pages, t->room.pages)
		       ?: bpf_map__set_max_entries(bpf->maps.unwind_rules, t->room.rules)
		       ?: bpf_map__set_max_entries(bpf->maps.unwind_mappings, t->room.mappings)
		       ?: bpf_map__set_max_entries(bpf->maps.unwind_chunks,
						   chunk_count(t->room.rows));
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
	t->pages = map_table(bpf->maps.unwind_pages);
	t->chunks = map_table(bpf->maps.unwind_chunks);
	t->rules = map_table(bpf->maps.unwind_rules);
	t->mappings = map_table(bpf->maps.unwind_mappings);
	t->processes = bpf_map__fd(bpf->maps.unwind_processes);
	return t->images && t->pages && t->chunks && t->rules && t->mappings ? 0 : -errno;
}

static void unmap_table(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

void unwind_tables_free(struct unwind_tables *t)
{
	unmap_table(t->images, t->room.images * sizeof(*t->images));
	unmap_table(t->pages, t->room.pages * sizeof(*t->pages));
	unmap_table(t->chunks, t->room.rows * sizeof(struct unwind_row));
	unmap_table(t->rules, t->room.rules * sizeof(*t->rules));
	unmap_table(t->mappings, t->room.mappings * sizeof(*t->mappings));
	free(t->free);
	free(t->freed);
	*t = (struct unwind_tables){ 0 };
}

/* --- Images --- */

static void write_row(struct unwind_tables *t, uint64_t address, uint16_t rule)
{
	size_t number = t->used.rows++;

	t->chunks[number / UNWIND_CHUNK_ROWS].rows[number % UNWIND_CHUNK_ROWS] =
		(struct unwind_row){ .address = address, .rule = rule };
}

/* Writes rows and pages. Every page has a first row, even if no row starts in it. */
static void write_rows(struct unwind_tables *t, const struct unwind_rows *rows,
		       const struct unwind_image *image)
{
	size_t row = 0;

	write_row(t, 0, rows->rows[rows->count - 1].rule); /* the gap before the first function */
	for (size_t i = 0; i < image->page_count; i++) {
		struct unwind_page *page = &t->pages[t->used.pages++];
		uint64_t start = image->begin + ((uint64_t)i << image->page_shift);

		page->first = t->used.rows;
		for (; row < rows->count &&
		       rows->rows[row].address - start < 1ULL << image->page_shift;
		     row++)
			write_row(t, rows->rows[row].address - start, rows->rows[row].rule);
		page->count = t->used.rows - page->first;
	}
}

int unwind_tables_add(struct unwind_tables *t, const struct unwind_rows *rows, bool root_owned,
		      uint32_t *image)
{
	struct unwind_sizes after = t->used, users = t->users_used;
	unsigned int shift = page_shift(rows);

	if (!add_sizes(&after, rows, &t->room) ||
	    (!root_owned && !add_sizes(&users, rows, &t->users_room)))
		return -ENOSPC;
	t->users_used = users;
	*image = t->used.images++;
	t->images[*image] = (struct unwind_image){
		.begin = rows->rows[0].address,
		.first_page = t->used.pages,
		.page_count = page_count(rows, shift),
		.first_rule = t->used.rules,
		.page_shift = shift,
	};
	memcpy(&t->rules[t->used.rules], rows->rules, rows->rule_count * sizeof(*rows->rules));
	t->used.rules += rows->rule_count;
	write_rows(t, rows, &t->images[*image]);
	return 0;
}

/* --- Processes --- */

/* Adds a block to the free ones, joined with adjacent ones. */
static int add_free(struct unwind_tables *t, struct unwind_block block)
{
	size_t low = 0, high = t->free_count;
	struct unwind_block *all;

	if (array_reserve(&t->free, &t->free_room, t->free_count + 1, sizeof(*t->free)))
		return -ENOMEM;
	all = t->free;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle].first < block.first)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < t->free_count && block.first + block.size == all[low].first) {
		all[low].first = block.first;
		all[low].size += block.size;
	} else {
		memmove(all + low + 1, all + low, (t->free_count++ - low) * sizeof(*all));
		all[low] = block;
	}
	if (low > 0 && all[low - 1].first + all[low - 1].size == all[low].first) {
		all[low - 1].size += all[low].size;
		memmove(all + low, all + low + 1, (--t->free_count - low) * sizeof(*all));
	}
	return 0;
}

/* Moves the blocks that no tick reads any more to the free ones. */
static int end_grace(struct unwind_tables *t)
{
	uint64_t now = now_ns();
	int err = 0;

	while (!err && t->freed_begin < t->freed_end &&
	       t->freed[t->freed_begin].freed_ns + GRACE_NS < now) {
		struct unwind_block block = t->freed[t->freed_begin++].block;

		t->freed_mappings -= block.size;
		err = add_free(t, block);
	}
	return err;
}

static int take_block(struct unwind_tables *t, size_t count, struct unwind_block *block)
{
	block->size = count;
	for (size_t i = 0; i < t->free_count; i++) {
		struct unwind_block *free = &t->free[i];

		if (free->size < count)
			continue;
		block->first = free->first;
		free->first += count;
		free->size -= count;
		if (!free->size)
			memmove(free, free + 1, (--t->free_count - i) * sizeof(*free));
		return 0;
	}
	if (t->used.mappings + count > t->room.mappings)
		return -ENOSPC;
	block->first = t->used.mappings;
	t->used.mappings += count;
	return 0;
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
	err = err ?: take_block(t, count ?: 1, &fresh);
	if (err)
		return err;
	entry.first = fresh.first;
	memcpy(&t->mappings[fresh.first], mappings, count * sizeof(*mappings));
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
