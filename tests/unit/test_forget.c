// SPDX-License-Identifier: GPL-2.0-only
/* What a table of processes forgets at the end of a window. Needs no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/counts.h"
#include "capture/forget.h"
#include "capture/image.h"
#include "capture/process.h"
#include "capture/snapshot.h"
#include "util/clock.h"

/* No processes have these numbers. */
#define GONE	  4194303
#define GONE_TOO  4194302
#define GONE_LAST 4194301

/* --- Records --- */

static void apply(struct process_table *table, const struct sideband_record *record)
{
	assert_int_equal(process_record(table, record), 0);
}

static void fork_at(struct process_table *table, uint64_t time, pid_t parent, pid_t pid)
{
	const struct sideband_record record = { SIDEBAND_FORK,	  .time_ns = time,
						.pid = pid,	  .tid = pid,
						.parent = parent, .parent_tid = parent };

	apply(table, &record);
}

static void exec_at(struct process_table *table, uint64_t time, pid_t pid, const char *name)
{
	const struct sideband_record record = { SIDEBAND_EXEC, .time_ns = time, .pid = pid,
						.tid = pid, .name = name };

	apply(table, &record);
}

static void exit_at(struct process_table *table, uint64_t time, pid_t pid)
{
	const struct sideband_record record = { SIDEBAND_EXIT, .time_ns = time, .pid = pid,
						.tid = pid };

	apply(table, &record);
}

/* Files of different names are different files. */
static void map_at(struct process_table *table, uint64_t time, pid_t pid, uint64_t start,
		   const char *name)
{
	struct sideband_record record = {
		.type = SIDEBAND_MMAP,
		.time_ns = time,
		.pid = pid,
		.tid = pid,
		.start = start,
		.limit = start + 0x1000,
		.inode = 1 + hash_bytes(name, strlen(name), 0) % 1000000,
		.name = name,
	};

	apply(table, &record);
}

static void sample_at(struct counts *counts, uint64_t time, pid_t pid, pid_t tid)
{
	struct counted sample = {
		.id = sample_id_make(1, pid, tid), .first_ns = time, .count = 1, .user_depth = 1
	};
	uint64_t pc = 0x1800;

	assert_int_equal(counts_add(counts, &sample, &pc, &(uint32_t){ 0 }), 0);
}

/* Forgets at the end of the window [begin, end), in seconds. */
static void forget(struct process_table *table, const struct counts *counts, uint64_t begin,
		   uint64_t end)
{
	static const struct counts none;
	const struct counts *const kinds[] = { &none, counts ?: &none };

	assert_int_equal(forget_choose(table, kinds, 2, end * NS_PER_S), 0);
	assert_int_equal(forget_processes(table, begin * NS_PER_S, end * NS_PER_S), 0);
}

static size_t process_count(const struct process_table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		count += table->processes[i].count > 0;
	return count;
}

static size_t image_count(const struct process_table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->image_count; i++)
		count += table->images[i].path != NULL;
	return count;
}

static const char *image_at(const struct process_table *table, pid_t pid, uint64_t when,
			    uint64_t pc)
{
	struct process *process = process_find(table, pid);
	const struct capture_mapping *mapping;

	assert_non_null(process);
	mapping = space_mapping_at(process_space_at(process, when), pc, when).mapping;
	return mapping ? table->images[mapping->image].path : "";
}

static size_t open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* After any number of processes, programs and names only those that run are known. */
static void test_ended(void **state)
{
	struct process_table table = { .everyone = true };
	size_t files;
	char name[32];

	(void)state;
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	map_at(&table, 0, getpid(), 0x1000, "/bin/ours");
	files = open_files(); /* with the opener's */
	for (uint64_t round = 0; round < 20; round++) {
		uint64_t begin = 100 * (round + 1);

		for (uint64_t i = 0; i < 500; i++) {
			pid_t pid = GONE - i % 100; /* also used again */
			uint64_t time = begin * NS_PER_S + i * NS_PER_MS;

			fork_at(&table, time, getpid(), pid);
			snprintf(name, sizeof(name), "x%u-%u", (unsigned int)round,
				 (unsigned int)i);
			exec_at(&table, time + 1, pid, name);
			map_at(&table, time + 2, pid, 0x1000, name);
			map_at(&table, time + 2, pid, 0x2000, "/bin/ours");
			exit_at(&table, time + 3, pid);
		}
		assert_int_equal(process_count(&table), 501);
		/* Slots are used again, */
		assert_int_equal(table.count, 501);
		assert_true(table.image_count <= 502);
		forget(&table, NULL, begin, begin + 100);
		assert_int_equal(process_count(&table), 1);
		assert_int_equal(table.thread_count, 1); /* we */
		assert_int_equal(image_count(&table), 1);
	}
	/* and given back. */
	assert_int_equal(table.count, 1);
	assert_int_equal(table.image_count, 1);
	assert_true(table.room < 250 && table.image_room < 250 && table.thread_room < 1500);
	assert_string_equal(image_at(&table, getpid(), 1, 0x1000), "/bin/ours");
	assert_null(process_find(&table, GONE));
	assert_int_equal(open_files(), files);
	process_table_free(&table);
	assert_true(open_files() < files);
}

