// SPDX-License-Identifier: GPL-2.0-only
/* The parts of capture that need no kernel: lists, periods, counts, processes and mappings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/sample.h"
#include "capture/counts.h"
#include "capture/cpus.h"
#include "capture/image.h"
#include "capture/origin.h"
#include "capture/events.h"
#include "capture/process.h"
#include "capture/resolve.h"
#include "capture/snapshot.h"
#include "util/clock.h"

/* --- lists of CPUs --- */

static struct scripts no_scripts;

static int append_cpu(int cpu, void *text)
{
	sprintf((char *)text + strlen(text), "%d ", cpu);
	return 0;
}

static int stop_at_two(int cpu, void *context)
{
	(void)context;
	return cpu == 2 ? 42 : 0;
}

static void test_cpus(void **state)
{
	char text[256] = "";

	(void)state;
	assert_int_equal(cpus_each("0-2,8,10-11\n", append_cpu, text), 0);
	assert_string_equal(text, "0 1 2 8 10 11 ");
	text[0] = '\0';
	assert_int_equal(cpus_each("5", append_cpu, text), 0);
	assert_string_equal(text, "5 ");
	assert_int_equal(cpus_each("0-3", stop_at_two, NULL), 42);
	assert_int_equal(cpus_each("3-1", append_cpu, text), -EINVAL);
	assert_int_equal(cpus_each("a", append_cpu, text), -EINVAL);
	assert_int_equal(cpus_each("1-", append_cpu, text), -EINVAL);
	assert_int_equal(cpus_each("1;2", append_cpu, text), -EINVAL);
	assert_int_equal(cpus_each("-1", append_cpu, text), -EINVAL);
}

/* --- periods --- */

/* Close to the requested frequency, and not in step with the scheduler's tick, if that is known. */
static void test_periods(void **state)
{
	static const unsigned int asked[] = { 1, 10, 50, 99, 100, 250, 997, 1000, 4999, 10000 };
	static const uint64_t ticks[] = { 10000000, 4000000, 3333333, 1000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
		for (size_t k = 0; k < 4; k++) {
			uint64_t period = period_choose(asked[i], ticks[k]);
			unsigned int parts = 16, met = 0;

			assert_in_range(period, NS_PER_S / asked[i] / 1000 * 995,
					NS_PER_S / asked[i] / 1000 * 1005);
			for (unsigned int n = 0; n < 256 || n < asked[i]; n++)
				met |= 1U << n * period % ticks[k] * parts / ticks[k];
			assert_int_equal(met, (1 << parts) - 1);
		}
	assert_int_equal(period_choose(100, 0), 10000000);
	assert_int_equal(period_choose(99, 4000000), 10101010);
}

/* --- ids --- */

static void test_id(void **state)
{
	unsigned int most = (1U << SAMPLE_PID_BITS) - 1;
	unsigned long long id = sample_id_make(0x12345678, most, most - 1);

	(void)state;
	assert_int_equal(sample_id_tgid(id), most);
	assert_int_equal(sample_id_tid(id), most - 1);
	assert_int_equal(sample_id_exec(id), 0x12345678 % (1 << SAMPLE_EXEC_BITS));
	assert_true(id & SAMPLE_ID_VALID);
	assert_false(id & SAMPLE_ID_KERNEL);
	assert_int_not_equal(sample_id_make(0, 0, 0), 0);
}

/* --- counts --- */

static struct sample make_sample(uint64_t pc, uint64_t id, uint64_t count)
{
	return (struct sample){ .pc = pc, .id = id, .first_ns = 100 - count, .count = count };
}

static void add_sample(struct counts *counts, uint64_t pc, uint64_t id, uint64_t first_ns,
		       uint64_t count)
{
	struct counted sample = {
		.id = id,
		.first_ns = first_ns,
		.count = count,
		.user_depth = 1,
		.cpu = COUNTED_NO_CPU,
	};

	assert_int_equal(counts_add(counts, &sample, &pc, &(uint32_t){ 0 }), 0);
}

/* One tick of a sample at each of the times. */
static void add_ticks(struct counts *counts, uint64_t pc, uint64_t id, const uint64_t *times,
		      size_t count)
{
	struct counted tick = {
		.id = id,
		.count = 1,
		.waiting = 5,
		.user_depth = 1,
		.cpu = COUNTED_NO_CPU,
	};

	for (size_t i = 0; i < count; i++) {
		tick.first_ns = times[i];
		assert_int_equal(counts_add_tick(counts, &tick, &pc), 0);
	}
}

/* Samples of the same pc are summed; incomplete entries are skipped. */
static void test_counts_table(void **state)
{
	uint64_t id = sample_id_make(1, 10, 11), kernel;
	struct sample_bucket table[] = {
		{ .ticks = 3, .waiting = { 10 }, .samples = { make_sample(0x1000, id, 3) } },
		{ .waiting = { 2, 6 },
		  .samples = { make_sample(0x1000, id, 4),
			       make_sample(0x1000, id | SAMPLE_ID_KERNEL, 5),
			       { .pc = 0x2000 } } }, /* claimed, its id not written yet */
	};
	uint32_t numbers[2 * SAMPLE_PER_BUCKET];
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(counts_add_table(&counts, table, 2, numbers), 0);
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts.samples[0].count, 7);
	assert_int_equal(counts.samples[0].first_ns, 96);
	assert_int_equal(counts.samples[0].waiting, 12);
	assert_int_equal(counts.samples[1].count, 5);
	assert_int_equal(counts.samples[1].waiting, 6);
	assert_int_equal(numbers[0], 0);
	assert_int_equal(numbers[1], TICK_REMOVED);
	assert_int_equal(numbers[SAMPLE_PER_BUCKET], 0);
	assert_int_equal(numbers[SAMPLE_PER_BUCKET + 1], 1);
	assert_int_equal(numbers[SAMPLE_PER_BUCKET + 2], TICK_REMOVED);
	assert_int_equal(counts_sum(&counts, &kernel), 12);
	assert_int_equal(kernel, 5);
	counts_free(&counts);
}

