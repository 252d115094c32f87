// SPDX-License-Identifier: GPL-2.0-only
/* The tables of rows, as images come and go. Needs no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/clock.h"

/* Time goes on when a test says so: no row depends on how busy the machine is. */
static uint64_t test_now_ns = NS_PER_S, test_cpu_ns;

static uint64_t test_clock_ns(clockid_t clock)
{
	return clock == CLOCK_THREAD_CPUTIME_ID ? test_cpu_ns : test_now_ns;
}

/*
 * Files of the machine of test_deployed_later(), by their descriptors, which are numbers from FILES
 * on: nothing is opened.
 */
#define FILES	 100000
#define PROGRAMS 1200

static struct test_file {
	size_t rows;
	off_t bytes;
	uid_t owner;
	uint32_t build; /* 0: it has no build ID */
	unsigned int reads;
} files[PROGRAMS + 64];
static size_t file_count;

static int test_fstat(int fd, struct stat *status)
{
	if (fd < FILES)
		return fstat(fd, status);
	*status = (struct stat){
		.st_uid = files[fd - FILES].owner,
		.st_size = files[fd - FILES].bytes,
	};
	return 0;
}

/* The kernel's table of processes has room for so many. */
static size_t process_room, process_count;

static int test_update(const void *key, const void *value)
{
	assert_true(key && value);
	if (process_count == process_room)
		return -E2BIG;
	process_count++;
	return 0;
}

static int test_delete(const void *key)
{
	assert_non_null(key);
	process_count--;
	return 0;
}

#define bpf_map_update_elem(fd, key, value, flags) test_update(key, value)
#define bpf_map_delete_elem(fd, key)		   test_delete(key)
#define clock_ns(clock)				   test_clock_ns(clock)
#define now_ns()				   test_now_ns
#define fstat(fd, status)			   test_fstat(fd, status)

/* With their private functions. */
#include "capture/unwind/unwind.c"
#include "capture/unwind/unwind_tables.c"

#define IMAGES 64
#define ROWS   (4 * UNWIND_CHUNK_ROWS)
#define USER   1000 /* the owner of files */

static const struct unwind_sizes room = {
	.images = IMAGES,
	.pages = ROWS / UNWIND_PAGE_ROWS,
	.rows = ROWS,
	.rules = ROWS / 4,
};

static struct unwind_tables make_tables(void)
{
	struct unwind_tables t = { .room = room, .users_room = room, .used.images = 1 };

	t.users_room.rows /= 2;
	t.user_room = t.users_room;
	t.images = calloc(room.images, sizeof(*t.images));
	t.languages = calloc(room.images, sizeof(*t.languages));
	t.pages = calloc(room.pages, sizeof(*t.pages));
	t.chunks = calloc(room.rows / UNWIND_CHUNK_ROWS, sizeof(*t.chunks));
	t.rules = calloc(room.rules, sizeof(*t.rules));
	assert_true(t.images && t.languages && t.pages && t.chunks && t.rules);
	return t;
}

static void free_tables(struct unwind_tables *t)
{
	free(t->images);
	free(t->languages);
	free(t->pages);
	free(t->chunks);
	free(t->rules);
	t->images = NULL; /* they are not mapped */
	t->languages = NULL;
	t->pages = NULL;
	t->chunks = NULL;
	t->rules = NULL;
	unwind_tables_free(t);
}

/* An image with this many rows; its number makes it different from others. */
static struct unwind_rows make_rows(unsigned int number, size_t count)
{
	struct unwind_rows rows = { .count = count, .rule_count = 1 + number % 7 };

	rows.rows = calloc(count, sizeof(*rows.rows));
	rows.rules = calloc(rows.rule_count, sizeof(*rows.rules));
	assert_true(rows.rows && rows.rules);
	for (size_t i = 0; i < count; i++)
		rows.rows[i] = (struct unwind_address){ 0x1000 + i * (9 + number % 5),
							(i + number) % rows.rule_count };
	for (size_t i = 0; i < rows.rule_count; i++)
		rows.rules[i].offset = number * 100 + i;
	rows.build_id_size = sizeof(number);
	memcpy(rows.build_id, &number, sizeof(number));
	return rows;
}

