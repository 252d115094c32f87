// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/gmon_out.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/gmon.h"

/* --- Arcs --- */

/* Ranges without real code, another for each test: a table stays until the process ends. */
static struct gmon_range range_of(uintptr_t low, size_t size)
{
	return (struct gmon_range){ .low = low, .high = low + size, .image_high = UINTPTR_MAX };
}

static uint64_t count_of(const struct gmon_arcs *arcs, uintptr_t from, uintptr_t self)
{
	uint64_t count = 0;

	for (uint32_t i = 1; i < gmon_arcs_end(arcs); i++)
		if (arcs->arcs[i].from == from && arcs->arcs[i].self == self)
			count += gmon_arcs_calls(arcs, i);
	return count;
}

/* The count of an arc that only one thread has called. */
static struct gmon_count *only_count(const struct gmon_arcs *arcs, uint32_t arc)
{
	struct gmon_count *only = NULL;

	for (size_t at = arc; at < (size_t)arcs->limit << arcs->shard_bits; at += arcs->limit)
		if (gmon_count_value(&arcs->counts[at])) {
			assert_null(only);
			only = &arcs->counts[at];
		}
	assert_non_null(only);
	return only;
}

static void test_arcs(void **state)
{
	const struct gmon_range range = range_of(0x10000, 0x1000);
	struct gmon_arcs *arcs = profil__arcs_open(&range);

	(void)state;
	assert_non_null(arcs);
	__mcount_internal(0x10010, 0x10100); /* before it counts */
	profil__arcs_count(arcs);
	__mcount_internal(0x10000, 0x10100);
	__mcount_internal(0x10fff, 0x10100);
	__mcount_internal(0x10fff, 0x10100);
	__mcount_internal(0x10fff, 0x10200);
	__mcount_internal(0xffff, 0x10100); /* callers outside */
	__mcount_internal(0x11000, 0x10100);
	profil__arcs_count(NULL);
	__mcount_internal(0x10010, 0x10100);
	assert_int_equal(count_of(arcs, 0x10000, 0x10100), 1);
	assert_int_equal(count_of(arcs, 0x10fff, 0x10100), 2);
	assert_int_equal(count_of(arcs, 0x10fff, 0x10200), 1);
	assert_int_equal(arcs->used, 4);

	/* The same range again: the same table, with nothing counted. */
	assert_ptr_equal(profil__arcs_open(&range), arcs);
	assert_int_equal(count_of(arcs, 0x10fff, 0x10100), 0);
	profil__arcs_count(arcs);
	__mcount_internal(0x10fff, 0x10100);
	profil__arcs_count(NULL);
	assert_int_equal(count_of(arcs, 0x10fff, 0x10100), 1);
}

/* 32 bits wrap. */
static void test_many_calls(void **state)
{
	const struct gmon_range range = range_of(0x20000, 0x1000);
	struct gmon_arcs *arcs = profil__arcs_open(&range);

	(void)state;
	assert_non_null(arcs);
	profil__arcs_count(arcs);
	__mcount_internal(0x20010, 0x20100);
	only_count(arcs, 1)->low = UINT32_MAX;
	__mcount_internal(0x20010, 0x20100);
	__mcount_internal(0x20010, 0x20100);
	profil__arcs_count(NULL);
	assert_true(count_of(arcs, 0x20010, 0x20100) == (1ULL << 32) + 1);
}

/* Each call of arcs that do not fit is counted as lost, and the others are still counted. */
static void test_full(void **state)
{
	const struct gmon_range range = range_of(0x30000, 0x1000);
	struct gmon_arcs *arcs = profil__arcs_open(&range);
	uint64_t sum = 0;

	(void)state;
	assert_non_null(arcs);
	profil__arcs_count(arcs);
	for (int round = 0; round < 3; round++)
		for (uintptr_t i = 0; i < arcs->limit + 99; i++)
			__mcount_internal(0x30000 + i % 16, 0x30000 + i);
	profil__arcs_count(NULL);
	for (uint32_t i = 1; i < arcs->limit; i++)
		sum += gmon_arcs_calls(arcs, i);
	assert_int_equal(sum, 3 * (arcs->limit - 1));
	assert_int_equal(gmon_arcs_calls(arcs, 0), 3 * 100);
	assert_ptr_equal(profil__arcs_open(&range), arcs);
	assert_int_equal(gmon_arcs_calls(arcs, 0), 0);
}