/* What several sources count of one place is one sample. */
static void test_counts_sum(void **state)
{
	uint64_t id = sample_id_make(1, 10, 11);
	struct sample_bucket table[] = { { .samples = { make_sample(0x1000, id, 4),
							make_sample(0x2000, id, 1) } } };
	uint32_t numbers[SAMPLE_PER_BUCKET];
	struct counts counts = { 0 };

	(void)state;
	add_sample(&counts, 0x1000, id, 50, 10);
	assert_int_equal(counts_add_table(&counts, table, 1, numbers), 0);
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts.samples[0].count, 14);
	assert_int_equal(counts.samples[0].first_ns, 50);
	assert_int_equal(counts.samples[1].count, 1);
	counts_free(&counts);
}

/* --- stacks --- */

static void add_stack(struct counts *counts, uint64_t id, const uint64_t *pcs, uint32_t kernel,
		      uint32_t user)
{
	struct counted stack = { .id = id, .count = 1, .kernel_depth = kernel, .user_depth = user };

	assert_int_equal(counts_add(counts, &stack, pcs, &(uint32_t){ 0 }), 0);
}

/* Stacks with the same frames on the same side, in the same thread and mode, are one. */
static void test_stacks(void **state)
{
	const uint64_t pcs[] = { 0x1000, 0x2000, 0x3000 };
	uint64_t id = sample_id_make(1, 10, 11);
	struct counts counts = { 0 };

	(void)state;
	add_stack(&counts, id, pcs, 0, 3);
	add_stack(&counts, id, pcs, 1, 2);
	add_stack(&counts, id, pcs, 0, 2);
	add_stack(&counts, id, pcs + 1, 0, 2);
	add_stack(&counts, id | SAMPLE_ID_KERNEL, pcs, 0, 3);
	assert_int_equal(counts.count, 5);
	add_stack(&counts, id, pcs, 1, 2);
	assert_int_equal(counts.count, 5);
	assert_int_equal(counts.samples[1].count, 2);
	counts_free(&counts);
}

/* Waits have no frame where the kernel walked no stack; those may be the first that come. */
static void test_stacks_without_frames(void **state)
{
	const uint64_t pc = 0x1000;
	uint64_t id = sample_id_make(1, 10, 11);
	struct counts counts = { 0 };

	(void)state;
	add_stack(&counts, id, &pc, 0, 0);
	add_stack(&counts, id, &pc, 0, 0);
	assert_int_equal(counts.count, 1);
	assert_int_equal(counts.samples[0].count, 2);
	add_stack(&counts, id, &pc, 0, 1);
	add_stack(&counts, id, &pc, 0, 0);
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts.samples[0].count, 3);
	counts_free(&counts);
}

/* A frame that cannot be an address of user space ends the stack; the leaf stays. */
static void test_stacks_with_invalid_frames(void **state)
{
	const uint64_t zero[] = { 0x1000, 0x2000, 0, 0x3000 };
	const uint64_t kernel[] = { 0xffffffff81000000, 0x1000, 0xffffffff81000000 };
	const uint64_t null[] = { 0, 0x2000 };
	struct counts counts = { 0 };

	(void)state;
	add_stack(&counts, SAMPLE_ID_VALID, zero, 0, 4);
	add_stack(&counts, SAMPLE_ID_VALID, kernel, 1, 2);
	add_stack(&counts, SAMPLE_ID_VALID, null, 0, 2);
	assert_int_equal(counts.samples[0].user_depth, 2);
	assert_int_equal(counts.samples[1].user_depth, 1);
	assert_int_equal(counts.samples[1].kernel_depth, 1);
	assert_int_equal(counts.samples[2].user_depth, 2);
	counts_free(&counts);
}

/* So many that hashes collide: the index keeps 32 bits of them. */
static void test_stacks_collide(void **state)
{
	const uint64_t many = 300000;
	struct counts counts = { 0 };
	uint64_t kernel;

	(void)state;
	for (uint64_t round = 0; round < 2; round++)
		for (uint64_t i = 0; i < many; i++)
			add_stack(&counts, SAMPLE_ID_VALID,
				  (const uint64_t[]){ 0x1000 + i % 1000, 0x2000 + i / 1000 }, 0, 2);
	assert_int_equal(counts.count, many);
	assert_int_equal(counts_sum(&counts, &kernel), 2 * many);
	for (uint64_t i = 0; i < many; i++)
		assert_int_equal(counts.samples[i].count, 2);
	counts_free(&counts);
}