/* What has samples in the window, or has just ended, stays for another one. */
static void test_sampled(void **state)
{
	struct process_table table = { .everyone = true };
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	fork_at(&table, 10 * NS_PER_S, getpid(), GONE);
	exec_at(&table, 10 * NS_PER_S, GONE, "sampled");
	map_at(&table, 11 * NS_PER_S, GONE, 0x1000, "/bin/sampled");
	exit_at(&table, 12 * NS_PER_S, GONE);
	fork_at(&table, 13 * NS_PER_S, getpid(), GONE); /* the same number */
	exec_at(&table, 13 * NS_PER_S, GONE, "second");
	exit_at(&table, 14 * NS_PER_S, GONE);
	fork_at(&table, 18 * NS_PER_S, getpid(), GONE_TOO);
	exec_at(&table, 18 * NS_PER_S, GONE_TOO, "late");
	exit_at(&table, 20 * NS_PER_S - 1, GONE_TOO);
	sample_at(&counts, 11 * NS_PER_S, GONE, GONE);
	forget(&table, &counts, 10, 20);
	assert_int_equal(process_count(&table), 3);
	assert_int_equal(table.processes[1].pid, GONE);
	assert_ptr_equal(process_find(&table, GONE), &table.processes[1]);
	assert_int_equal(table.processes[1].next_with_pid, INDEX_NONE);
	assert_string_equal(image_at(&table, GONE, 11 * NS_PER_S, 0x1000), "/bin/sampled");
	assert_string_equal(thread_name_at(&table, GONE, GONE, 11 * NS_PER_S).comm, "sampled");
	assert_string_equal(thread_name_at(&table, GONE_TOO, GONE_TOO, 19 * NS_PER_S).comm, "late");
	forget(&table, NULL, 20, 30);
	assert_int_equal(process_count(&table), 1);
	assert_int_equal(table.thread_count, 1); /* we */
	assert_int_equal(image_count(&table), 0);
	counts_free(&counts);
	process_table_free(&table);
}

/* A process whose end was not recorded is looked for. */
static void test_lost_exit(void **state)
{
	struct process_table table = { .everyone = true };

	(void)state;
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	fork_at(&table, 10 * NS_PER_S, getpid(), GONE);
	exec_at(&table, 10 * NS_PER_S, GONE, "lost");
	forget(&table, NULL, 10, 20);
	assert_true(process_find(&table, GONE)->ended);
	forget(&table, NULL, 20, 30);
	assert_null(process_find(&table, GONE));
	assert_int_equal(process_count(&table), 1);
	assert_int_equal(table.thread_count, 1); /* we */
	process_table_free(&table);
}

/* Processes and images keep their numbers when others are forgotten, whose slots are used again. */
static void test_numbers(void **state)
{
	struct process_table table = { .everyone = true };
	uint32_t ours, image;

	(void)state;
	fork_at(&table, 10 * NS_PER_S, 1, GONE);
	map_at(&table, 10 * NS_PER_S, GONE, 0x1000, "/bin/ended");
	fork_at(&table, 11 * NS_PER_S, 1, GONE); /* the exit of the first was not recorded */
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	map_at(&table, 12 * NS_PER_S, getpid(), 0x1000, "/bin/ours");
	ours = process_find(&table, getpid()) - table.processes;
	image = process_space(process_find(&table, getpid()))->mappings[0].image;
	forget(&table, NULL, 10, 20); /* the second seems to end here */
	assert_int_equal(process_count(&table), 2);
	assert_int_equal(process_find(&table, GONE) - table.processes, 1);
	assert_ptr_equal(process_at(&table, GONE, 0), process_find(&table, GONE));
	fork_at(&table, 21 * NS_PER_S, getpid(), GONE_TOO);
	map_at(&table, 21 * NS_PER_S, GONE_TOO, 0x1000, "/bin/other");
	assert_int_equal(process_find(&table, GONE_TOO) - table.processes, 0);
	assert_int_equal(process_space(process_find(&table, GONE_TOO))->mappings[0].image, 0);
	assert_int_equal(process_find(&table, getpid()) - table.processes, ours);
	assert_string_equal(table.images[image].path, "/bin/ours");
	assert_string_equal(image_at(&table, getpid(), UINT64_MAX, 0x1000), "/bin/ours");
	process_table_free(&table);
}

