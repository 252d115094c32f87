// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/member.h" /* of the skeleton, as is the next */
#include "bpf/sample.h"
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
 * Bound: users: images that are mapped after the start, with rows or not; then: stacks end in their
 * code; again: when others are unmapped; share: half to all users' files, a quarter to those of one
 * user; seen: unwind_no_room_images.
 */
#define LATER_IMAGES (1U << 16)

/*
 * Any user can create files that would use up the tables. So all users' files together are limited:
 * to this when recording starts (ten of the largest browsers), and later to 1 / ROOM_OF_USERS of
 * the room above; those of one user to 1 / ROOM_OF_USER of it.
 * Bound: as UNWIND_SPARE_MIB.
 */
#define ROOM_OF_USERS 2
#define ROOM_OF_USER  4

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
 * processes send copies, which user space walks; again: at the next tick: processes of the user who
 * has most make room; share: by users' processes; seen: refusals.
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

void unwind_tables_image_sizes(const struct unwind_rows *rows, struct unwind_sizes *sizes)
{
	*sizes = (struct unwind_sizes){
		.images = 1,
		.pages = page_count(rows, page_shift(rows)),
		.rows = rows->count + 1, /* and a gap before the first one */
		.rules = rows->rule_count,
	};
}

/* Adds the size of an image's rows. Returns false, and adds nothing, if that exceeds `room`. */
static bool add_sizes(struct unwind_sizes *sizes, const struct unwind_rows *rows,
		      const struct unwind_sizes *room)
{
	struct unwind_sizes sum;

	unwind_tables_image_sizes(rows, &sum);
	for (int kind = 0; kind < UNWIND_KINDS; kind++) {
		sum.of[kind] += sizes->of[kind];
		if (sum.of[kind] > room->of[kind])
			return false;
	}
	if (byte_count(rows) >= IMAGE_BYTES_MAX)
		return false;
	*sizes = sum;
	return true;
}

bool unwind_tables_want(struct unwind_sizes *need, struct unwind_sizes *users,
			const struct unwind_rows *rows, bool root_owned)
{
	static const struct unwind_sizes any = { .of = { [0 ... UNWIND_KINDS - 1] =
								 UINT32_MAX / 2 } };

	return (root_owned || add_sizes(users, rows, &users_max)) && add_sizes(need, rows, &any);
}

static size_t chunk_count(size_t rows)
{
	return (rows + UNWIND_CHUNK_ROWS - 1) / UNWIND_CHUNK_ROWS;
}

/* A table in memory, and its parts: see bpf/unwind_maps.h. */
static const struct table {
	enum unwind_kind kind; /* what it has, chunks of them */
	size_t bytes;	       /* of an element */
	size_t part;	       /* elements of a part */
	size_t at;	       /* the pointer's offset in struct unwind_tables */
} kinds[UNWIND_TABLES] = {
#define TABLE(name, type, kind, part)                                        \
	{                                                                    \
		UNWIND_KIND_##kind, sizeof(struct type), UNWIND_PART_##part, \
			offsetof(struct unwind_tables, name)                 \
	}
	[UNWIND_IMAGES] = TABLE(images, unwind_image, IMAGES, IMAGES),
	[UNWIND_LANGUAGES] = TABLE(languages, language_image, IMAGES, IMAGES),
	[UNWIND_PAGES] = TABLE(pages, unwind_page, PAGES, PAGES),
	[UNWIND_CHUNKS] = TABLE(chunks, unwind_chunk, ROWS, CHUNKS),
	[UNWIND_RULES] = TABLE(rules, unwind_rule, RULES, RULES),
	[UNWIND_MAPPINGS] = TABLE(mappings, unwind_mapping, MAPPINGS, MAPPINGS),
#undef TABLE
};

struct table_maps {
	struct bpf_map *first, *more;
};

static void list_maps(const struct sample_bpf *bpf, struct table_maps maps[UNWIND_TABLES])
{
#define MAPS(name) (struct table_maps){ bpf->maps.name, bpf->maps.name##_more }
	maps[UNWIND_IMAGES] = MAPS(unwind_images);
	maps[UNWIND_LANGUAGES] = MAPS(unwind_languages);
	maps[UNWIND_PAGES] = MAPS(unwind_pages);
	maps[UNWIND_CHUNKS] = MAPS(unwind_chunks);
	maps[UNWIND_RULES] = MAPS(unwind_rules);
	maps[UNWIND_MAPPINGS] = MAPS(unwind_mappings);
#undef MAPS
}