/* The kernel's table: an entry's frames in the arena, once its offset is set. */
static void test_stacks_table(void **state)
{
	struct stack_chunk *arena = calloc(2, sizeof(*arena));
	struct stack *first = (struct stack *)&arena[0].words[1];
	struct stack *last = (struct stack *)&arena[0].words[STACK_CHUNK_WORDS - 1];
	struct stack_bucket buckets[1] = { { .entries = {
						     { 7, 1, 100, 3 },
						     { 7, STACK_CHUNK_WORDS - 1, 90, 2 },
						     { 9, 0, 0, 0 }, /* being written */
					     } } };
	uint32_t numbers[SAMPLE_PER_BUCKET];
	struct counts counts = { 0 };
	uint64_t kernel;

	(void)state;
	assert_non_null(arena);
	*first =
		(struct stack){ .id = SAMPLE_ID_VALID, .user_depth = 2, .pcs = { 0x1000, 0x2000 } };
	*last = (struct stack){ .id = SAMPLE_ID_VALID,
				.kernel_depth = 1,
				.user_depth = 1,
				.end = UNWIND_IN_GAP,
				.by_frame_pointer = 1,
				.pcs = { 0xffffffff81000000, 0x2000 } };
	assert_int_equal(counts_add_stacks(&counts, buckets, 1, arena, numbers), 0);
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts_sum(&counts, &kernel), 5);
	assert_int_equal(counts.samples[1].kernel_depth, 1);
	assert_int_equal(counts.pcs[counts.samples[1].first_pc + 1], 0x2000);
	assert_int_equal(counts.samples[0].end, UNWIND_BY_KERNEL);
	assert_int_equal(counts.samples[1].end, UNWIND_IN_GAP);
	assert_int_equal(counts.samples[1].by_frame_pointer, 1);
	counts_free(&counts);
	free(arena);
}

/* --- control groups --- */

static void check_group(const char *text, const char *expected)
{
	size_t size = 0;
	const char *path = origin_group(text, &size);

	if (!expected) {
		assert_null(path);
		return;
	}
	assert_non_null(path);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(path, expected, size);
}

static void test_control_groups(void **state)
{
	(void)state;
	check_group("0::/system.slice/x.service\n", "/system.slice/x.service");
	check_group("0::/\n", "/");
	check_group("0::/", "/");
	check_group("", NULL);
	check_group("nonsense\n", NULL);
	check_group("0::/a:b:c/d e\n", "/a:b:c/d e");
	check_group("0::/a/b (deleted)\n", "/a/b");
	/* cgroup v1, where systemd is, and where it is not */
	check_group("9:name=systemd:/user.slice\n4:memory:/m\n1:cpu,cpuacct:/c\n", "/user.slice");
	check_group("4:memory:/m\n9:name=systemd:/user.slice\n0::/\n", "/user.slice");
	check_group("9:name=systemd:/user.slice\n4:memory:/m\n0::/two\n", "/two");
	check_group("9:name=systemd:/\n8:pids:/\n4:memory:/m\n3:cpuset:/n\n0::/\n", "/m");
	check_group("9:name=systemd:/\n8:pids:/\n", "/");
}

/* --- address spaces in time --- */

static struct sideband_record map_record(pid_t pid, uint64_t time, uint64_t start, uint64_t limit,
					 const char *name)
{
	return (struct sideband_record){
		.type = SIDEBAND_MMAP,
		.time_ns = time,
		.pid = pid,
		.tid = pid,
		.start = start,
		.limit = limit,
		.device = 1,
		.inode = 1234,
		.name = name,
	};
}

/* No process has this number, so that nothing is read from /proc. */
#define NO_PROCESS 4194303

static const char *image_at(const struct process_table *table, uint64_t when, uint64_t pc)
{
	struct process *process = process_find(table, NO_PROCESS);
	const struct capture_mapping *mapping =
		space_mapping_at(process_space_at(process, when), pc, when).mapping;

	return mapping ? table->images[mapping->image].path : "";
}

static void apply(struct process_table *table, const struct sideband_record *record)
{
	assert_int_equal(process_record(table, record), 0);
}

/* A library is replaced by another at the same address; then the process execs. */
static void test_spaces(void **state)
{
	struct process_table table = { 0 };
	struct sideband_record first = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/lib/first");
	struct sideband_record second = map_record(NO_PROCESS, 200, 0x1000, 0x3000, "/lib/second");
	struct sideband_record exec = { SIDEBAND_EXEC, .time_ns = 300, .pid = NO_PROCESS,
					.tid = NO_PROCESS, .name = "new" };
	struct sideband_record third = map_record(NO_PROCESS, 310, 0x1000, 0x2000, "/bin/new");

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &first);
	apply(&table, &first); /* recorded twice: kept once */
	assert_int_equal(process_space(process_find(&table, NO_PROCESS))->count, 1);
	apply(&table, &second);
	apply(&table, &exec);
	apply(&table, &third);
	assert_string_equal(image_at(&table, 150, 0x1800), "/lib/first");
	assert_string_equal(image_at(&table, 250, 0x1800), "/lib/second");
	assert_string_equal(image_at(&table, 250, 0x2800), "/lib/second");
	assert_string_equal(image_at(&table, 350, 0x1800), "/bin/new");
	assert_string_equal(image_at(&table, 350, 0x2800), "");
	/* earlier than all mappings: the first one */
	assert_string_equal(image_at(&table, 50, 0x1800), "/lib/first");
	assert_string_equal(thread_name_at(&table, NO_PROCESS, NO_PROCESS, UINT64_MAX).comm, "new");
	process_table_free(&table);
}