/*
 * Our parent and we run, their ancestors have ended: inherited mappings stay, at their times, and
 * those that the parent has mapped since are not ours.
 */
static void test_inherited(void **state)
{
	struct process_table table = { .everyone = true };

	(void)state;
	assert_int_equal(process_add(&table, GONE, 0), 0);
	map_at(&table, 1, GONE, 0x1000, "/lib/oldest");
	map_at(&table, 1, GONE, 0x2000, "/lib/replaced");
	fork_at(&table, 10, GONE, GONE_TOO);
	map_at(&table, 11, GONE, 0x5000, "/lib/too-late");
	map_at(&table, 20, GONE_TOO, 0x2000, "/lib/middle");
	fork_at(&table, 30, GONE_TOO, getppid());
	map_at(&table, 40, getppid(), 0x3000, "/lib/parent");
	fork_at(&table, 50, getppid(), getpid());
	map_at(&table, 60, getppid(), 0x6000, "/lib/parent-alone");
	map_at(&table, 70, getpid(), 0x4000, "/lib/own");
	exit_at(&table, 80, GONE);
	exit_at(&table, 80, GONE_TOO);
	for (uint64_t begin = 10; begin < 40; begin += 10) {
		if (begin > 10)
			assert_int_equal(process_count(&table), 2);
		assert_string_equal(image_at(&table, getpid(), 100, 0x1000), "/lib/oldest");
		assert_string_equal(image_at(&table, getpid(), 100, 0x2000), "/lib/middle");
		assert_string_equal(image_at(&table, getpid(), 15, 0x2000), "/lib/replaced");
		assert_string_equal(image_at(&table, getpid(), 100, 0x3000), "/lib/parent");
		assert_string_equal(image_at(&table, getpid(), 100, 0x4000), "/lib/own");
		assert_string_equal(image_at(&table, getpid(), 100, 0x5000), "");
		assert_string_equal(image_at(&table, getpid(), 100, 0x6000), "");
		assert_string_equal(image_at(&table, getppid(), 100, 0x1000), "/lib/oldest");
		assert_string_equal(image_at(&table, getppid(), 100, 0x6000), "/lib/parent-alone");
		forget(&table, NULL, begin, begin + 10);
	}
	process_table_free(&table);
}

/* The parent has called exec since the fork: what it had before is the child's alone. */
static void test_parent_execs(void **state)
{
	struct process_table table = { .everyone = true };

	(void)state;
	assert_int_equal(process_add(&table, getppid(), 0), 0);
	map_at(&table, 1, getppid(), 0x1000, "/bin/before");
	fork_at(&table, 10, getppid(), getpid());
	for (uint64_t i = 0; i < 5; i++) {
		exec_at(&table, 20 + i, getppid(), "program");
		map_at(&table, 20 + i, getppid(), 0x1000, "/bin/after");
	}
	forget(&table, NULL, 10, 20);
	assert_int_equal(process_find(&table, getppid())->count, 1);
	assert_string_equal(image_at(&table, getppid(), 100, 0x1000), "/bin/after");
	assert_string_equal(image_at(&table, getpid(), 100, 0x1000), "/bin/before");
	assert_string_equal(thread_name_at(&table, getppid(), getppid(), UINT64_MAX).comm,
			    "program");
	process_table_free(&table);
}