/* The rule for an address, found as the walk does. */
static const struct unwind_rule *rule_at(const struct unwind_tables *t, uint32_t number,
					 uint64_t address)
{
	const struct unwind_image *image = &t->images[number];
	uint64_t distance = address - image->begin;
	const struct unwind_page *page =
		&t->pages[image->first_page + (distance >> image->page_shift)];
	uint32_t row = page->first - 1;

	for (uint32_t i = page->first; i < page->first + page->count; i++)
		if (t->chunks[i / UNWIND_CHUNK_ROWS].rows[i % UNWIND_CHUNK_ROWS].address <=
		    (distance & ((1ULL << image->page_shift) - 1)))
			row = i;
	return &t->rules[image->first_rule +
			 t->chunks[row / UNWIND_CHUNK_ROWS].rows[row % UNWIND_CHUNK_ROWS].rule];
}

static void check_rows(const struct unwind_tables *t, uint32_t number,
		       const struct unwind_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		for (uint64_t k = 0; k < 2 && i + k < rows->count; k++) /* the last begins a gap */
			assert_int_equal(rule_at(t, number, rows->rows[i].address + k)->offset,
					 rows->rules[rows->rows[i].rule].offset);
}

/*
 * Images of many sizes come and go: those that are there are intact, and all room is found again.
 */
static void test_come_and_go(void **state)
{
	struct unwind_tables t = make_tables();
	struct unwind_rows rows[IMAGES] = { { .count = 0 } }, large;
	uint32_t numbers[IMAGES], number;
	unsigned int random = 1, refused = 0;

	(void)state;
	for (unsigned int round = 0; round < 3000; round++) {
		unsigned int which = (random = random * 1103515245 + 12345) / 65536 % IMAGES;

		if (rows[which].count) {
			check_rows(&t, numbers[which], &rows[which]);
			assert_int_equal(unwind_tables_remove(&t, numbers[which]), 0);
			unwind_rows_free(&rows[which]);
			continue;
		}
		rows[which] = make_rows(round, 1 + random / 7 % (ROWS / IMAGES * 3));
		if (unwind_tables_add(&t, &rows[which], round % 2 ? 0 : USER, &numbers[which])) {
			unwind_rows_free(&rows[which]);
			refused++;
		}
	}
	assert_in_range(refused, 1, 1400); /* it was full at times */
	for (unsigned int i = 0; i < IMAGES; i++)
		if (rows[i].count) {
			check_rows(&t, numbers[i], &rows[i]);
			assert_int_equal(unwind_tables_remove(&t, numbers[i]), 0);
			unwind_rows_free(&rows[i]);
		}
	assert_true(t.used.rows <= room.rows && t.used.pages <= room.pages);
	assert_int_equal(t.users_used.rows, 0);
	assert_int_equal(t.users_used.images, 0);
	/* Free blocks have been joined. */
	large = make_rows(1, t.used.rows - 1);
	assert_int_equal(unwind_tables_add(&t, &large, 0, &number), 0);
	check_rows(&t, number, &large);
	unwind_rows_free(&large);
	free_tables(&t);
}

/* Users' files have a part of the room, and do not make others go. */
static void test_users(void **state)
{
	struct unwind_tables t = make_tables();
	struct unwind_rows rows = make_rows(3, ROWS / 4);
	uint32_t first, number;

	(void)state;
	assert_int_equal(unwind_tables_add(&t, &rows, USER, &first), 0);
	assert_int_equal(unwind_tables_add(&t, &rows, USER, &number), -EDQUOT);
	assert_int_equal(unwind_tables_add(&t, &rows, 0, &number), 0);
	assert_int_equal(unwind_tables_add(&t, &rows, 0, &number), 0);
	assert_int_equal(unwind_tables_add(&t, &rows, 0, &number), -ENOSPC);
	assert_int_equal(unwind_tables_remove(&t, first), 0);
	assert_int_equal(unwind_tables_add(&t, &rows, USER, &number), 0);
	check_rows(&t, number, &rows);
	unwind_rows_free(&rows);
	free_tables(&t);
}

/* Users' files without rows do not take the numbers that root's need. */
static void test_users_numbers(void **state)
{
	struct unwind_tables t = make_tables();
	uint32_t number, theirs[2];
	int err = 0;

	(void)state;
	t.users_room.images = 2;
	for (int i = 0; i < 2; i++)
		assert_int_equal(unwind_tables_reserve(&t, USER, &theirs[i]), 0);
	assert_int_equal(unwind_tables_reserve(&t, USER, &number), -EDQUOT);
	assert_int_equal(unwind_tables_remove(&t, theirs[0]), 0);
	assert_int_equal(unwind_tables_reserve(&t, USER, &number), 0);
	while (!err)
		err = unwind_tables_reserve(&t, 0, &number);
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(number + 1, t.room.images);
	free_tables(&t);
}

/* --- What is used least makes room --- */