static void **memory_of(struct unwind_tables *t, enum unwind_table which)
{
	return (void **)((char *)t + kinds[which].at);
}

static size_t elements_of(const struct unwind_sizes *sizes, enum unwind_table which)
{
	size_t count = sizes->of[kinds[which].kind];

	return which == UNWIND_CHUNKS ? chunk_count(count) : count;
}

static size_t whole_parts(size_t count, enum unwind_table which)
{
	size_t part = kinds[which].part;

	return (count + part - 1) / part * part;
}

/*
 * Adds parts to a table until it has `count` elements. Returns 0, or -ENOSPC: the kernel has no
 * memory for them, or does not let us.
 */
static int extend(struct unwind_tables *t, enum unwind_table which, size_t count)
{
	const struct table *table = &kinds[which];
	size_t bytes = table->part * table->bytes;
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);

	while (t->more[which] && t->have[which] < count) {
		uint32_t number = t->have[which] / table->part;
		char *at = (char *)*memory_of(t, which) + number * bytes;
		int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_part", sizeof(number),
					table->bytes, table->part, &options);
		bool failed = fd < 0 ||
			      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
				   0) == MAP_FAILED ||
			      bpf_map_update_elem(t->more[which], &number, &fd, BPF_ANY);

		if (fd >= 0)
			close(fd); /* the map of parts keeps it */
		if (failed)
			return -ENOSPC;
		t->have[which] += table->part;
	}
	return 0;
}

int unwind_tables_size(struct unwind_tables *t, const struct unwind_sizes *need,
		       const struct unwind_sizes *users, unsigned int spare_mib,
		       struct sample_bpf *bpf)
{
	const struct unwind_sizes later = {
		.images = LATER_IMAGES,
		.pages = (size_t)spare_mib * MIB_PAGES,
		.rows = (size_t)spare_mib * MIB_ROWS,
		.rules = (size_t)spare_mib * MIB_RULES,
	};
	struct table_maps maps[UNWIND_TABLES];
	int err = 0;

	for (int kind = 0; kind < UNWIND_KINDS; kind++) {
		t->room.of[kind] = need->of[kind] + later.of[kind];
		t->users_room.of[kind] = users->of[kind] + later.of[kind] / ROOM_OF_USERS;
		t->user_room.of[kind] = users->of[kind] + later.of[kind] / ROOM_OF_USER;
	}
	t->room.rows = chunk_count(t->room.rows) * UNWIND_CHUNK_ROWS;
	t->room.mappings = MAPPINGS_MAX;
	t->used.images = 1; /* UNWIND_NO_IMAGE */
	list_maps(bpf, maps);
	for (int i = 0; i < UNWIND_TABLES && !err; i++) {
		size_t most = whole_parts(elements_of(&t->room, i), i);

		/* What lies over the first map is in parts. */
		t->have[i] = t->first[i] = whole_parts(elements_of(need, i) + 1, i);
		err = bpf_map__set_max_entries(maps[i].first, t->have[i]);
		err = err ?: bpf_map__set_max_entries(maps[i].more, most / kinds[i].part);
	}
	return err;
}

size_t unwind_tables_bytes(const struct unwind_sizes *sizes)
{
	return sizes->images * (sizeof(struct unwind_image) + sizeof(struct language_image)) +
	       sizes->mappings * sizeof(struct unwind_mapping) +
	       sizes->pages * sizeof(struct unwind_page) + sizes->rows * sizeof(struct unwind_row) +
	       sizes->rules * sizeof(struct unwind_rule);
}

size_t unwind_tables_size_now(const struct unwind_tables *t)
{
	size_t bytes = 0;

	for (int i = 0; i < UNWIND_TABLES; i++)
		bytes += t->have[i] * kinds[i].bytes;
	return bytes;
}

/* The bytes of memory that all of a table may take. */
static size_t most_bytes(const struct unwind_tables *t, enum unwind_table which)
{
	return whole_parts(elements_of(&t->room, which), which) * kinds[which].bytes;
}