/* A child has its parent's mappings; other processes and, without inherit, children are ignored. */
static void test_fork(void **state)
{
	struct process_table table = { .inherit = true };
	struct sideband_record map = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/bin/parent");
	struct sideband_record fork = { SIDEBAND_FORK, .time_ns = 200, .pid = NO_PROCESS - 1,
					.tid = NO_PROCESS - 1, .parent = NO_PROCESS };
	struct sideband_record stranger = map_record(NO_PROCESS - 7, 200, 0x1000, 0x2000, "/bin/x");
	struct process *child;

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &map);
	apply(&table, &fork);
	apply(&table, &stranger);
	child = process_find(&table, NO_PROCESS - 1);
	assert_non_null(child);
	assert_non_null(space_mapping_at(process_space(child), 0x1234, 300).mapping);
	assert_null(process_find(&table, NO_PROCESS - 7));
	table.inherit = false;
	fork.pid = NO_PROCESS - 2;
	apply(&table, &fork);
	assert_null(process_find(&table, NO_PROCESS - 2));
	process_table_free(&table);
}

/* A child's mapping replaces an inherited one only from its time on. */
static void test_child_remaps(void **state)
{
	struct process_table table = { .inherit = true };
	struct sideband_record map = map_record(NO_PROCESS - 1, 100, 0x1000, 0x2000, "/lib/parent");
	struct sideband_record fork = {
		SIDEBAND_FORK,	   .time_ns = 200,	     .pid = NO_PROCESS,
		.tid = NO_PROCESS, .parent = NO_PROCESS - 1, .parent_tid = NO_PROCESS - 1
	};
	struct sideband_record later = map_record(NO_PROCESS, 300, 0x1000, 0x2000, "/lib/child");

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS - 1, 0), 0);
	apply(&table, &map);
	apply(&table, &fork);
	apply(&table, &later);
	assert_string_equal(image_at(&table, 250, 0x1800), "/lib/parent");
	assert_string_equal(image_at(&table, 350, 0x1800), "/lib/child");
	process_table_free(&table);
}

/* A pid that is used again: each process keeps its own mappings. */
static void test_pid_reuse(void **state)
{
	struct process_table table = { .everyone = true };
	struct sideband_record first = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/bin/first");
	struct sideband_record fork = { SIDEBAND_FORK,	   .time_ns = 200, .pid = NO_PROCESS,
					.tid = NO_PROCESS, .parent = 1,	   .parent_tid = 1 };
	struct sideband_record second = map_record(NO_PROCESS, 210, 0x1000, 0x2000, "/bin/second");

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &first);
	apply(&table, &fork);
	apply(&table, &second);
	assert_int_equal(table.count, 2);
	assert_ptr_equal(process_at(&table, NO_PROCESS, 150), &table.processes[0]);
	assert_ptr_equal(process_at(&table, NO_PROCESS, 250), &table.processes[1]);
	assert_ptr_equal(process_find(&table, NO_PROCESS), &table.processes[1]);
	assert_string_equal(image_at(&table, 250, 0x1800), "/bin/second");
	process_table_free(&table);
}

/* Memory of a JIT compiler that grows piece by piece becomes one mapping. */
static void test_anonymous(void **state)
{
	struct process_table table = { 0 };
	struct address_space *space;

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		struct sideband_record record =
			map_record(NO_PROCESS, 100 + i, 0x100000 + i * 0x1000,
				   0x102000 + i * 0x1000, "//anon");

		apply(&table, &record);
	}
	space = process_space(process_find(&table, NO_PROCESS));
	assert_int_equal(space->count, 1);
	assert_int_equal(space->mappings[0].start, 0x100000);
	assert_int_equal(space->mappings[0].limit, 0x102000 + 999 * 0x1000);
	assert_string_equal(image_at(&table, 2000, 0x100000 + 500 * 0x1000), "[anon]");
	process_table_free(&table);
}

/* The samples as a function appends them to a text, which is valid until the next call. */
static const char *resolved(const struct counts *counts, struct process_table *table,
			    int (*append)(const struct capture_sample *sample, void *text))
{
	static char text[256];

	*text = '\0';
	assert_int_equal(
		resolve_each(counts, CAPTURE_TICKS, table, &no_scripts, false, 0, append, text), 0);
	return text;
}

/* Appends " IMAGE:COUNT", and "?" for samples in doubt. */
static int collect_images(const struct capture_sample *sample, void *context)
{
	snprintf((char *)context + strlen(context), 64, "%d:%u%s ",
		 sample->frames->mapping ? (int)sample->frames->mapping->image : -1,
		 (unsigned int)sample->ticks.count, sample->in_doubt ? "?" : "");
	return 0;
}

/* A process runs two programs, one after the other: samples of each are in its own mappings. */
static void test_programs_of_one_process(void **state)
{
	struct process_table table = { 0 };
	struct sideband_record old = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/bin/old");
	struct sideband_record exec = { SIDEBAND_EXEC, .time_ns = 300, .pid = NO_PROCESS,
					.tid = NO_PROCESS, .name = "new" };
	struct sideband_record fresh = map_record(NO_PROCESS, 310, 0x1000, 0x2000, "/bin/new");
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &old);
	apply(&table, &exec);
	apply(&table, &fresh);
	add_sample(&counts, 0x1800, sample_id_make(5, NO_PROCESS, NO_PROCESS), 150, 2);
	add_sample(&counts, 0x1800, sample_id_make(6, NO_PROCESS, NO_PROCESS), 350, 3);
	assert_string_equal(resolved(&counts, &table, collect_images), "0:2? 1:3 ");
	counts_free(&counts);
	process_table_free(&table);
}