#define USED_MAX 8

/* Our own process maps the first `mapped` images; nothing maps the others. */
static struct unwind make_unwind(struct process_table *table, uint32_t mapped)
{
	struct unwind u = { .tables = make_tables(), .processes = table };
	struct address_space *space;

	u.images = calloc(USED_MAX, sizeof(*u.images));
	u.idle = calloc(USED_MAX, sizeof(*u.idle));
	assert_non_null(u.images);
	assert_non_null(u.idle);
	assert_int_equal(process_add(table, getpid(), 0), 0);
	space = process_space(process_find(table, getpid()));
	assert_int_equal(
		array_reserve(&space->mappings, &space->room, mapped, sizeof(*space->mappings)), 0);
	for (space->count = 0; space->count < mapped; space->count++)
		space->mappings[space->count].image = space->count;
	return u;
}

static void free_unwind(struct unwind *u)
{
	process_table_free(u->processes);
	index_free(&u->contents);
	free(u->images);
	free(u->idle);
	free(u->demands);
	free(u->wanted);
	free_tables(&u->tables);
}

/* Adds an image of so many rows, which may have no room. */
static void add_used_image(struct unwind *u, unsigned int number, size_t count)
{
	struct unwind_image_state *state = &u->images[u->image_count++];
	struct unwind_rows rows = make_rows(number, count);
	struct unwind_sizes need;

	*state = (struct unwind_image_state){ .known = true };
	unwind_tables_image_sizes(&rows, &need);
	if (unwind_tables_add(&u->tables, &rows, 0, &state->number))
		assert_int_equal(unwind_tables_reserve(&u->tables, 0, &state->number), 0);
	assert_int_equal(unwind_note_demand(u, state, &need), 0);
	unwind_rows_free(&rows);
	state->rows = rows;
}

/* All processes that mapped it are forgotten. */
static void make_idle(struct unwind *u, uint32_t image)
{
	u->idle[u->idle_count++] = u->images[image];
	u->images[image] = (struct unwind_image_state){ 0 };
}

static bool has_rows(const struct unwind *u, size_t image)
{
	return unwind_tables_has_rows(&u->tables, u->images[image].number);
}

/* Ticks come to an image, and the balance is looked at. */
static void look(struct unwind *u, size_t image, unsigned int ticks)
{
	u->tables.images[u->images[image].number].used += ticks;
	u->next_balance_ns = 0;
	assert_int_equal(unwind_balance(u, 0), 0);
}

static struct capture_image image_of_build(unsigned int build)
{
	struct capture_image image = { .build_id_size = sizeof(build) };

	memcpy(image.build_id, &build, sizeof(build));
	return image;
}

/*
 * For a new image goes what nothing maps, the least used first, and no more than is needed; never
 * what is mapped. One that is mapped again is idle no more.
 */
static void test_unmapped(void **state)
{
	struct process_table table = { 0 };
	struct unwind u = make_unwind(&table, 2);
	struct capture_image second = image_of_build(2), unknown = image_of_build(9);
	struct unwind_sizes need = { .rows = ROWS / 4 }, more = { .rows = ROWS };
	struct unwind_sizes theirs = { .rows = ROWS / 2 + 1 };
	struct unwind_image_state revived = { 0 };
	uint32_t numbers[5];

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		add_used_image(&u, i, ROWS / 6);
		numbers[i] = u.images[i].number;
	}
	add_used_image(&u, 5, ROWS / 7); /* there is no room for another */
	look(&u, 2, 100);
	look(&u, 4, 10);
	make_idle(&u, 2);
	make_idle(&u, 3);
	assert_int_equal(unwind_make_room(&u, &theirs, USER, 0), -ENOENT); /* none is a user's */
	assert_int_equal(unwind_make_room(&u, &more, 0, 0), -ENOENT);
	/* 3 without a tick, and 5; 4 is not mapped either, but used; 2 is used most. */
	assert_int_equal(unwind_make_room(&u, &need, 0, 0), 0);
	assert_false(unwind_tables_has_rows(&u.tables, numbers[3]));
	assert_true(u.images[5].removed && u.images[5].number == UNWIND_NO_IMAGE);
	assert_true(has_rows(&u, 0) && has_rows(&u, 1) && has_rows(&u, 4));
	assert_int_equal(u.idle_count, 1);
	assert_false(unwind_revive(&u, &unknown, &revived));
	assert_true(unwind_revive(&u, &second, &revived));
	assert_int_equal(revived.number, numbers[2]);
	assert_false(unwind_revive(&u, &second, &revived));
	free_unwind(&u);
}