/* A daemon forks a child and ends, again and again: the chain does not grow. */
static void test_chain(void **state)
{
	struct process_table table = { .everyone = true };
	pid_t pid = GONE, child = GONE_TOO;
	struct process *last;

	(void)state;
	assert_int_equal(process_add(&table, pid, 0), 0);
	map_at(&table, 1, pid, 0x1000, "/bin/daemon");
	for (uint64_t i = 1; i < 100; i++) {
		uint64_t time = 10 * i * NS_PER_S;
		pid_t parent = pid;

		fork_at(&table, time, pid, child);
		exit_at(&table, time + 1, pid);
		pid = child;
		child = parent;
		forget(&table, NULL, 10 * i - 10, 10 * i);
		/* No process has these numbers: it seems to end at the cut. */
		process_find(&table, pid)->ended = false;
		assert_true(process_count(&table) <= 3);
	}
	last = process_find(&table, pid);
	assert_true(process_space(last)->count <= 1);
	assert_true(table.mapping_count <= 1);
	assert_string_equal(image_at(&table, pid, UINT64_MAX, 0x1000), "/bin/daemon");
	process_table_free(&table);
}

/* Threads that run keep their names. */
static void test_threads(void **state)
{
	struct process_table table = { .everyone = true };
	const struct sideband_record thread = { SIDEBAND_EXIT, .time_ns = 10 * NS_PER_S,
						.pid = getpid(), .tid = GONE };
	struct counts counts = { 0 };

	(void)state;
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	assert_int_equal(process_name_thread(&table, NULL, getpid(), "leader", 0, 0), 0);
	assert_int_equal(process_name_thread(&table, NULL, GONE, "ended", 0, 0), 0);
	assert_int_equal(process_name_thread(&table, NULL, GONE_TOO, "lost", 0, 0), 0);
	apply(&table, &thread);
	sample_at(&counts, 5 * NS_PER_S, getpid(), GONE);
	forget(&table, &counts, 10, 20);
	assert_int_equal(table.thread_count, 3);
	assert_string_equal(thread_name_at(&table, getpid(), GONE, 5 * NS_PER_S).comm, "ended");
	forget(&table, NULL, 20, 30);
	assert_int_equal(table.thread_count, 1);
	assert_string_equal(thread_name_at(&table, getpid(), getpid(), UINT64_MAX).comm, "leader");
	counts_free(&counts);
	process_table_free(&table);
}

/* Times without records, but for those in the window, and those since which a process was not
 * shown. */
static void test_gaps(void **state)
{
	struct process_table table = { .everyone = true };
	struct process *process;

	(void)state;
	table.gaps[table.gap_count++] = (struct gap){ 2 * NS_PER_S, 3 * NS_PER_S };
	table.gaps[table.gap_count++] = (struct gap){ 5 * NS_PER_S, 6 * NS_PER_S };
	table.gaps[table.gap_count++] = (struct gap){ 11 * NS_PER_S, 12 * NS_PER_S };
	assert_int_equal(process_add(&table, getpid(), 4 * NS_PER_S), 0);
	process = process_find(&table, getpid());
	forget(&table, NULL, 10, 20);
	assert_int_equal(table.gap_count, 2);
	assert_int_equal(table.gaps[0].from_ns, 5 * NS_PER_S);
	assert_true(process_gaps_at(&table, process, 15 * NS_PER_S).doubtful);
	process->shown_ns = 13 * NS_PER_S;
	forget(&table, NULL, 10, 20);
	assert_int_equal(table.gap_count, 1);
	assert_true(process_gaps_at(&table, process, 11 * NS_PER_S).in_gap);
	forget(&table, NULL, 20, 30);
	assert_int_equal(table.gap_count, 0);
	assert_false(process_gaps_at(&table, process, 25 * NS_PER_S).doubtful);
	process_table_free(&table);
}

/* The control groups of ended processes are forgotten, too. */
static void test_groups(void **state)
{
	struct process_table table = { .everyone = true, .notes_origins = true };
	const struct process *process;
	struct counts counts = { 0 };

	(void)state;
	fork_at(&table, 1, 0, getpid());
	assert_int_equal(table.group_count, 1);
	process = process_find(&table, getpid());
	assert_int_equal(process->uid, geteuid());
	assert_int_equal(process->group, 0);
	fork_at(&table, 10, getpid(), GONE);
	process = process_find(&table, GONE);
	assert_int_equal(process->uid, geteuid());
	assert_int_equal(process->group, 0);
	free(table.groups[0]); /* as if we were in another */
	table.groups[0] = strdup("/another");
	sample_at(&counts, 20, getpid(), getpid());
	forget(&table, &counts, 10, 20);
	assert_int_equal(table.group_count, 2); /* the child's is not read: it is gone */
	assert_string_equal(table.groups[process_find(&table, GONE)->group], "/another");
	forget(&table, &counts, 20, 30);
	assert_null(table.groups[0]);
	assert_string_not_equal(table.groups[process_find(&table, getpid())->group], "/another");
	counts_free(&counts);
	process_table_free(&table);
}