/* Addresses where another file was mapped later: whatever the order of the requests. */
static void test_mapped_over(void **state)
{
	static const uint64_t times[] = { 250, 150, 160, 50, 260, 199, 200, 40 };
	struct process_table table = { 0 };
	struct sideband_record old = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/bin/old");
	struct sideband_record fresh = map_record(NO_PROCESS, 200, 0x1000, 0x2000, "/bin/new");
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &old);
	apply(&table, &fresh);
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		add_sample(&counts, 0x1800, sample_id_make(5, NO_PROCESS, i + 1), times[i], 1);
	assert_string_equal(resolved(&counts, &table, collect_images),
			    "1:1 0:1? 0:1? 0:1? 1:1 0:1? 1:1 0:1? ");
	counts_free(&counts);
	process_table_free(&table);
}

static int collect_waiting(const struct capture_sample *sample, void *context)
{
	snprintf((char *)context + strlen(context), 64, "%u ",
		 (unsigned int)sample->ticks.runnable);
	return 0;
}

/*
 * A sample whose ticks came at several times, one of them at an unknown time. What waited is
 * divided in proportion to the ticks; the parts add up.
 */
static void test_ticks_by_time(void **state)
{
	static const uint64_t times[] = { 250, 150, 160, 50, 260, 199, 200, 40 };
	const uint64_t pc = 0x1800, id = sample_id_make(5, NO_PROCESS, NO_PROCESS);
	struct process_table table = { 0 };
	struct sideband_record old = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/bin/old");
	struct sideband_record fresh = map_record(NO_PROCESS, 200, 0x1000, 0x2000, "/bin/new");
	/* Read again after records were lost: it was mapped between 220 and 255. */
	struct sideband_record again = map_record(NO_PROCESS, 255, 0x1000, 0x2000, "/bin/again");
	struct counts counts = { 0 };

	(void)state;
	again.maybe_ns = 220;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &old);
	apply(&table, &fresh);
	apply(&table, &again);
	add_ticks(&counts, pc, id, times, sizeof(times) / sizeof(*times));
	add_sample(&counts, pc, id, 150, 1);
	assert_int_equal(counts_group_ticks(&counts), 0);
	assert_string_equal(resolved(&counts, &table, collect_images),
			    "0:2 0:3 1:1 1:1? 2:1 0:1? ");
	assert_string_equal(resolved(&counts, &table, collect_waiting),
			    "8 14 4 5 4 5 "); /* 40 in all */
	counts_free(&counts);
	process_table_free(&table);
}

/*
 * An exec whose record was lost, or comes after /proc has shown the new program: between two times
 * a sample may be of either program, until the record says when it was.
 */
static void test_exec_in_doubt(void **state)
{
	static const uint64_t ticks[][2] = {
		{ 0x1800, 150 }, { 0x1800, 250 }, { 0x3800, 250 }, { 0x1800, 350 }, { 0x3800, 350 }
	};
	struct process_table table = { 0 };
	struct sideband_record old = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/bin/old");
	struct sideband_record exec = { SIDEBAND_EXEC,	   .time_ns = 300,    .maybe_ns = 200,
					.pid = NO_PROCESS, .tid = NO_PROCESS, .name = "new" };
	struct sideband_record fresh = map_record(NO_PROCESS, 300, 0x3000, 0x4000, "/bin/new");
	struct counts counts = { 0 };
	struct process *process;

	(void)state;
	fresh.maybe_ns = 200;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &old);
	apply(&table, &exec);
	apply(&table, &fresh);
	for (size_t i = 0; i < sizeof(ticks) / sizeof(*ticks); i++)
		add_ticks(&counts, ticks[i][0], sample_id_make(5, NO_PROCESS, i + 1), &ticks[i][1],
			  1);
	assert_int_equal(counts_group_ticks(&counts), 0);
	assert_string_equal(resolved(&counts, &table, collect_images), "0:1 0:1? 1:1? -1:1 1:1 ");

	process = process_find(&table, NO_PROCESS);
	process_space(process)->read_ns = 320;
	exec.time_ns = 260;
	exec.maybe_ns = 0;
	apply(&table, &exec);
	assert_int_equal(process->count, 2);
	assert_string_equal(resolved(&counts, &table, collect_images), "0:1 0:1 -1:1 -1:1 1:1 ");
	counts_free(&counts);
	process_table_free(&table);
}

/* Appends " COMM:COUNT", and "?" for samples in doubt. */
static int collect_names(const struct capture_sample *sample, void *context)
{
	snprintf((char *)context + strlen(context), 64, "%s:%u%s ", sample->comm,
		 (unsigned int)sample->ticks.count, sample->in_doubt ? "?" : "");
	return 0;
}