static void *reserve_memory(size_t bytes, int protection)
{
	void *memory =
		mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void *map_elements(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int unwind_tables_map(struct unwind_tables *t, const struct sample_bpf *bpf)
{
	struct table_maps maps[UNWIND_TABLES];

	list_maps(bpf, maps);
	for (int i = 0; i < UNWIND_TABLES; i++) {
		void **memory = memory_of(t, i);

		*memory = reserve_memory(most_bytes(t, i), PROT_NONE);
		if (!*memory ||
		    mmap(*memory, t->have[i] * kinds[i].bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, bpf_map__fd(maps[i].first), 0) == MAP_FAILED)
			return -errno;
		t->more[i] = bpf_map__fd(maps[i].more);
	}
	t->processes = bpf_map__fd(bpf->maps.unwind_processes);
	if (bpf_map__max_entries(bpf->maps.contexts) < CONTEXT_IMAGES)
		return 0;
	t->context_values_in_use = bpf_map__fd(bpf->maps.context_values_in_use);
	t->contexts = map_elements(bpf_map__fd(bpf->maps.contexts),
				   CONTEXT_IMAGES * sizeof(*t->contexts));
	if (!t->contexts)
		return -errno;
	if (bpf_map__max_entries(bpf->maps.context_values) < CONTEXT_VALUES)
		return 0;
	t->context_values = map_elements(bpf_map__fd(bpf->maps.context_values),
					 CONTEXT_VALUES * sizeof(*t->context_values));
	return t->context_values ? 0 : -errno;
}

/* The room of tables of our own: pages that stay unused take no memory. */
#define PRIVATE_IMAGES 16384
#define PRIVATE_PAGES  ((size_t)1 << 24)
#define PRIVATE_ROWS   ((size_t)1 << 28)
#define PRIVATE_RULES  ((size_t)1 << 24)

int unwind_tables_private(struct unwind_tables *t)
{
	const struct unwind_sizes room = {
		.images = PRIVATE_IMAGES,
		.pages = PRIVATE_PAGES,
		.rows = PRIVATE_ROWS,
		.rules = PRIVATE_RULES,
	};

	*t = (struct unwind_tables){ .room = room, .used.images = 1 };
	for (int i = 0; i < UNWIND_TABLES; i++) {
		void **memory = memory_of(t, i);

		*memory = i == UNWIND_MAPPINGS
				  ? NULL
				  : reserve_memory(most_bytes(t, i), PROT_READ | PROT_WRITE);
		if (!*memory && i != UNWIND_MAPPINGS)
			return -ENOMEM;
	}
	return 0;
}

void unwind_tables_free(struct unwind_tables *t)
{
	for (int i = 0; i < UNWIND_TABLES; i++)
		if (*memory_of(t, i))
			munmap(*memory_of(t, i), most_bytes(t, i));
	if (t->contexts)
		munmap(t->contexts, CONTEXT_IMAGES * sizeof(*t->contexts));
	if (t->context_values)
		munmap(t->context_values, CONTEXT_VALUES * sizeof(*t->context_values));
	for (int kind = 0; kind < UNWIND_KINDS; kind++)
		free(t->free[kind].free);
	free(t->extents);
	free(t->emptied);
	free(t->freed);
	*t = (struct unwind_tables){ 0 };
}

/* --- Blocks of a table --- */

/* Adds a block to the free ones, joined with adjacent ones. */
static int add_free(struct unwind_pool *pool, struct unwind_block block)
{
	struct unwind_block *all;
	size_t low;

	if (array_reserve(&pool->free, &pool->room, pool->count + 1, sizeof(*pool->free)))
		return -ENOMEM;
	all = pool->free;
	FIND_FIRST(low, 0, pool->count, all[low].first < block.first);
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

/* The free elements behind those in use; *begin: the first of them. */
static size_t free_at_end(const struct unwind_tables *t, enum unwind_kind kind, size_t *begin)
{
	const struct unwind_pool *pool = &t->free[kind];
	const struct unwind_block *last = pool->count ? &pool->free[pool->count - 1] : NULL;

	*begin = t->used.of[kind];
	if (last && last->first + last->size == *begin)
		*begin = last->first;
	return t->room.of[kind] - *begin;
}

/* Takes a free block, or else one behind the last that is in use. */
static int take_block(struct unwind_tables *t, enum unwind_kind kind, size_t count,
		      struct unwind_block *block)
{
	struct unwind_pool *pool = &t->free[kind];
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
	if (count > free_at_end(t, kind, &begin)) {
		block->size = 0;
		return -ENOSPC;
	}
	if (!count)
		return 0;
	pool->count -= begin < t->used.of[kind];
	block->first = begin;
	t->used.of[kind] = begin + count;
	return 0;
}

static int give_back(struct unwind_pool *pool, struct unwind_block *block)
{
	int err = block->size ? add_free(pool, *block) : 0;

	*block = (struct unwind_block){ 0 };
	return err;
}

/* Takes a block of a table, which grows for it. Returns 0, -ENOSPC or -ENOMEM. */
static int take_of_table(struct unwind_tables *t, enum unwind_table which, size_t count,
			 struct unwind_block *block)
{
	enum unwind_kind kind = kinds[which].kind;
	int err = take_block(t, kind, count, block);
	size_t end = block->first + block->size;

	if (err)
		return err;
	err = extend(t, which, which == UNWIND_CHUNKS ? chunk_count(end) : end);
	return err && give_back(&t->free[kind], block) ? -ENOMEM : err;
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
	int err = 0;

	for (int kind = 0; kind < UNWIND_IMAGE_KINDS; kind++)
		err = give_back(&t->free[kind], &extent->of[kind]) ?: err;
	return err;
}

static int take_extent(struct unwind_tables *t, const struct unwind_sizes *need,
		       struct unwind_extent *extent)
{
	static const enum unwind_table tables[] = { UNWIND_PAGES, UNWIND_CHUNKS, UNWIND_RULES };
	int err = 0;

	for (int kind = 0; kind < UNWIND_IMAGE_KINDS && !err; kind++)
		err = take_of_table(t, tables[kind], need->of[kind], &extent->of[kind]);
	if (err && give_extent_back(t, extent))
		return -ENOMEM;
	return err;
}

static size_t left_of(const struct unwind_sizes *room, const struct unwind_sizes *used, int kind)
{
	return room->of[kind] > used->of[kind] ? room->of[kind] - used->of[kind] : 0;
}

void unwind_tables_share(const struct unwind_tables *t, uid_t owner, struct unwind_sizes *left,
			 bool *own)
{
	struct unwind_sizes its = { 0 };

	*own = owner != 0;
	*left = t->room;
	if (!owner)
		return;
	for (uint32_t i = 1; i < t->used.images && i < t->extent_room; i++) {
		const struct unwind_extent *extent = &t->extents[i];

		if (extent->owner != owner)
			continue;
		its.images++;
		unwind_add_extent(&its, extent, 1);
	}
	for (int kind = 0; kind <= UNWIND_KIND_IMAGES; kind++) {
		size_t of_users = left_of(&t->users_room, &t->users_used, kind);

		left->of[kind] = left_of(&t->user_room, &its, kind);
		if (of_users < left->of[kind]) {
			left->of[kind] = of_users;
			*own = false;
		}
	}
}

int unwind_tables_reserve(struct unwind_tables *t, uid_t owner, uint32_t *image)
{
	struct unwind_block number;
	struct unwind_sizes left;
	bool own;
	int err;

	unwind_tables_share(t, owner, &left, &own);
	if (!left.images)
		return -EDQUOT;
	err = take_of_table(t, UNWIND_IMAGES, 1, &number);
	if (err)
		return err;
	if (extend(t, UNWIND_LANGUAGES, number.first + 1))
		return give_back(&t->free[UNWIND_KIND_IMAGES], &number) ?: -ENOSPC;
	if (array_reserve(&t->extents, &t->extent_room, number.first + 1, sizeof(*t->extents)))
		return -ENOMEM;
	*image = number.first;
	t->extents[*image] = (struct unwind_extent){ .owner = owner };
	t->images[*image] = (struct unwind_image){ 0 };
	t->users_used.images += owner != 0;
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

/* Charges users for what an image takes, or gives it back. */
static void charge(struct unwind_tables *t, const struct unwind_extent *extent, int sign)
{
	if (extent->owner)
		unwind_add_extent(&t->users_used, extent, sign);
}

/* Makes the table of values, unless it is there. Returns whether it is. */
static bool has_context_values(struct unwind_tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	struct context_value *values = NULL;
	uint32_t key = 0;
	int fd;

	if (t->context_values)
		return true;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "context_values", sizeof(key), sizeof(*values),
			    CONTEXT_VALUES, &options);
	if (fd < 0)
		return false;
	values = map_elements(fd, CONTEXT_VALUES * sizeof(*values));
	if (values && bpf_map_update_elem(t->context_values_in_use, &key, &fd, BPF_ANY) == 0)
		t->context_values = values;
	else if (values)
		munmap(values, CONTEXT_VALUES * sizeof(*values));
	close(fd); /* the other map keeps it */
	return t->context_values;
}

/*
 * The number of an image's variables, which others may have, too; 0: none, or no room. Numbers that
 * no image has any more are free.
 */
static uint32_t find_context(struct unwind_tables *t, const struct context_image *context,
			     uid_t owner)
{
	bool used[CONTEXT_IMAGES] = { true }, owners[CONTEXT_IMAGES] = { false };
	uint32_t number = 1, count = 0;

	if (!context->count)
		return 0;
	while (number <= t->context_count &&
	       memcmp(&t->contexts[number], context, sizeof(*context)) != 0)
		number++;
	if (number <= t->context_count)
		return number;
	for (size_t i = 0; i < t->used.images; i++) {
		used[t->images[i].context] = true;
		owners[t->images[i].context] |= t->extents[i].owner == owner;
	}
	for (number = 1; number < CONTEXT_IMAGES; number++)
		count += owners[number];
	for (number = 1; number < CONTEXT_IMAGES && used[number]; number++)
		;
	if (number == CONTEXT_IMAGES || (owner && count >= CONTEXT_USER_IMAGES) ||
	    !has_context_values(t))
		return 0;
	t->contexts[number] = *context;
	t->context_count = MAX(t->context_count, number);
	return number;
}

int unwind_tables_fill(struct unwind_tables *t, const struct unwind_rows *rows, uid_t owner,
		       uint32_t image)
{
	struct unwind_sizes alone = { .images = 1 }; /* UNWIND_NO_IMAGE */
	struct unwind_sizes need, left;
	struct unwind_extent *extent = &t->extents[image];
	struct unwind_image *entry = &t->images[image];
	bool own;
	int err;

	if (!add_sizes(&alone, rows, owner ? &t->user_room : &t->room))
		return -EFBIG;
	unwind_tables_share(t, owner, &left, &own);
	unwind_tables_image_sizes(rows, &need);
	if (!unwind_is_enough(&left, &need))
		return -EDQUOT;
	err = end_grace_of_rows(t) ?: take_extent(t, &need, extent);
	if (err)
		return err;
	t->users_used.images += (owner != 0) - (extent->owner != 0);
	extent->owner = owner;
	charge(t, extent, 1);
	entry->begin = rows->rows[0].address;
	entry->first_page = extent->of[UNWIND_KIND_PAGES].first;
	entry->first_rule = extent->of[UNWIND_KIND_RULES].first;
	entry->page_shift = page_shift(rows);
	t->languages[image] = rows->language;
	entry->context = t->contexts ? find_context(t, &rows->context, owner) : 0;
	entry->vector = rows->context.vector;
	if (rows->rule_count)
		memcpy(&t->rules[entry->first_rule], rows->rules,
		       rows->rule_count * sizeof(*rows->rules));
	write_rows(t, rows, entry, need.pages, extent->of[UNWIND_KIND_ROWS].first);
	/* Last: ticks may come to the image meanwhile, and find it without rows until then. */
	__atomic_store_n(&entry->page_count, need.pages, __ATOMIC_RELEASE);
	return 0;
}

int unwind_tables_add(struct unwind_tables *t, const struct unwind_rows *rows, uid_t owner,
		      uint32_t *image)
{
	int err = unwind_tables_reserve(t, owner, image);

	if (err)
		return err;
	err = unwind_tables_fill(t, rows, owner, *image);
	if (err && unwind_tables_remove(t, *image))
		return -ENOMEM;
	return err;
}

int unwind_tables_empty(struct unwind_tables *t, uint32_t image)
{
	struct unwind_extent *extent = &t->extents[image];

	if (array_add(t->emptied, t->emptied_count, t->emptied_room,
		      (struct unwind_emptied){ *extent, now_ns() }))
		return -ENOMEM;
	__atomic_store_n(&t->images[image].page_count, 0, __ATOMIC_RELEASE);
	charge(t, extent, -1);
	*extent = (struct unwind_extent){ .owner = extent->owner };
	return 0;
}

bool unwind_tables_has_rows(const struct unwind_tables *t, uint32_t image)
{
	return image != UNWIND_NO_IMAGE && t->extents[image].of[UNWIND_KIND_ROWS].size;
}

static bool has_block(const struct unwind_tables *t, enum unwind_kind kind, size_t count)
{
	const struct unwind_pool *pool = &t->free[kind];
	size_t begin;

	for (size_t i = 0; i < pool->count; i++)
		if (pool->free[i].size >= count)
			return true;
	return free_at_end(t, kind, &begin) >= count;
}

bool unwind_tables_fit(struct unwind_tables *t, const struct unwind_sizes *sizes, uid_t owner)
{
	struct unwind_sizes left;
	bool fit;

	unwind_tables_share(t, owner, &left, &fit);
	fit = !end_grace_of_rows(t) && unwind_is_enough(&left, sizes);
	for (int kind = 0; kind < UNWIND_IMAGE_KINDS; kind++)
		fit = fit && has_block(t, kind, sizes->of[kind]);
	return fit;
}

void unwind_tables_free_sizes(const struct unwind_tables *t, struct unwind_sizes *sizes)
{
	for (int kind = 0; kind < UNWIND_KINDS; kind++) {
		sizes->of[kind] = t->room.of[kind] - t->used.of[kind];
		for (size_t i = 0; i < t->free[kind].count; i++)
			sizes->of[kind] += t->free[kind].free[i].size;
	}
	sizes->mappings += t->freed_mappings;
	for (size_t i = 0; i < t->emptied_count; i++)
		unwind_add_extent(sizes, &t->emptied[i].extent, 1);
}

int unwind_tables_remove(struct unwind_tables *t, uint32_t image)
{
	struct unwind_extent *extent = &t->extents[image];
	struct unwind_block number = { image, 1 };

	charge(t, extent, -1);
	t->users_used.images -= extent->owner != 0;
	t->images[image] = (struct unwind_image){ 0 };
	return give_extent_back(t, extent) ?: give_back(&t->free[UNWIND_KIND_IMAGES], &number);
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
		err = add_free(&t->free[UNWIND_KIND_MAPPINGS], block);
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
	if (array_add(t->freed, t->freed_end, t->freed_room,
		      (struct unwind_freed_block){ *block, now_ns() }))
		return -ENOMEM;
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
	size_t contexts = 0;
	size_t room = t->more[UNWIND_MAPPINGS] ? t->have[UNWIND_MAPPINGS] : t->room.mappings;
	int err = end_grace(t);

	/* A process with few mappings may use what those with many may not. */
	if (!err && block->size &&
	    t->freed_mappings + count > room / (count > MANY_MAPPINGS ? 4 : 2))
		err = -EAGAIN;
	if (!err)
		err = take_of_table(t, UNWIND_MAPPINGS, count ?: 1, &fresh);
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
		if (!entry.vector.shift)
			entry.vector = t->images[mappings[i].image].vector;
		if (t->images[mappings[i].image].context && contexts < CONTEXT_PROCESS_IMAGES)
			entry.contexts[contexts++] = i + 1;
	}
	/* The system call is a barrier: the program sees the mappings before the entry. */
	err = bpf_map_update_elem(t->processes, &process, &entry, BPF_ANY);
	if (err) {
		free_block(t, &fresh);
		return err == -E2BIG || err == -ENOMEM ? -ENOSPC : err;
	}
	err = free_block(t, block);
	*block = fresh;
	return err;
}

void unwind_tables_answer(struct unwind_tables *t, uint64_t process)
{
	struct unwind_process entry;

	if (bpf_map_lookup_elem(t->processes, &process, &entry) || entry.asked != UNWIND_ASKED)
		return;
	entry.asked = UNWIND_ANSWERED;
	bpf_map_update_elem(t->processes, &process, &entry, BPF_EXIST);
}

int unwind_tables_withdraw(struct unwind_tables *t, uint64_t process, struct unwind_block *block)
{
	if (block->size && process)
		bpf_map_delete_elem(t->processes, &process);
	return free_block(t, block);
}

/* --- What is not needed any more --- */

/* Bound: pace. */
#define TRIMMED_PARTS 4

int unwind_tables_trim(struct unwind_tables *t)
{
	unsigned int left = TRIMMED_PARTS;
	int err = end_grace_of_rows(t) ?: end_grace(t);

	for (int i = UNWIND_PAGES; i < UNWIND_TABLES; i++) {
		size_t part = kinds[i].part, bytes = part * kinds[i].bytes, end;
		enum unwind_kind kind = kinds[i].kind;

		free_at_end(t, kind, &end);
		t->free[kind].count -= end < t->used.of[kind];
		t->used.of[kind] = end;
		while (left && t->more[i] && t->have[i] > t->first[i] &&
		       t->have[i] - part >= elements_of(&t->used, i)) {
			uint32_t number = t->have[i] / part - 1;

			/* It waits until no program uses the part, which our memory still holds. */
			if (bpf_map_delete_elem(t->more[i], &number) ||
			    mmap((char *)*memory_of(t, i) + number * bytes, bytes, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
				 0) == MAP_FAILED)
				break;
			t->have[i] -= part;
			left--;
		}
	}
	return err;
}