/* Rows of users' files without ticks are given back, mapped or not, and the end of the tables. */
static void test_unused(void **state)
{
	struct process_table table = { .images = calloc(1, sizeof(*table.images)) };
	struct unwind u = make_unwind(&table, 1);
	size_t used;

	(void)state;
	assert_non_null(table.images);
	table.images[table.image_count++] = (struct capture_image){
		.path = strdup("/home/user/mapped"),
		.fd = -1,
	};
	add_used_image(&u, 0, ROWS / 6);
	add_used_image(&u, 1, ROWS / 6);
	used = u.tables.used.rows;
	add_used_image(&u, 2, ROWS / 6);
	u.images[0].owner = u.images[2].owner = USER;
	for (int window = 1; window < ROWS_KEEP_WINDOWS; window++)
		assert_int_equal(unwind_forget_images(&u, 0), 0);
	assert_int_equal(u.idle_count, 2);
	look(&u, 0, 1);
	assert_int_equal(unwind_forget_images(&u, 0), 0);
	assert_int_equal(u.idle_count, 1); /* root's */
	assert_true(has_rows(&u, 0));
	assert_int_equal(u.tables.used.rows, used);
	for (int window = 1; window < ROWS_KEEP_WINDOWS; window++)
		assert_int_equal(unwind_forget_images(&u, 0), 0);
	assert_false(has_rows(&u, 0));
	assert_int_equal(u.idle_count, 1);
	free_unwind(&u);
}

static void test_least_used(void **state)
{
	struct process_table table = { 0 };
	struct unwind u = make_unwind(&table, 5);
	struct unwind_rows again;

	(void)state;
	add_used_image(&u, 0, ROWS / 3);
	add_used_image(&u, 1, ROWS / 3);
	add_used_image(&u, 2, ROWS / 4);
	add_used_image(&u, 3, 8); /* small: to remove it would not help */
	add_used_image(&u, 4, ROWS / 3);
	assert_true(has_rows(&u, 0) && has_rows(&u, 1) && has_rows(&u, 2) && has_rows(&u, 3));
	assert_false(has_rows(&u, 4));
	look(&u, 0, 100);
	look(&u, 1, 10);
	look(&u, 2, 100);
	assert_false(has_rows(&u, 4)); /* without a tick it needs no room, */
	look(&u, 4, 15);
	assert_true(has_rows(&u, 1)); /* and with a few it does not take that of others, */
	assert_int_equal(u.wanted_count, 0);
	look(&u, 4, 15);
	assert_false(has_rows(&u, 1)); /* but that of what is used half as much */
	assert_true(has_rows(&u, 0) && has_rows(&u, 2) && has_rows(&u, 3));
	assert_int_equal(u.wanted_count, 0); /* a tick may still read the old rows */
	look(&u, 4, 0);
	assert_int_equal(u.wanted_count, 0);
	test_now_ns += 2 * UNWIND_GRACE_NS;
	look(&u, 4, 0);
	assert_int_equal(u.wanted_count, 1);
	assert_int_equal(u.wanted[0], 4);
	again = make_rows(4, ROWS / 3);
	assert_int_equal(unwind_tables_fill(&u.tables, &again, 0, u.images[4].number), 0);
	check_rows(&u.tables, u.images[4].number, &again);
	unwind_rows_free(&again);
	u.images[4].wanted = false;
	u.wanted_count = 0;
	/* However long it goes on: the first one is forgotten, and used again. */
	for (int i = 0; i < 200; i++)
		look(&u, 4, 10);
	look(&u, 1, 100);
	assert_false(has_rows(&u, 0));
	test_now_ns += 2 * UNWIND_GRACE_NS;
	look(&u, 1, 0);
	assert_int_equal(u.wanted[0], 1);
	free_unwind(&u);
}

/* --- More new files than there is time to read --- */

/* Reads rows of whatever file it is. */
static int read_any(struct parser *parser, int fd, const char *path, uint32_t user,
		    const struct context_wishes *wishes, struct read_budget *budget,
		    struct unwind_rows *rows, struct error *e)
{
	(void)parser, (void)fd, (void)path, (void)user, (void)wishes, (void)budget, (void)e;
	*rows = make_rows(7, 20);
	return 0;
}