/* A process that has mapped more than is kept: what it has mapped now is read again. */
static void test_crowded(void **state)
{
	struct process_table table = { .everyone = true };
	uint64_t time_s = now_ns() / NS_PER_S + 10; /* after our own begin */
	char name[300];
	struct process *process;

	(void)state;
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	for (uint64_t i = 0; !table.crowded; i++) {
		assert_true(i < 10000);
		snprintf(name, sizeof(name), "/%0250u", (unsigned int)i);
		map_at(&table, i, getpid(), 0x200000000000 + i * 0x2000, name);
	}
	process = process_find(&table, getpid());
	assert_string_equal(image_at(&table, getpid(), UINT64_MAX, (uintptr_t)test_crowded), "");
	assert_int_equal(snapshot_replace(&table, process, time_s * NS_PER_S), 0);
	assert_false(process_is_crowded(&table, process));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(process->count, 2 - i);
		assert_non_null(strstr(image_at(&table, getpid(), (time_s + 10) * NS_PER_S,
						(uintptr_t)test_crowded),
				       "test_forget"));
		forget(&table, NULL, time_s + 10, time_s + 20);
	}
	/* There were thousands. Sanitizers are libraries, too. */
	assert_true(image_count(&table) < 100);
	process_table_free(&table);
}

/* Maps as much as test_crowded() does. */
static void crowd(struct process_table *table, pid_t pid, uint64_t time)
{
	char name[300];

	table->crowded = 0;
	for (uint64_t i = 0; !table->crowded; i++) {
		assert_true(i < 10000);
		snprintf(name, sizeof(name), "/%0250u", (unsigned int)i);
		map_at(table, time, pid, 0x200000000000 + i * 0x2000, name);
	}
}

static bool knows_own_code(const struct process_table *table, pid_t pid, uint64_t time)
{
	return strstr(image_at(table, pid, time, (uintptr_t)test_crowded), "test_forget");
}

/*
 * A process that maps ever more code is read again, soon, and as often as that happens; one of
 * another user's is not behind all those of a user.
 */
static void test_crowded_again(void **state)
{
	struct process_table table = { .everyone = true };
	uint64_t now = now_ns() + 10 * NS_PER_S;
	pid_t pids[4] = { getpid() };
	const uid_t uids[4] = { 0, 5001, 5001, 5002 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		pids[i] = pids[i] ?: fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(pause());
		}
		assert_int_equal(process_add(&table, pids[i], 0), 0);
		process_find(&table, pids[i])->uid = uids[i];
	}
	for (int round = 0; round < 20; round++) {
		crowd(&table, pids[0], now);
		now += 60 * NS_PER_S;
		assert_int_equal(snapshot_if_crowded(&table, now, UINT_MAX), 0);
		assert_true(knows_own_code(&table, pids[0], now));
		assert_int_equal(process_find(&table, pids[0])->count, 2);
		forget(&table, NULL, now / NS_PER_S + 2, now / NS_PER_S + 3);
		assert_int_equal(process_find(&table, pids[0])->count, 1);
	}
	/* Not more often than is asked for, nor twice at once. */
	crowd(&table, pids[0], now);
	now += 60 * NS_PER_S;
	assert_int_equal(snapshot_if_crowded(&table, now, 20), 0);
	assert_int_equal(process_find(&table, pids[0])->count, 1);
	crowd(&table, pids[0], now);
	for (int i = 1; i < 4; i++) {
		now += NS_PER_S;
		assert_int_equal(snapshot_if_crowded(&table, now, 21), 0);
		assert_int_equal(process_find(&table, pids[0])->count, 2);
		if (i == 1)
			crowd(&table, pids[0], now);
	}
	/* Users take turns. */
	for (int i = 1; i < 4; i++)
		crowd(&table, pids[i], now);
	for (int i = 0; i < 3; i++) {
		now += 60 * NS_PER_S; /* the first may have its turn, too */
		assert_int_equal(snapshot_if_crowded(&table, now, UINT_MAX), 0);
	}
	assert_int_equal(process_find(&table, pids[3])->count, 2);
	assert_true(process_find(&table, pids[1])->count + process_find(&table, pids[2])->count <=
		    3);
	for (int i = 1; i < 4; i++)
		kill(pids[i], SIGKILL);
	process_table_free(&table);
}

#define MANY	 2000
#define CHILD	 4194305 /* the first: above PID_MAX_LIMIT */
#define CHILDREN 500
#define BUDGET	 ((size_t)9 * 1024 * 1024)