/* A thread's samples have the name that it had then. */
static void test_names_by_time(void **state)
{
	static const uint64_t times[] = { 50, 150, 160, 350, 360, 450, 550, 650 };
	static const struct sideband_record records[] = {
		{ SIDEBAND_COMM, .time_ns = 100, .pid = NO_PROCESS, .tid = NO_PROCESS,
		  .name = "two" },
		{ SIDEBAND_EXEC, .time_ns = 200, .pid = NO_PROCESS, .tid = NO_PROCESS,
		  .name = "sh" },
		{ SIDEBAND_COMM, .time_ns = 400, .pid = NO_PROCESS, .tid = NO_PROCESS,
		  .name = "two" },
		{ SIDEBAND_EXIT, .time_ns = 500, .pid = NO_PROCESS, .tid = NO_PROCESS },
	};
	const uint64_t pc = 0x1800, id = sample_id_make(5, NO_PROCESS, NO_PROCESS);
	struct process_table table = { .everyone = true };
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	assert_int_equal(process_name_thread(&table, NULL, NO_PROCESS, "one", 0, 0), 0);
	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++)
		apply(&table, &records[i]);
	/* Another process gets the number. */
	assert_int_equal(process_add(&table, NO_PROCESS, 600), 0);
	assert_int_equal(process_name_thread(&table, NULL, NO_PROCESS, "another", 600, 600), 0);
	add_ticks(&counts, pc, id, times, sizeof(times) / sizeof(*times));
	assert_int_equal(counts_group_ticks(&counts), 0);
	assert_string_equal(resolved(&counts, &table, collect_names),
			    "one:1 two:2 sh:2 two:1 another:1 another:1 ");
	counts_free(&counts);
	process_table_free(&table);
}

/* The records of a new name, of a process's end and of the next one's begin were lost. */
static void test_names_read_again(void **state)
{
	const struct process later = { .begin_ns = 400 };
	static const uint64_t times[] = { 150, 250, 350, 405, 450, 550 };
	const pid_t tid = NO_PROCESS - 1;
	const uint64_t pc = 0x1800, id = sample_id_make(5, NO_PROCESS, tid);
	struct process_table table = { .everyone = true };
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	assert_int_equal(process_name_thread(&table, NULL, tid, "one", 0, 0), 0);
	assert_int_equal(process_name_thread(&table, NULL, tid, "two", 200, 300), 0);
	assert_int_equal(process_add(&table, NO_PROCESS, 400), 0);
	process_find(&table, NO_PROCESS)->sure_ns = 410;
	assert_int_equal(process_name_thread(&table, &later, tid, "other", 300, 500), 0);
	assert_int_equal(process_name_thread(&table, &later, tid, "other", 500, 600), 0);
	add_ticks(&counts, pc, id, times, sizeof(times) / sizeof(*times));
	assert_int_equal(counts_group_ticks(&counts), 0);
	assert_string_equal(resolved(&counts, &table, collect_names),
			    "one:1 one:1? two:1 other:1? other:2 ");
	counts_free(&counts);
	process_table_free(&table);
}

/* A thread with more names than are kept: which it had when is in doubt from then on. */
static void test_too_many_names(void **state)
{
	static const uint64_t times[] = { 5, 10 * THREAD_NAMES_MAX - 5, 10000 };
	const uint64_t pc = 0x1800, id = sample_id_make(5, NO_PROCESS, NO_PROCESS);
	struct process_table table = { .everyone = true };
	struct counts counts = { 0 };
	char name[16];

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	for (int i = 0; i < 3 * THREAD_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		assert_int_equal(
			process_name_thread(&table, NULL, NO_PROCESS, name, 10 * i, 10 * i), 0);
	}
	assert_int_equal(table.thread_count, THREAD_NAMES_MAX + 1);
	add_ticks(&counts, pc, id, times, sizeof(times) / sizeof(*times));
	assert_int_equal(counts_group_ticks(&counts), 0);
	assert_string_equal(resolved(&counts, &table, collect_names),
			    "name0:1 name63:1 name191:1? ");
	counts_free(&counts);
	process_table_free(&table);
}

/* The outermost frames are dropped while they are in no code, if all mappings are known. */
static int collect_depth(const struct capture_sample *sample, void *context)
{
	snprintf((char *)context + strlen(context), 64, "%u/%u ", sample->user_depth,
		 sample->depth);
	return 0;
}

static void test_frames(void **state)
{
	struct process_table table = { 0 };
	struct sideband_record map = map_record(NO_PROCESS, 100, 0x1000, 0x2000, "/bin/program");
	const uint64_t astray[] = { 0xffffffff81000000, 0x1800, 0x1900, 0x9000, 0x9100 };
	const uint64_t moved[] = { 0x1800, 0x9000, 0x9100, 0x1900, 0x9000 };
	const uint64_t at_end[] = { 0x1800, 0x2000 }, unknown[] = { 0x9000, 0x9100 };
	uint64_t id = sample_id_make(5, NO_PROCESS, NO_PROCESS);
	struct counts counts = { 0 };
	char text[256] = "";

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 0), 0);
	apply(&table, &map);
	add_stack(&counts, id, astray, 1, 4);
	add_stack(&counts, id, moved, 0, 5);
	add_stack(&counts, id, at_end, 0, 2); /* behind a call at the end of the code */
	add_stack(&counts, id, unknown, 0, 2);
	assert_string_equal(resolved(&counts, &table, collect_depth), "2/3 4/4 2/2 2/2 ");
	assert_int_equal(resolve_each(&counts, CAPTURE_TICKS, &table, &no_scripts, true, 0,
				      collect_depth, text),
			 0);
	assert_string_equal(text, "4/5 5/5 2/2 2/2 ");
	counts_free(&counts);
	process_table_free(&table);
}