/* Adds an image that our process maps, whose file has this size. */
static void map_file(struct unwind *u, uint64_t bytes)
{
	struct process_table *table = u->processes;
	struct address_space *space = process_space(process_find(table, getpid()));
	int fd = memfd_create("code", 0);

	assert_true(fd >= 0 && ftruncate(fd, bytes) == 0 && fchmod(fd, 0600) == 0);
	assert_int_equal(array_reserve(&table->images, &table->image_room, table->image_count + 1,
				       sizeof(*table->images)),
			 0);
	table->images[table->image_count] =
		(struct capture_image){ .path = strdup("/code"), .fd = fd, .root = -1 };
	assert_int_equal(array_reserve(&space->mappings, &space->room, space->count + 1,
				       sizeof(*space->mappings)),
			 0);
	space->mappings[space->count++].image = table->image_count++;
	u->image_count = table->image_count;
}

/* Reads what is wanted, as add_images() does. */
static void read_wanted(struct unwind *u)
{
	for (size_t i = 0; i < u->wanted_count; i++) {
		assert_int_equal(unwind_read_image(u, u->wanted[i]), 0);
		assert_int_equal(unwind_add_image(u, u->wanted[i], 0), 0);
	}
	u->wanted_count = 0;
}

/*
 * What came when the time was spent is read once its code has run for long enough, a small file
 * before a large one, or when there is time again; and never by its first ticks alone.
 */
static void test_deferred(void **state)
{
	struct process_table table = { 0 };
	struct unwind u = make_unwind(&table, 0);
	struct capture_tables tables;
	const char *why;
	struct unwind_time *time = geteuid() ? &u.users_time : &u.root_time; /* whose files */
	int ring; /* only whether there is one is asked */

	(void)state;
	u.read = read_any;
	u.ring = (struct ring_buffer *)&ring;
	u.always_on = true;
	u.tick_ns = 10 * NS_PER_MS;
	u.root_time = u.users_time = (struct unwind_time){ -(int64_t)NS_PER_S, now_ns() };
	map_file(&u, 16 << 10);
	map_file(&u, (uint64_t)1 << 30);
	map_file(&u, 16 << 10);
	for (size_t i = 0; i < u.image_count; i++) {
		assert_int_equal(unwind_read_image(&u, i), 0);
		assert_int_equal(unwind_add_image(&u, i, 0), 0);
		assert_int_not_equal(u.images[i].number, UNWIND_NO_IMAGE); /* to count its ticks */
		assert_int_equal(unwind_rows_state(&u, i, &why), CAPTURE_ROWS_UNREAD);
		assert_non_null(why);
	}
	unwind_used(&u, &tables);
	assert_int_equal(tables.deferred, 3);
	/* Half a millisecond for the small one: it is read when its code has run for 25. */
	look(&u, 0, 2);
	look(&u, 1, 499);
	assert_int_equal(u.wanted_count, 0);
	look(&u, 0, 1);
	assert_int_equal(u.wanted_count, 1);
	read_wanted(&u);
	assert_true(has_rows(&u, 0));
	look(&u, 1, 1);
	assert_int_equal(u.wanted_count, 1);
	read_wanted(&u);
	assert_true(has_rows(&u, 1));
	unwind_used(&u, &tables);
	assert_int_equal(tables.deferred, 1);
	/* This did not take of what others may take. Later there is time again. */
	assert_true(time->left_ns < 0 && time->left_ns > -1.1 * NS_PER_S);
	test_now_ns += 500 * NS_PER_S;
	look(&u, 2, 1);
	assert_int_equal(u.wanted_count, 1);
	read_wanted(&u);
	assert_true(has_rows(&u, 2));
	/* However long nothing was read, there is no more time than the budget has room for. */
	test_now_ns += 1000000 * NS_PER_S;
	assert_false(is_out_of_time(&u, &u.images[2]));
	assert_int_equal(time->left_ns, TIME_NS);
	u.ring = NULL;
	free_unwind(&u);
}

/* --- A service that is deployed after a thousand other programs --- */

#define HZ 100

/* What reading a file takes is added to the thread's CPU time. */
static int read_file_of_machine(struct parser *parser, int fd, const char *path, uint32_t user,
				const struct context_wishes *wishes, struct read_budget *budget,
				struct unwind_rows *rows, struct error *e)
{
	struct test_file *file = &files[fd - FILES];

	(void)parser, (void)path, (void)user, (void)wishes, (void)budget, (void)e;
	file->reads++;
	test_cpu_ns += file->bytes * 3;
	*rows = make_rows(file->build, file->rows);
	if (!file->build)
		rows->build_id_size = 0;
	return 0;
}

/* Limits as unwind_tables_size() sets them for 16 MiB, a thirtieth of what all would take. */
static struct unwind make_machine(struct process_table *table)
{
	struct unwind u = {
		.processes = table,
		.read = read_file_of_machine,
		.always_on = true,
		.tick_ns = NS_PER_S / HZ,
	};
	struct unwind_tables *t = &u.tables;