/*
 * Compares what the table counts of its budget with the address spaces that it has, with those of
 * processes that it forgot. Returns the bytes that are allocated for their mappings.
 */
static size_t check_use(const struct process_table *table)
{
	const struct address_space *all[2 * CHILDREN];
	size_t count = 0, mappings = 0, images = 0, bytes = 0, i;

	for (size_t p = 0; p < table->count; p++)
		for (size_t k = 0; k < table->processes[p].count; k++)
			for (const struct address_space *space = table->processes[p].spaces[k];
			     space; space = space->parent) {
				for (i = 0; i < count && all[i] != space; i++)
					;
				if (i < count)
					break;
				all[count++] = space;
				mappings += space->count;
				bytes += space->room * sizeof(*space->mappings);
			}
	for (i = 0; i < table->image_count; i++)
		if (table->images[i].path)
			images += IMAGE_BYTES + strlen(table->images[i].path);
	assert_int_equal(table->mapping_count, mappings);
	assert_int_equal(table->image_bytes, images);
	return bytes;
}

/*
 * A process with many mappings has many children and ends: they share what they have of it. What
 * they map then is within the budget of all processes, and another process still has room.
 */
static void test_many_children(void **state)
{
	struct process_table table = { .everyone = true, .bytes_max = BUDGET };

	(void)state;
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	map_at(&table, 0, getpid(), 0x1000, "/bin/ours");
	assert_int_equal(process_add(&table, GONE, 0), 0);
	for (uint64_t i = 0; i < MANY; i++)
		map_at(&table, 0, GONE, 0x2000 * (i + 1), "/bin/theirs");
	assert_int_equal(table.crowded, 0);
	for (pid_t i = 0; i < CHILDREN; i++)
		fork_at(&table, 10, GONE, CHILD + i);
	exit_at(&table, 20, GONE);
	forget(&table, NULL, 10, 20); /* the children seem to end there, and stay for another */
	assert_int_equal(process_count(&table), 1 + CHILDREN);
	assert_true(check_use(&table) < 2 * MANY * sizeof(struct capture_mapping));
	assert_int_equal(table.crowded, 0);
	for (pid_t i = 0; i < CHILDREN; i++)
		assert_string_equal(image_at(&table, CHILD + i, UINT64_MAX, 0x2000 * MANY),
				    "/bin/theirs");
	assert_string_equal(image_at(&table, getpid(), UINT64_MAX, 0x1000), "/bin/ours");
	/* Each of them, which has little, maps more and more files. */
	for (uint64_t k = 0; k < 100; k++)
		for (pid_t i = 0; i < CHILDREN; i++) {
			char name[32];

			snprintf(name, sizeof(name), "/%d/%u", i, (unsigned int)k);
			map_at(&table, 30, CHILD + i, 0x2000 * (k + 1), name);
		}
	assert_true(check_use(&table) + table.image_count * sizeof(*table.images) < BUDGET);
	/* Said of those that have no room. */
	assert_true(table.crowded != 0);
	assert_true(process_find(&table, table.crowded)->spaces[0]->crowded);
	for (uint64_t i = 2; i < 20; i++)
		map_at(&table, 0, getpid(), 0x2000 * i, "/lib/ours");
	assert_string_equal(image_at(&table, getpid(), UINT64_MAX, 0x4000), "/lib/ours");
	check_use(&table);
	/* They end: there is room for everything again. */
	forget(&table, NULL, 40, 50);
	forget(&table, NULL, 50, 60);
	assert_int_equal(process_count(&table), 1);
	check_use(&table);
	assert_true(process_budget(&table) > BUDGET / SPACE_SHARE - 8192);
	process_table_free(&table);
}

/* --- Files that could not be opened --- */

struct file {
	char path[64];
	struct stat status;
};