/* A machine with many files, some of one name, and many more mappings. */
static void test_many_images(void **state)
{
	enum {
		IMAGES = 20000,
		MAPPINGS = 200000
	};
	struct process_table table = { 0 };
	const struct process process = { .pid = NO_PROCESS, .uid = UINT32_MAX };
	struct sideband_record record = map_record(NO_PROCESS, 1, 0x1000, 0x2000, NULL);
	char name[64];
	uint32_t image;

	(void)state;
	record.inode = 1;
	record.name = name;
	for (uint32_t i = 0; i < IMAGES; i++) {
		snprintf(name, sizeof(name), "/nowhere/%u", i / 2); /* two files of each name */
		record.inode = 1 + i;
		assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
		assert_int_equal(image, i);
	}
	for (uint32_t i = 0; i < MAPPINGS; i++)
		assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
	assert_int_equal(image, IMAGES - 1);
	record.inode--;
	snprintf(name, sizeof(name), "/nowhere/%u (deleted)", IMAGES / 2 - 1);
	assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
	assert_int_equal(image, IMAGES - 2);
	process_table_free(&table);
}

/*
 * All about a process is in doubt from a gap of the records on, until /proc shows it or its program
 * ends. What it has shown since is sure, but for code that others had the addresses of.
 */
static void test_gaps(void **state)
{
	struct process_table table = { 0 };
	struct sideband_record exec = { SIDEBAND_EXEC, .time_ns = 5000, .pid = NO_PROCESS,
					.tid = NO_PROCESS, .name = "new" };
	struct process *process;

	(void)state;
	assert_int_equal(process_add(&table, NO_PROCESS, 100), 0);
	process = process_find(&table, NO_PROCESS);
	assert_int_equal(snapshot_if_lost(&table, 0, 1000, 1000, 1), 0);
	assert_false(process_gaps_at(&table, process, 5000).doubtful);
	assert_int_equal(snapshot_if_lost(&table, 7, 2000, 2000, 1), 0);
	assert_false(process_gaps_at(&table, process, 900).doubtful);
	assert_int_equal(process_gaps_at(&table, process, 900).until_ns, 1000);
	assert_true(process_gaps_at(&table, process, 1500).doubtful);
	assert_true(process_gaps_at(&table, process, 1500).in_gap);
	assert_int_equal(process_gaps_at(&table, process, 1500).until_ns, 2000);
	assert_true(process_gaps_at(&table, process, 2500).doubtful);
	assert_false(process_gaps_at(&table, process, 2500).in_gap);
	assert_true(process_gaps_at(&table, NULL, 1500).doubtful);
	assert_false(process_gaps_at(&table, NULL, 900).doubtful);
	process->shown_ns = 2100;
	assert_false(process_gaps_at(&table, process, 1500).doubtful);
	assert_true(process_gaps_at(&table, process, 1500).in_gap);
	assert_false(process_gaps_at(&table, process, 2500).doubtful);
	/* It is lost again, and ends unseen; another program is known from its record on. */
	assert_int_equal(snapshot_if_lost(&table, 7, 3000, 3000, 1), 0);
	assert_int_equal(snapshot_if_lost(&table, 8, 4000, 4000, 1), 0);
	assert_false(process_gaps_at(&table, process, 2500).doubtful);
	assert_true(process_gaps_at(&table, process, 3500).doubtful);
	assert_true(process_gaps_at(&table, process, 4500).doubtful);
	apply(&table, &exec);
	process = process_find(&table, NO_PROCESS);
	assert_false(process_gaps_at(&table, process, 5500).doubtful);
	assert_true(process_gaps_at(&table, process, 4500).doubtful);
	process_table_free(&table);
}

/*
 * Of one path, each file is an image: by its number, and by its last change, as it may be written.
 */