	file_count = 0;
	assert_int_equal(unwind_tables_private(t), 0);
	t->room = (struct unwind_sizes){
		.images = 4096,
		.pages = 16 * MIB_PAGES,
		.rows = 16 * MIB_ROWS,
		.rules = 16 * MIB_RULES,
	};
	for (int kind = 0; kind < UNWIND_KINDS; kind++) {
		t->users_room.of[kind] = t->room.of[kind] / ROOM_OF_USERS;
		t->user_room.of[kind] = t->room.of[kind] / ROOM_OF_USER;
	}
	u.root_time = u.users_time = (struct unwind_time){ TIME_NS, test_now_ns };
	assert_int_equal(process_add(table, getpid(), 0), 0);
	return u;
}

static void free_machine(struct unwind *u)
{
	for (size_t i = 0; i < u->processes->image_count; i++)
		u->processes->images[i].fd = -1; /* they are no descriptors */
	u->tables.room.images = PRIVATE_IMAGES;
	u->tables.room.pages = PRIVATE_PAGES;
	u->tables.room.rows = PRIVATE_ROWS;
	u->tables.room.rules = PRIVATE_RULES;
	u->ring = NULL;
	process_table_free(u->processes);
	unwind_free(u);
}

static struct capture_image image_of_file(size_t file, uint64_t group)
{
	struct capture_image image = {
		.path = strdup("/program"),
		.fd = FILES + file,
		.root = -1,
		.device = 1,
		.inode = file + 1,
		.size = files[file].bytes,
		.provider = files[file].owner,
		.group = group,
	};

	if (files[file].build) {
		image.build_id_size = sizeof(files[file].build);
		memcpy(image.build_id, &files[file].build, sizeof(files[file].build));
	}
	assert_non_null(image.path);
	return image;
}

static size_t new_file(off_t bytes, uid_t owner)
{
	assert_true(file_count < sizeof(files) / sizeof(*files));
	files[file_count] = (struct test_file){
		.rows = 20 + bytes / 70, /* as of cc1 */
		.bytes = bytes,
		.owner = owner,
		.build = file_count + 1,
	};
	return file_count++;
}

/* Starts a program: our process maps it, too. Returns the number of its image. */
static uint32_t start_program(struct unwind *u, size_t file, uint64_t group)
{
	struct process_table *table = u->processes;
	struct address_space *space = process_space(process_find(table, getpid()));
	struct capture_image image = image_of_file(file, group);
	uint32_t number;

	assert_int_equal(image_add(table, &image, &number), 0);
	assert_int_equal(array_reserve(&space->mappings, &space->room, space->count + 1,
				       sizeof(*space->mappings)),
			 0);
	space->mappings[space->count++].image = number;
	assert_int_equal(want_new(u), 0);
	read_wanted(u);
	return number;
}

/* At the end of a window: all programs but our own have ended, and are forgotten. */
static void forget_programs(struct unwind *u)
{
	struct process_table *table = u->processes;

	for (uint32_t i = 0; i < table->image_count; i++) {
		free(table->images[i].path);
		table->images[i] = (struct capture_image){ .fd = -1, .root = -1 };
	}
	table->next_image = 0;
	process_space(process_find(table, getpid()))->count = 0;
	assert_int_equal(unwind_forget_images(u, 0), 0);
}

/* It runs for so many ticks, one in each `every`. Returns how many have whole stacks. */
static unsigned int run_program(struct unwind *u, uint32_t number, unsigned int ticks,
				unsigned int every)
{
	unsigned int whole = 0;

	for (unsigned int i = 0; i < ticks * every; i++) {
		uint32_t in_tables = u->images[number].number;

		test_now_ns += u->tick_ns;
		if (i % every == 0 && in_tables != UNWIND_NO_IMAGE) {
			whole += unwind_tables_has_rows(&u->tables, in_tables);
			u->tables.images[in_tables].used++;
		}
		assert_int_equal(unwind_balance(u, 0), 0);
		read_wanted(u);
		assert_true(u->tables.used.rows <= u->tables.room.rows);
		assert_true(u->tables.users_used.rows <= u->tables.users_room.rows);
	}
	return whole;
}