static struct file make_file(void)
{
	struct file file = { .path = "/tmp/profil-test.XXXXXX" };
	int fd = mkstemp(file.path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(fstat(fd, &file.status), 0);
	close(fd);
	return file;
}

/* A process maps a file. Returns its image. */
static const struct capture_image *map_file_at(struct process_table *table, pid_t pid,
					       const struct file *file, uint64_t time_ns)
{
	const struct sideband_record record = {
		.type = SIDEBAND_MMAP,
		.time_ns = time_ns,
		.pid = pid,
		.tid = pid,
		.start = 0x1000,
		.limit = 0x2000,
		.inode = file->status.st_ino,
		.device = file->status.st_dev,
		.name = file->path,
	};

	apply(table, &record);
	return &table->images[process_find(table, pid)->spaces[0]->mappings[0].image];
}

/* The same, before the file was written. */
static const struct capture_image *map_file(struct process_table *table, pid_t pid,
					    const struct file *file)
{
	return map_file_at(table, pid, file, NS_PER_S);
}

/* The file of a process that ended early is opened by its path, if it is as it was then. */
static void test_early_end(void **state)
{
	struct process_table table = { .everyone = true };
	struct file file = make_file();
	const struct capture_image *image = map_file_at(&table, GONE, &file, now_ns());

	(void)state;
	assert_true(image->fd >= 0 && !image->why);
	assert_ptr_equal(image, map_file_at(&table, GONE_TOO, &file, now_ns()));
	/* Written in place it is another one. */
	assert_int_equal(truncate(file.path, file.status.st_size + 1), 0);
	map_file_at(&table, getpid(), &file, now_ns());
	assert_int_equal(table.image_count, 2);
	process_table_free(&table);
	unlink(file.path);
}

/* That a process ended early is no failure of its file: the next one that maps it has it opened. */
static void test_next_process(void **state)
{
	struct process_table table = { .everyone = true };
	struct file file = make_file();
	const struct capture_image *image;

	(void)state;
	image = map_file(&table, GONE, &file);
	assert_int_equal(image->fd, -1);
	assert_string_equal(image->why, "its process ended before its file could be opened, "
					"and its path leads to none or to another");
	table.images[0].next_try_ns = 0; /* the time of the failure passes */
	image = map_file(&table, GONE_TOO, &file);
	assert_int_equal(image->fd, -1);
	assert_true(image->next_try_ns > now_ns()); /* not at every record */
	assert_int_equal(map_file(&table, getpid(), &file)->fd, -1);
	table.images[0].next_try_ns = 0;
	image = map_file(&table, getppid(), &file);
	assert_true(image->fd >= 0 && image->is_reopened && !image->why);
	assert_int_equal(table.image_count, 1);
	process_table_free(&table);
	unlink(file.path);
}

/* Nor need the process make a record: those that map it already are asked as well. */
static void test_those_there(void **state)
{
	struct process_table table = { .everyone = true };
	struct file file = make_file();

	(void)state;
	assert_int_equal(process_add(&table, GONE, 0), 0);
	assert_int_equal(map_file(&table, GONE, &file)->fd, -1);
	fork_at(&table, 2 * NS_PER_S, GONE, getpid()); /* has its mapping */
	/* as long as it takes on a busy machine */
	do {
		table.next_open_ns = 0;
		assert_int_equal(image_open_again(&table), 0);
	} while (table.open_left);
	assert_true(table.images[0].fd >= 0 && table.images[0].is_reopened);
	/* One of them had another build by its path: it is closed, and tried again, not at once. */
	image_reject(&table, &table.images[0]);
	assert_int_equal(table.images[0].fd, -1);
	assert_int_equal(image_open_again(&table), 0);
	assert_int_equal(table.images[0].fd, -1);
	table.next_open_ns = 0;
	assert_int_equal(image_open_again(&table), 0);
	assert_true(table.images[0].fd >= 0);
	process_table_free(&table);
	unlink(file.path);
}

/* A file that no process maps any more is not looked for all the time. */
static void test_nobody(void **state)
{
	struct process_table table = { .everyone = true };
	struct file file = make_file();

	(void)state;
	assert_int_equal(process_add(&table, GONE, 0), 0);
	assert_int_equal(map_file(&table, GONE, &file)->fd, -1);
	assert_int_equal(image_open_again(&table), 0);
	assert_int_not_equal(table.open_left, 0);
	table.processes[0].ended = true;
	table.next_open_ns = 0;
	assert_int_equal(image_open_again(&table), 0);
	assert_int_equal(table.open_left, 0);
	/* By a record, not at once. */
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	assert_int_equal(map_file(&table, getpid(), &file)->fd, -1);
	assert_int_equal(table.open_left, 2);
	assert_int_equal(image_open_again(&table), 0);
	assert_true(table.images[0].fd >= 0);
	process_table_free(&table);
	unlink(file.path);
}

/* A file that has replaced the mapped one is not opened in its place. */
static void test_replaced(void **state)
{
	struct process_table table = { .everyone = true };
	struct file file = make_file(), other = make_file();

	(void)state;
	map_file(&table, GONE, &file);
	assert_int_equal(rename(other.path, file.path), 0);
	assert_int_equal(process_add(&table, getpid(), 0), 0);
	map_file(&table, getpid(), &file);
	table.next_open_ns = 0;
	assert_int_equal(image_open_again(&table), 0);
	assert_int_equal(table.images[0].fd, -1);
	assert_string_equal(table.images[0].why, "its path names another file, and "
						 "/proc/PID/map_files was of no use");
	process_table_free(&table);
	unlink(file.path);
}

/* A user's threads change their names all the time: another's have all of theirs. */
static void test_names(void **state)
{
	struct process_table table = { .everyone = true };
	char name[16];

	(void)state;
	assert_int_equal(process_add(&table, GONE, 1), 0);
	assert_int_equal(process_add(&table, GONE_TOO, 1), 0);
	process_find(&table, GONE)->uid = 5001;
	process_find(&table, GONE_TOO)->uid = 5002;
	for (pid_t tid = CHILD; tid < CHILD + 4000; tid++)
		for (unsigned int i = 1; i < THREAD_NAMES_MAX; i++) {
			snprintf(name, sizeof(name), "%d-%u", tid, i);
			assert_int_equal(process_name_thread(&table, process_find(&table, GONE),
							     tid, name, i, i),
					 0);
		}
	assert_true(table.thread_count < THREADS_MAX);
	for (unsigned int i = 1; i < 10; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		assert_int_equal(process_name_thread(&table, process_find(&table, GONE_TOO),
						     GONE_TOO, name, i, i),
				 0);
	}
	for (unsigned int i = 1; i < 10; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		assert_string_equal(thread_name_at(&table, GONE_TOO, GONE_TOO, i).comm, name);
		assert_false(thread_name_at(&table, GONE_TOO, GONE_TOO, i).in_doubt);
	}
	forget(&table, NULL, 10, 20);
	forget(&table, NULL, 20, 30);
	assert_int_equal(table.renamed[1 + 5001 % (THREAD_SHARES - 1)], 0);
	process_table_free(&table);
}

/* A process in a root directory, and a file system, of its own: as a container's. */
static pid_t start_apart(void)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("root", "/tmp", "tmpfs", 0, NULL) || chroot("/tmp") || chdir("/") ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(pause());
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/*
 * A process in a container has mapped a file first that we map, too. When it has ended, nothing of
 * its file system is in use, and the file is open through us.
 */
static void test_left_root(void **state)
{
	struct process_table table = { .everyone = true };
	uint64_t time_s = now_ns() / NS_PER_S + 10;
	const struct capture_image *image;
	pid_t apart;

	(void)state;
	if (geteuid())
		skip();
	apart = start_apart();
	assert_int_equal(snapshot_process(&table, apart, 0), 0);
	assert_int_equal(snapshot_process(&table, getpid(), 0), 0);
	image = &table.images[space_mapping_at(process_space(process_find(&table, getpid())),
					       (uintptr_t)test_left_root, UINT64_MAX)
				      .mapping->image];
	assert_int_equal(table.root_count, 1);
	assert_int_equal(image->root, table.roots[0].fd);
	forget(&table, NULL, time_s, time_s + 10);
	assert_false(image->is_left); /* it runs */
	kill(apart, SIGKILL);
	assert_int_equal(waitpid(apart, NULL, 0), apart);
	for (int i = 0; i < 2; i++) {
		time_s += 10;
		forget(&table, NULL, time_s, time_s + 10);
		do {
			table.next_open_ns = 0;
			assert_int_equal(image_open_again(&table), 0);
		} while (table.open_left);
	}
	forget(&table, NULL, time_s + 10, time_s + 20);
	assert_null(process_find(&table, apart));
	assert_int_equal(table.root_count, 0);
	assert_int_equal(image->root, -1);
	assert_true(image->fd >= 0);
	assert_false(image->is_unread);
	process_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ended),	      cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_lost_exit),     cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_inherited),     cmocka_unit_test(test_parent_execs),
		cmocka_unit_test(test_chain),	      cmocka_unit_test(test_threads),
		cmocka_unit_test(test_groups),	      cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_crowded),	      cmocka_unit_test(test_crowded_again),
		cmocka_unit_test(test_many_children), cmocka_unit_test(test_early_end),
		cmocka_unit_test(test_next_process),  cmocka_unit_test(test_those_there),
		cmocka_unit_test(test_nobody),	      cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_left_root),     cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