static void test_files_of_one_path(void **state)
{
	char path[] = "/tmp/profil-test.XXXXXX", newer[64];
	const struct process process = { .pid = getpid(), .uid = UINT32_MAX };
	struct sideband_record record = map_record(getpid(), 1, 0x1000, 0x2000, path);
	struct process_table table = { 0 };
	int file = mkstemp(path), new_file;
	struct stat old_status, status;
	uint32_t image;

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(fstat(file, &old_status), 0);
	record.device = old_status.st_dev;
	record.inode = old_status.st_ino;
	assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
	assert_int_equal(image, 0);
	snprintf(newer, sizeof(newer), "%s.new", path);
	new_file = open(newer, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(new_file >= 0);
	assert_int_equal(rename(newer, path), 0);
	assert_int_equal(fstat(new_file, &status), 0);
	record.inode = status.st_ino;
	assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
	assert_int_equal(image, 1);
	/* It was written since: one that maps it now has other code. */
	assert_int_equal(write(new_file, "code", 4), 4);
	assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
	assert_int_equal(image, 2);
	assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
	assert_int_equal(image, 2);
	record.inode = old_status.st_ino;
	assert_int_equal(image_of_mapping(&table, &process, &record, &image), 0);
	assert_int_equal(image, 0);
	assert_int_equal(table.image_count, 3);
	unlink(path);
	close(file);
	close(new_file);
	process_table_free(&table);
}

/*
 * Whose file an image gets, of one path and inode: root's for all, a user's for that user's
 * processes alone, also for those that ended before their file could be opened.
 */
static void test_images_of_users(void **state)
{
	enum {
		ROOT = 0,
		USER = 12345,
		OTHER = 12346
	};
	char path[] = "/tmp/profil-test.XXXXXX";
	const struct process living = { .pid = getpid(), .uid = USER },
			     ended = { .pid = NO_PROCESS, .uid = USER },
			     ended_of_other = { .pid = NO_PROCESS, .uid = OTHER },
			     ended_of_root = { .pid = NO_PROCESS, .uid = ROOT };
	struct sideband_record at_living = map_record(getpid(), 0, 0x1000, 0x2000, path),
			       at_ended = map_record(NO_PROCESS, 0, 0x1000, 0x2000, path);
	struct process_table table = { 0 };
	int file = mkstemp(path);
	struct stat status;
	uint32_t image;

	(void)state;
	assert_true(file >= 0);
	if (fchown(file, USER, USER) || fstat(file, &status)) {
		unlink(path);
		skip();
	}
	at_living.device = at_ended.device = status.st_dev;
	at_living.inode = at_ended.inode = status.st_ino;
	/*
	 * The first was not read; the user's file is for it, as only the user's processes map it.
	 */
	assert_int_equal(image_of_mapping(&table, &ended, &at_ended, &image), 0);
	assert_int_equal(image, 0);
	assert_int_equal(table.images[0].fd, -1);
	table.images[0].next_try_ns = 0;
	assert_int_equal(image_of_mapping(&table, &living, &at_living, &image), 0);
	assert_int_equal(image, 0);
	assert_true(table.images[0].fd >= 0);
	assert_int_equal(table.images[0].provider, USER);
	/* Others have another one. */
	assert_int_equal(image_of_mapping(&table, &ended_of_root, &at_ended, &image), 0);
	assert_int_equal(image, 1);
	assert_int_equal(image_of_mapping(&table, &ended_of_other, &at_ended, &image), 0);
	assert_int_equal(image, 1);
	assert_int_equal(image_of_mapping(&table, &ended, &at_ended, &image), 0);
	assert_int_equal(image, 0);
	/* That does not get the user's file, but root's. */
	table.images[1].next_try_ns = 0;
	assert_int_equal(image_of_mapping(&table, &living, &at_living, &image), 0);
	assert_int_equal(image, 0);
	assert_int_equal(table.images[1].fd, -1);
	assert_int_equal(fchown(file, ROOT, ROOT), 0);
	table.images[1].next_try_ns = 0;
	assert_int_equal(image_of_mapping(&table, &living, &at_living, &image), 0);
	assert_int_equal(image, 1);
	assert_true(table.images[1].fd >= 0);
	assert_int_equal(table.images[1].provider, ROOT);
	assert_int_equal(table.image_count, 2);
	process_table_free(&table);
	/* A rejected image that others may have mapped while it was read gets no user's file. */
	table = (struct process_table){ 0 };
	assert_int_equal(image_of_mapping(&table, &living, &at_living, &image), 0);
	assert_int_equal(image, 0);
	assert_int_equal(image_of_mapping(&table, &ended_of_root, &at_ended, &image), 0);
	assert_int_equal(image, 0);
	image_reject(&table, &table.images[0]);
	table.images[0].next_try_ns = 0;
	assert_int_equal(fchown(file, USER, USER), 0);
	assert_int_equal(image_of_mapping(&table, &living, &at_living, &image), 0);
	assert_int_equal(image, 1);
	assert_int_equal(table.images[0].fd, -1);
	unlink(path);
	close(file);
	process_table_free(&table);
}

/* This program is mapped, and its file is open. */
static void test_snapshot(void **state)
{
	struct process_table table = { 0 };
	const struct capture_mapping *mapping;

	(void)state;
	assert_int_equal(snapshot_process(&table, getpid(), 0), 0);
	mapping = space_mapping_at(process_space(process_find(&table, getpid())),
				   (uintptr_t)test_snapshot, 0)
			  .mapping;
	assert_non_null(mapping);
	assert_true(mapping->executable);
	assert_true(table.images[mapping->image].fd >= 0);
	assert_non_null(strstr(table.images[mapping->image].path, "test_capture"));
	assert_string_equal(thread_name_at(&table, getpid(), getpid(), UINT64_MAX).comm,
			    "test_capture");
	process_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_id),
		cmocka_unit_test(test_counts_table),
		cmocka_unit_test(test_periods),
		cmocka_unit_test(test_counts_sum),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_stacks_without_frames),
		cmocka_unit_test(test_stacks_with_invalid_frames),
		cmocka_unit_test(test_stacks_collide),
		cmocka_unit_test(test_stacks_table),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_control_groups),
		cmocka_unit_test(test_spaces),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_child_remaps),
		cmocka_unit_test(test_pid_reuse),
		cmocka_unit_test(test_anonymous),
		cmocka_unit_test(test_programs_of_one_process),
		cmocka_unit_test(test_mapped_over),
		cmocka_unit_test(test_ticks_by_time),
		cmocka_unit_test(test_exec_in_doubt),
		cmocka_unit_test(test_names_by_time),
		cmocka_unit_test(test_names_read_again),
		cmocka_unit_test(test_too_many_names),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_many_images),
		cmocka_unit_test(test_files_of_one_path),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_images_of_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