/* Runs more programs than the tables and all budgets are for, of root and of some users. */
static void run_many_programs(struct unwind *u)
{
	static const off_t sizes[] = { 16 << 10, 300 << 10, 2 << 20, 33 << 20, 9 << 20 };
	unsigned int random = 1;

	for (unsigned int i = 0; i < PROGRAMS; i++) {
		size_t file = new_file(sizes[i % 5], i % 3 ? 0 : USER + i / 3 % 4);
		uint32_t number = start_program(u, file, 7 + i % 2);

		random = random * 1103515245 + 12345;
		run_program(u, number, random / 65536 % 150, 1);
		/* It ends: nothing maps it any more. */
		process_space(process_find(u->processes, getpid()))->count = 0;
		if (i % 60 == 59)
			forget_programs(u);
	}
}

static void test_deployed_later(void **state)
{
	static const struct {
		off_t bytes;
		uid_t owner;
		unsigned int every; /* it runs in one of so many ticks */
		uint64_t group;
	} services[] = {
		{ 16 << 10, 0, 1, 101 },	 { 16 << 10, 0, 20, 102 },
		{ 4 << 20, 0, 20, 103 },	 { 40 << 20, 0, 1, 104 },
		{ 40 << 20, 0, 20, 105 },	 { 4 << 20, USER + 50, 20, 106 },
		{ 16 << 10, USER + 51, 1, 107 }, { 16 << 10, 0, 1, 7 }, /* of a build's group */
	};
	struct process_table table = { 0 };
	struct unwind u = make_machine(&table);
	struct capture_tables tables;
	int ring; /* only whether there is one is asked */

	(void)state;
	u.ring = (struct ring_buffer *)&ring;
	run_many_programs(&u);
	assert_true(test_cpu_ns / 40 < test_now_ns); /* what was read is little, */
	unwind_used(&u, &tables);
	assert_in_range(tables.rows, 1, IDLE_ROWS); /* and what is kept of it */
	for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++) {
		size_t file = new_file(services[i].bytes, services[i].owner);
		uint32_t number = start_program(&u, file, services[i].group);
		unsigned int ticks = 60 * HZ / services[i].every;
		unsigned int whole = run_program(&u, number, ticks, services[i].every);

		if (whole < ticks * 99 / 100)
			print_error("service %zu: %u of %u %s def %d nr %d earned %d left %ld own "
				    "%ld\n",
				    i, whole, ticks, u.images[number].why,
				    u.images[number].deferred, u.images[number].no_room,
				    u.images[number].earned, u.root_time.left_ns,
				    payer_time(&u, u.images[number].payer)->left_ns);
		assert_true(whole >= ticks * 99 / 100);
	}
	free_machine(&u);
}

/*
 * A program that is started again and again, forgotten each time, is read once and has its room
 * once, with a build ID or without, root's or a user's. One that was deferred keeps its ticks.
 */
static void test_started_again(void **state)
{
	struct process_table table = { 0 };
	struct unwind u = make_machine(&table);
	struct capture_tables tables;
	size_t programs[4], rows = 0;
	int ring; /* only whether there is one is asked */

	(void)state;
	u.ring = (struct ring_buffer *)&ring;
	for (size_t i = 0; i < 4; i++) {
		programs[i] = new_file(1 << 20, i % 2 ? USER : 0);
		files[programs[i]].build *= i / 2;
	}
	for (int start = 0; start < 50; start++) {
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(run_program(&u, start_program(&u, programs[i], 7), 3, 1),
					 3);
		forget_programs(&u);
		unwind_used(&u, &tables);
		rows = rows ?: tables.rows;
		assert_int_equal(tables.rows, rows);
	}
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(files[programs[i]].reads, 1);
	/* A tick at each start: the half millisecond is worth it after three. */
	programs[0] = new_file(16 << 10, 0);
	u.root_time.left_ns = -10 * (int64_t)NS_PER_S;
	for (int start = 0; start < 3; start++) {
		run_program(&u, start_program(&u, programs[0], 7), 1, 1);
		assert_int_equal(files[programs[0]].reads, 0);
		forget_programs(&u);
	}
	run_program(&u, start_program(&u, programs[0], 7), 1, 100);
	assert_int_equal(files[programs[0]].reads, 1);
	free_machine(&u);
}