enum {
	THREADS = 4,
	ROUNDS = 20000,
	SITES = 900
};

static pthread_barrier_t barrier;

/*
 * Each thread has its own order, so that threads insert the same arcs, and different ones, at the
 * same time.
 */
static void *count_arcs(void *argument)
{
	uintptr_t step = *(uintptr_t *)argument;

	pthread_barrier_wait(&barrier);
	for (uintptr_t i = 0; i < (uintptr_t)ROUNDS * SITES / 100; i++) {
		uintptr_t site = i * step % SITES;

		__mcount_internal(0x40000 + site % 30, 0x40000 + site / 30);
	}
	return NULL;
}

static void test_threads(void **state)
{
	const struct gmon_range range = range_of(0x40000, 0x10000);
	uintptr_t steps[THREADS] = { 1, 899, 7, 11 }; /* each is coprime to SITES */
	struct gmon_arcs *arcs = profil__arcs_open(&range);
	pthread_t threads[THREADS];

	(void)state;
	assert_non_null(arcs);
	pthread_barrier_init(&barrier, NULL, THREADS);
	profil__arcs_count(arcs);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_arcs, &steps[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	profil__arcs_count(NULL);
	for (uintptr_t site = 0; site < SITES; site++)
		assert_int_equal(count_of(arcs, 0x40000 + site % 30, 0x40000 + site / 30),
				 THREADS * ROUNDS / 100);
	assert_int_equal(gmon_arcs_calls(arcs, 0), 0);
}

static void *count_one_arc(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		__mcount_internal(0x60010, 0x60100);
	return unused;
}

/* Threads with stacks at the C library's distance do not share the cache line of a count. */
static void test_shards(void **state)
{
	const size_t stack_size = 8 << 20, distance = stack_size + 4096;
	const struct gmon_range range = range_of(0x60000, 0x1000);
	struct gmon_arcs *arcs = profil__arcs_open(&range);
	char *stacks = mmap(NULL, THREADS * distance, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned int used = 0;

	(void)state;
	assert_non_null(arcs);
	assert_ptr_not_equal(stacks, MAP_FAILED);
	profil__arcs_count(arcs);
	for (int i = 0; i < THREADS; i++) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		assert_int_equal(pthread_attr_setstack(&attr, stacks + i * distance, stack_size),
				 0);
		assert_int_equal(pthread_create(&thread, &attr, count_one_arc, NULL), 0);
		pthread_join(thread, NULL);
		pthread_attr_destroy(&attr);
	}
	profil__arcs_count(NULL);
	munmap(stacks, THREADS * distance);
	for (size_t i = 1; i < (size_t)arcs->limit << arcs->shard_bits; i += arcs->limit) {
		assert_int_equal((uintptr_t)&arcs->counts[i - 1] % 64, 0);
		used += gmon_count_value(&arcs->counts[i]) == ROUNDS;
	}
	assert_int_equal(used, THREADS);
	assert_int_equal(gmon_arcs_calls(arcs, 1), THREADS * ROUNDS);
	profil__arcs_open(&range);
	assert_int_equal(gmon_arcs_calls(arcs, 1), 0);
}

/* --- gmon.out --- */

/* The contents of a file, summed up as readers do. */
struct contents {
	uint64_t cells[8192];
	uint64_t calls;
	unsigned int records, arcs, rate;
};

/* Reads a histogram record behind its tag: its range begins at address 0x1000. */
static void read_histogram(FILE *in, struct contents *c)
{
	struct gmon_hist_hdr header;
	uintptr_t low, high;
	uint32_t count;
	uint16_t cell;

	assert_int_equal(fread(&header, sizeof(header), 1, in), 1);
	memcpy(&low, header.low_pc, sizeof(low));
	memcpy(&high, header.high_pc, sizeof(high));
	memcpy(&count, header.hist_size, sizeof(count));
	memcpy(&c->rate, header.prof_rate, sizeof(c->rate));
	assert_string_equal(header.dimen, "seconds");
	assert_int_equal(header.dimen_abbrev, 's');
	assert_int_equal(high - low, count * 4);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(fread(&cell, sizeof(cell), 1, in), 1);
		c->cells[(low - 0x1000) / 4 + i] += cell;
	}
	c->records++;
}

static void read_arc(FILE *in, struct contents *c)
{
	struct gmon_cg_arc_record record;
	uintptr_t from, self;
	uint32_t count;

	assert_int_equal(fread(&record, sizeof(record), 1, in), 1);
	memcpy(&from, record.from_pc, sizeof(from));
	memcpy(&self, record.self_pc, sizeof(self));
	memcpy(&count, record.count, sizeof(count));
	assert_int_equal(from, 0x1010);
	assert_int_equal(self, 0x1100);
	c->calls += count;
	c->arcs++;
}

static struct contents *read_file(const char *path)
{
	struct contents *c = calloc(1, sizeof(*c));
	FILE *in = fopen(path, "r");
	struct gmon_hdr header;
	int tag;

	assert_non_null(c);
	assert_non_null(in);
	assert_int_equal(fread(&header, sizeof(header), 1, in), 1);
	assert_memory_equal(&header, "gmon\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", sizeof(header));
	while ((tag = getc(in)) != EOF)
		if (tag == GMON_TAG_TIME_HIST)
			read_histogram(in, c);
		else if (tag == GMON_TAG_CG_ARC)
			read_arc(in, c);
		else
			fail_msg("tag %d", tag);
	fclose(in);
	return c;
}

/* Creates a file in the temporary directory. Returns its name; the caller frees it. */
static char *write_file(const struct gmon_histogram *h, const struct gmon_arcs *arcs)
{
	const char *directory = getenv("TMPDIR");
	char *path;
	int fd;

	assert_true(asprintf(&path, "%s/test_gmon.XXXXXX", directory ? directory : "/tmp") > 0);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(profil__gmon_write(fd, h, arcs), 0);
	close(fd);
	return path;
}

static void test_write(void **state)
{
	static const uint64_t some[] = { 1, 65534, 65535, 65536, 131070, 131071, 200000 };
	struct gmon_range range = range_of(0x51000, 8000 * 4);
	struct gmon_arcs *arcs;
	struct gmon_histogram h;
	struct contents *c;
	char *path;

	(void)state;
	range.load_bias = 0x50000;
	range.image_low = 0x50000;
	range.image_high = 0x60000;
	arcs = profil__arcs_open(&range);
	assert_non_null(arcs);
	assert_int_equal(profil__histogram_open(&h, &range), 0);
	assert_int_equal(h.scale, 0x8000);
	assert_int_equal(h.cell_count, 8000);
	h.hz = 999;

	/* Without counts there is one empty record. */
	path = write_file(&h, arcs);
	c = read_file(path);
	assert_int_equal(c->records, 1);
	assert_int_equal(c->arcs, 0);
	assert_int_equal(c->rate, 999);
	unlink(path);
	free(path);
	free(c);

	profil__arcs_count(arcs);
	__mcount_internal(0x51010, 0x51100);
	__mcount_internal(0x51010, 0x61100); /* in another image */
	profil__arcs_count(NULL);
	only_count(arcs, 1)->wraps = 2;
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		h.counts[2000 + i * 7] = some[i];
	h.counts[7999] = 5;
	path = write_file(&h, arcs);
	c = read_file(path);
	for (size_t i = 0; i < h.cell_count; i++)
		assert_int_equal(c->cells[i], h.counts[i]);
	assert_int_equal(c->records, 4); /* of the whole range, for the largest count */
	assert_true(c->calls == (2ULL << 32) + 1);
	assert_int_equal(c->arcs, 3);
	unlink(path);
	free(path);
	free(c);
	profil__histogram_close(&h);
}