/* What is refused is counted: for lack of time, and of users' files as that. */
static void test_refused(void **state)
{
	struct process_table table = { 0 };
	struct unwind u = make_machine(&table);
	struct capture_tables tables;
	int ring; /* only whether there is one is asked */

	(void)state;
	u.ring = (struct ring_buffer *)&ring;
	start_program(&u, new_file((off_t)256 << 20, USER), 7); /* more than a quarter of all */
	unwind_used(&u, &tables);
	assert_int_equal(tables.too_large, 1);
	assert_int_equal(tables.no_room, 1);
	u.root_time.left_ns = u.users_time.left_ns = -1;
	for (int i = 0; i < 5; i++)
		start_program(&u, new_file(1 << 20, i ? USER + 1 : 0), 7);
	unwind_used(&u, &tables);
	assert_int_equal(tables.deferred, 5);
	assert_int_equal(table.refusals.count, 3);
	assert_int_equal(table.refusals.all[0].cause, REFUSAL_UNWIND_ROOM);
	assert_int_equal(table.refusals.all[0].uid, USER);
	assert_int_equal(table.refusals.all[1].cause, REFUSAL_UNWIND_TIME);
	assert_int_equal(table.refusals.all[1].uid, 0);
	assert_int_equal(table.refusals.all[2].uid, USER + 1);
	assert_int_equal(table.refusals.all[2].count, 4);
	free_machine(&u);
}

/*
 * A process that finds no room takes that of the user who has most, whose processes are published
 * again when ticks come to them.
 */
static void test_published(void **state)
{
	struct process_table table = { 0 };
	struct unwind u = make_machine(&table);
	struct unwind_mapping *mappings = calloc(MAPPINGS_MAX, sizeof(*mappings));

	(void)state;
	assert_non_null(mappings);
	u.tables.mappings = mappings;
	u.tables.room.mappings = MAPPINGS_MAX;
	process_room = 64;
	process_count = 0;
	for (pid_t pid = 100000; pid < 100064; pid++) {
		assert_int_equal(process_add(&table, pid, 0), 0);
		process_find(&table, pid)->uid = pid % 4 ? USER : 0;
	}
	u.states = calloc(table.count, sizeof(*u.states));
	assert_non_null(u.states);
	u.state_room = u.state_count = table.count;
	/* Number 0 is our own process. */
	for (size_t i = 1; i <= 64; i++)
		assert_int_equal(publish_space(&u, i, i), 0);
	assert_int_equal(u.published_count, 64);
	assert_int_equal(process_count, 64);
	assert_int_equal(publish_space(&u, 0, 77), 0);
	assert_true(u.states[0].block.size);
	assert_int_equal(table.refusals.count, 1);
	assert_int_equal(table.refusals.all[0].uid, USER);
	assert_int_equal(u.published_count, 65 - table.refusals.all[0].count);
	for (size_t i = 1; i <= 64; i++)
		assert_true(u.states[i].block.size || table.processes[i].uid == USER);
	u.tables.mappings = NULL;
	free(mappings);
	free_machine(&u);
}

/* A program without a build ID that runs again and again is read once, as long as it stays. */
static void test_without_build_id(void **state)
{
	struct process_table table = { 0 };
	struct unwind u = make_unwind(&table, 0);
	struct capture_image image = {
		.fd = 0, .device = 1, .inode = 2, .size = 3, .changed = { 4, 5 }
	};
	struct unwind_image_state revived, known = {
		.device = 1,
		.inode = 2,
		.size = 3,
		.changed = { 4, 5 },
	};

	(void)state;
	u.idle[u.idle_count++] = known;
	image.changed.tv_nsec++; /* written anew */
	assert_false(unwind_revive(&u, &image, &revived));
	image.changed.tv_nsec--;
	image.fd = -1;
	assert_false(unwind_revive(&u, &image, &revived));
	image.fd = 0;
	image.build_id_size = 1;
	assert_false(unwind_revive(&u, &image, &revived));
	image.build_id_size = 0;
	assert_true(unwind_revive(&u, &image, &revived));
	assert_int_equal(u.idle_count, 0);
	known.owner = USER; /* found for this user's file alone, */
	u.idle[u.idle_count++] = known;
	assert_false(unwind_revive(&u, &image, &revived));
	image.provider = USER + 1;
	assert_false(unwind_revive(&u, &image, &revived));
	image.provider = USER;
	assert_true(unwind_revive(&u, &image, &revived));
	known.owner = UINT32_MAX; /* and not at all if anyone can write to it */
	u.idle[u.idle_count++] = known;
	image.provider = UINT32_MAX;
	assert_false(unwind_revive(&u, &image, &revived));
	free_unwind(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_least_used),    cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_users),	      cmocka_unit_test(test_users_numbers),
		cmocka_unit_test(test_unmapped),      cmocka_unit_test(test_unused),
		cmocka_unit_test(test_deferred),      cmocka_unit_test(test_deployed_later),
		cmocka_unit_test(test_started_again), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_published),     cmocka_unit_test(test_without_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