static void test_write_error(void **state)
{
	const struct gmon_range range = range_of(0x71000, 0x1000);
	struct gmon_arcs *arcs = profil__arcs_open(&range);
	int fd = open("/dev/full", O_WRONLY);
	struct gmon_histogram h;

	(void)state;
	assert_non_null(arcs);
	assert_int_equal(profil__histogram_open(&h, &range), 0);
	assert_int_equal(profil__gmon_write(fd, &h, arcs), -ENOSPC);
	assert_int_equal(profil__gmon_write(-1, &h, arcs), -EBADF);
	close(fd);
	profil__histogram_close(&h);
}

/* More code than cells of 4 bytes can cover. */
static void test_large_range(void **state)
{
	const struct gmon_range range = range_of(0x10000007, 100 << 20);
	struct gmon_histogram h;

	(void)state;
	assert_int_equal(profil__histogram_open(&h, &range), 0);
	assert_int_equal(h.scale, 0x2000);
	assert_int_equal(h.range.low, 0x10000000);
	assert_int_equal(h.range.high, 0x10000010 + (100 << 20));
	assert_int_equal(h.cell_count, (100 << 20) / 16 + 1);
	profil__histogram_close(&h);
}

/* --- gprof --- */

static int find_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	*(uintptr_t *)bias = info->dlpi_addr;
	return 1; /* the program itself is the first */
}

/* Functions for gprof to find. */
__attribute__((noinline, aligned(16))) void one_function(void);
__attribute__((noinline, aligned(16))) void two_function(void);

void one_function(void)
{
	__asm__ volatile(".skip 64, 0x90");
}

void two_function(void)
{
	__asm__ volatile(".skip 64, 0x90");
}

/* The self seconds that gprof prints of a function. */
static double seconds_of(const char *path, const char *function)
{
	char command[512], line[512], name[64];
	double seconds = -1, percent, sum, own;
	FILE *out;

	snprintf(command, sizeof(command), "gprof -b -p /proc/%d/exe %s", getpid(), path);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out))
		if (sscanf(line, "%lf %lf %lf %63s", &percent, &sum, &own, name) == 4 &&
		    strcmp(name, function) == 0)
			seconds = own;
	assert_int_equal(pclose(out), 0);
	return seconds;
}

/* Counts of more than 16 bits, in functions next to each other: gprof adds up the records. */
static void test_gprof(void **state)
{
	uintptr_t one = (uintptr_t)one_function, two = (uintptr_t)two_function;
	struct gmon_range range = range_of(0, 0);
	struct gmon_histogram h;
	struct gmon_arcs *arcs;
	char *path;

	(void)state;
	if (system("gprof --version >/dev/null 2>&1"))
		skip();
	range.low = one < two ? one : two;
	range.high = (one < two ? two : one) + 16;
	dl_iterate_phdr(find_bias, &range.load_bias);
	arcs = profil__arcs_open(&range);
	assert_non_null(arcs);
	assert_int_equal(profil__histogram_open(&h, &range), 0);
	h.hz = 1000;
	h.counts[(one - h.range.low) / 4] = 1000000;
	h.counts[(one - h.range.low) / 4 + 1] = 234000;
	h.counts[(two - h.range.low) / 4] = 65536000;
	path = write_file(&h, arcs);
	assert_true(seconds_of(path, "one_function") == 1234);
	assert_true(seconds_of(path, "two_function") == 65536);
	unlink(path);
	free(path);
	profil__histogram_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arcs),	    cmocka_unit_test(test_many_calls),
		cmocka_unit_test(test_full),	    cmocka_unit_test(test_threads),
		cmocka_unit_test(test_shards),	    cmocka_unit_test(test_write),
		cmocka_unit_test(test_write_error), cmocka_unit_test(test_large_range),
		cmocka_unit_test(test_gprof),
	};

	return cmocka_run_group_tests_name("gmon", tests, NULL, NULL);
}
