// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sample program in the kernel: what it counts in its tables, rings and banks, full ones, too.
 * BPF_PROG_TEST_RUN has it count exactly what a row says, so each number is certain. At live ticks,
 * perf's own records of the same ticks say what must be counted. Needs the privileges to record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/cpus.h"
#include "capture/members.h"
#include "capture/perf_event.h"
#include "capture/program.h"
#include "capture/sample_program.h"
#include "capture/wall.h"
#include "buffers_fixture.h"
#include "counting.skel.h"
#include "profil.skel.h"
#include "sample.skel.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/proc.h"

#define FIRST_PC 0x400000
#define DEPTH	 4 /* of the stacks that the program makes, whose callers are the same */
#define CALLER	 0x300000
#define ID	 (SAMPLE_ID_VALID | 77)
#define WAITING	 3 /* threads, at each tick */

static struct counting_bpf *counting; /* of the sample program that was loaded last */

/* Loads the program under test, and those that count in its maps what a row says. */
static void load(struct sample_program *sample, const struct sample_settings *settings,
		 struct counts *counts)
{
	struct bpf_map *map;
	struct error e;
	int err = sample_program_load(sample, settings, counts, &e);

	if (err == -EPERM || err == -EACCES)
		skip();
	assert_int_equal(err, 0);
	counting_bpf__destroy(counting);
	counting = counting_bpf__open();
	assert_non_null(counting);
	bpf_object__for_each_map(map, counting->obj) {
		/* The names of those of variables begin with the object's. */
		const char *name = strchr(bpf_map__name(map), '.') ?: bpf_map__name(map);
		int fd = bpf_object__find_map_fd_by_name(sample_program_object(sample), name);

		assert_int_equal(fd < 0 ? bpf_map__set_autocreate(map, false)
					: bpf_map__reuse_fd(map, fd),
				 0);
	}
	bpf_program__set_autoload(settings->waits    ? counting->progs.test_leave
				  : settings->stacks ? counting->progs.test_stacks
						     : counting->progs.test_pcs,
				  true);
	assert_int_equal(counting_bpf__load(counting), 0);
}

static uint32_t run(const struct bpf_program *program, uint64_t *arguments, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = arguments, .ctx_size_in = size);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(program), &run), 0);
	return run.retval;
}

/* Counts `ticks` in turn at `different` places, from FIRST_PC + `from` on. */
static void count(const struct sample_program *sample, uint64_t from, uint64_t different,
		  uint64_t ticks)
{
	uint64_t arguments[] = { FIRST_PC + from, different, ticks, ID, WAITING };

	run(sample->settings.stacks ? counting->progs.test_stacks : counting->progs.test_pcs,
	    arguments, sizeof(arguments));
}

/* Each of the first places has its share of `ticks`, and there is no other sample. */
static void check_counts(const struct counts *counts, bool stacks, uint64_t different,
			 uint64_t ticks)
{
	uint64_t *found = calloc(different, sizeof(*found));

	assert_non_null(found);
	for (size_t i = 0; i < counts->count; i++) {
		const struct counted *s = &counts->samples[i];
		const uint64_t *pcs = counts->pcs + s->first_pc;

		assert_true(s->id == ID);
		assert_int_equal(s->waiting, s->count * WAITING);
		assert_int_equal(s->kernel_depth, 0);
		assert_int_equal(s->user_depth, stacks ? DEPTH : 1);
		assert_in_range(pcs[0], FIRST_PC, FIRST_PC + different - 1);
		for (uint32_t depth = 1; depth < s->user_depth; depth++)
			assert_int_equal(pcs[depth], CALLER + depth);
		found[pcs[0] - FIRST_PC] += s->count;
	}
	for (uint64_t i = 0; i < different; i++)
		assert_int_equal(found[i], ticks / different + (i < ticks % different));
	free(found);
}

/* Ends a window, and adds all that it counted. */
static struct sample_window take_all(struct sample_program *sample, struct counts *counts)
{
	struct sample_window window;

	assert_int_equal(sample_program_switch(sample), 0);
	assert_int_equal(sample_program_read(sample), 0);
	assert_int_equal(sample_program_take(sample, counts, &window), 0);
	return window;
}

static void check_table(bool stacks)
{
	enum {
		TICKS = 100000,
		PLACES = 777
	};
	const struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.everyone = true,
		.stacks = stacks,
	};
	struct sample_program sample = { .cpu_count = 0 };
	struct counts counts = { 0 };
	struct sample_window window;

	load(&sample, &settings, &counts);
	count(&sample, 0, PLACES, TICKS);
	assert_int_equal(sample_program_ticks(&sample), TICKS);
	window = take_all(&sample, &counts);
	assert_int_equal(window.ticks, TICKS);
	assert_int_equal(counts.count, PLACES);
	check_counts(&counts, stacks, PLACES, TICKS);
	/* What was taken is not added again. */
	count(&sample, TICKS % PLACES, 1, 1);
	window = take_all(&sample, &counts);
	assert_int_equal(window.ticks, 1);
	assert_int_equal(window.counters.ring, 0);
	check_counts(&counts, stacks, PLACES, TICKS + 1);
	sample_program_free(&sample);
	counts_free(&counts);
}

static void test_pcs(void **state)
{
	(void)state;
	check_table(false);
}

static void test_stacks(void **state)
{
	(void)state;
	check_table(true);
}

/*
 * What finds no room in the table, or in the arena, goes through the ring buffer: nothing is lost
 * while that is read, and each tick that is lost afterwards is counted as that.
 */
static void check_full(struct sample_program *sample, bool stacks, uint64_t places)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.everyone = true,
		.stacks = stacks,
	};
	const uint64_t step = 10000; /* fewer than a ring buffer holds */
	struct counts counts = { 0 };
	struct sample_window window;
	uint64_t ticks = 0, before, kernel;

	load(sample, &settings, &counts);
	for (; ticks < places; ticks += step) {
		count(sample, ticks, step, step);
		assert_int_equal(sample_program_read(sample), 0);
	}
	window = take_all(sample, &counts);
	assert_true(window.counters.ring > 0);
	assert_int_equal(window.counters.ring_full, 0);
	assert_int_equal(window.ticks, ticks);
	assert_int_equal(counts.count, ticks);
	check_counts(&counts, stacks, ticks, ticks);
	for (before = ticks; ticks < before + places + 20 * step; ticks += step)
		count(sample, ticks, step, step);
	window = take_all(sample, &counts);
	assert_true(window.counters.ring_full > 0);
	assert_int_equal(window.ticks, ticks - before);
	assert_int_equal(counts_sum(&counts, &kernel) + window.counters.ring_full, ticks);
	sample_program_free(sample);
	counts_free(&counts);
}

static void test_full_table(void **state)
{
	struct sample_program sample = { .cpu_count = 0 };

	(void)state;
	check_full(&sample, false, 150000);
}

static void test_full_table_of_stacks(void **state)
{
	struct sample_program sample = { .cpu_count = 0 };

	(void)state;
	check_full(&sample, true, 150000);
}

static void test_full_arena(void **state)
{
	struct sample_program sample = { .arena_words = 50 * STACK_WORDS_MAX };

	(void)state;
	check_full(&sample, true, 20000);
}

/* Stacks with the same hash are counted separately, and soon find no free entry. */
static void test_one_hash(void **state)
{
	struct sample_program sample = { .one_hash = true };

	(void)state;
	check_full(&sample, true, 20000);
}

/* --- Members --- */

/* A process with children that live until it has ended. */
static pid_t start_family(unsigned int children)
{
	pid_t parent = fork();

	if (parent)
		return parent;
	raise(SIGSTOP);
	for (unsigned int i = 0; i < children; i++)
		if (fork() == 0) {
			alarm(60); /* also when the parent is ended */
			while (getppid() != 1)
				usleep(1000);
			_exit(0);
		}
	_exit(0);
}

/* Children that do not fit in the map of members are dropped, and counted. */
static void test_full_members(void **state)
{
	const struct sample_settings settings = { .sides = SAMPLE_USER, .inherit = true };
	const struct member member = { .state = MEMBER_COUNTS };
	struct sample_program sample = { .members_max = 4 };
	struct members members = { 0 };
	struct counts counts = { 0 };
	struct error e;
	pid_t parent;
	int err, status;

	(void)state;
	err = sample_program_load(&sample, &settings, &counts, &e);
	if (err == -EPERM || err == -EACCES)
		skip();
	assert_int_equal(err, 0);
	parent = start_family(10);
	waitpid(parent, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(members_begin(&members, sample_program_object(&sample), true, &e), 0);
	assert_int_equal(members_add(&members, parent, &member, &e), 0);
	assert_int_equal(members_dropped(&members), 0);
	kill(parent, SIGCONT);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_int_equal(members_dropped(&members), 10 + 1 - 4);
	members_free(&members);
	sample_program_free(&sample);
	counts_free(&counts);
}

/* --- Windows --- */

static bool is_zero(const void *memory, size_t size)
{
	const char *bytes = memory;

	return !*bytes && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* A bank that was taken and is not in use yet: no tick counts there. */
static bool is_clear(const struct sample_program *sample, size_t bank)
{
	size_t at = bank * sample->buckets;

	for (size_t i = bank; i < sample->cpu_count * SAMPLE_BANKS; i += SAMPLE_BANKS)
		if (!is_zero(&sample->counters[i], sizeof(*sample->counters)))
			return false;
	return sample->settings.stacks
		       ? is_zero(&sample->stacks[at], sample->buckets * sizeof(*sample->stacks))
		       : is_zero(&sample->table[at], sample->buckets * sizeof(*sample->table));
}

enum {
	WINDOWS = 120,
	PLACES = 50
};

/*
 * Each tick is in its window, and none counts in a bank that was taken. room: for how many places
 * a bank has room.
 */
static void check_windows(struct sample_program *sample, bool stacks, uint64_t room)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.stacks = stacks,
		.everyone = true,
		.windows = true,
		.always_on = true,
	};
	struct counts ring = { 0 };

	load(sample, &settings, &ring);
	for (uint64_t ticks = 0; ticks < WINDOWS; ticks++) {
		struct sample_window window;
		struct counts counts = { 0 };
		uint64_t kernel, from_ring, last;

		count(sample, 0, PLACES, ticks);
		assert_int_equal(sample_program_switch(sample), 0);
		assert_int_equal(sample_program_read(sample), 0);
		from_ring = counts_sum(&ring, &kernel);
		assert_int_equal(sample_program_take(sample, &counts, &window), 0);
		assert_int_equal(window.ticks, ticks);
		assert_int_equal(window.counters.ring, from_ring);
		assert_int_equal(window.counters.ring_full, 0);
		assert_int_equal(counts_sum(&counts, &kernel) + from_ring, ticks);
		last = ticks % PLACES;
		assert_int_equal(from_ring,
				 ticks - ticks / PLACES * room - (last < room ? last : room));
		if (room == PLACES)
			check_counts(&counts, stacks, PLACES, ticks);
		for (size_t i = 0; i < counts.count; i++)
			assert_int_equal(counts.samples[i].cpu < sample->cpu_count, stacks);
		assert_true(is_clear(sample, ticks % SAMPLE_BANKS));
		counts_free(&counts);
		counts_free(&ring);
	}
	sample_program_free(sample);
}

static void test_windows(void **state)
{
	struct sample_program sample = { .cpu_count = 0 };

	(void)state;
	check_windows(&sample, false, PLACES);
}

static void test_windows_of_stacks(void **state)
{
	struct sample_program sample = { .cpu_count = 0 };

	(void)state;
	check_windows(&sample, true, PLACES);
}

/* A bank's part of the arena has room for ten stacks of six words. */
static void test_windows_with_full_arena(void **state)
{
	struct sample_program sample = { .arena_words = STACK_WORDS_MAX + 60 };

	(void)state;
	check_windows(&sample, true, 10);
}

/* Several CPUs count at once, in the same places, while windows are taken: no tick is lost. */

enum {
	COUNTERS = 4,
	EACH = 100000
};

static void *count_on(void *sample)
{
	for (int i = 0; i < 100; i++)
		count(sample, 0, PLACES, EACH / 100);
	return NULL;
}

static void check_parallel(bool stacks)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.stacks = stacks,
		.everyone = true,
		.windows = true,
	};
	struct sample_program sample = { .cpu_count = 0 };
	struct counts ring = { 0 }, counts = { 0 };
	struct sample_window window;
	pthread_t threads[COUNTERS];
	uint64_t ticks = 0;

	load(&sample, &settings, &ring);
	for (int i = 0; i < COUNTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_on, &sample), 0);
	for (int i = 0; i <= COUNTERS; i++) {
		for (int j = 0; j < 20; j++) {
			assert_int_equal(sample_program_switch(&sample), 0);
			assert_int_equal(sample_program_take(&sample, &counts, &window), 0);
			assert_int_equal(window.counters.ring + window.counters.ring_full, 0);
			ticks += window.ticks;
		}
		if (i < COUNTERS)
			pthread_join(threads[i], NULL);
	}
	assert_int_equal(ticks, COUNTERS * EACH);
	check_counts(&counts, stacks, PLACES, COUNTERS * EACH);
	sample_program_free(&sample);
	counts_free(&counts);
}

static void test_parallel(void **state)
{
	(void)state;
	check_parallel(false);
}

static void test_parallel_stacks(void **state)
{
	(void)state;
	check_parallel(true);
}

/* --- Live ticks --- */

#define RECORDS_BYTES (1U << 22) /* of a CPU: ten seconds of ticks, forks and exits */

/* A perf event of each CPU that runs the program, and then writes a record of the tick. */
struct live {
	int program;
	struct live_event {
		int fd;
		struct perf_event_mmap_page *control;
	} * events;
	size_t event_count, event_room;
	struct live_record {
		uint64_t pc, time_ns;
		uint32_t pid; /* UINT32_MAX: the process had been waited for, and still ran */
	} * records;
	size_t record_count, record_room;
	uint64_t lost;
	uint32_t root; /* a process, whose descendants are known: */
	/* When the last one got a PID, which may have been another's before; 0: none has had it. */
	uint64_t *since_ns;
};

#define LIVE_PIDS (1U << 22)

static int open_live_event(int cpu, void *context)
{
	struct live *live = context;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 200003,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.task = 1,
		.exclude_idle = 1,
		.disabled = 1,
	};
	struct live_event event = { .fd = perf_event_open(&attr, -1, cpu) };

	assert_true(event.fd >= 0);
	event.control = mmap(NULL, sysconf(_SC_PAGESIZE) + RECORDS_BYTES, PROT_READ | PROT_WRITE,
			     MAP_SHARED, event.fd, 0);
	assert_ptr_not_equal(event.control, MAP_FAILED);
	assert_int_equal(ioctl(event.fd, PERF_EVENT_IOC_SET_BPF, live->program), 0);
	assert_int_equal(array_reserve(&live->events, &live->event_room, live->event_count + 1,
				       sizeof(event)),
			 0);
	live->events[live->event_count++] = event;
	return 0;
}

static void set_live_events(const struct live *live, unsigned long request)
{
	for (size_t i = 0; i < live->event_count; i++)
		assert_int_equal(ioctl(live->events[i].fd, request, 0), 0);
}

/* Forks are in the buffers of the parents' CPUs: all are known when all buffers were read. */
static void read_records(struct live *live, struct perf_event_mmap_page *control)
{
	const unsigned char *data = (unsigned char *)control + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = control->data_tail;

	while (tail < head) {
		struct perf_event_header header;
		/* pc, PID and TID, time; an ID, how many were lost; PIDs, TIDs, time. */
		uint64_t words[3];
		uint32_t pids[2];

		memcpy(&header, data + tail % RECORDS_BYTES, sizeof(header));
		for (size_t i = 0; i < 3; i++)
			memcpy(&words[i], data + (tail + sizeof(header) + 8 * i) % RECORDS_BYTES,
			       8);
		if (header.type == PERF_RECORD_LOST) {
			live->lost += words[1];
		} else if (header.type == PERF_RECORD_SAMPLE) {
			memcpy(pids, &words[1], sizeof(pids));
			assert_int_equal(array_reserve(&live->records, &live->record_room,
						       live->record_count + 1,
						       sizeof(*live->records)),
					 0);
			live->records[live->record_count++] =
				(struct live_record){ words[0], words[2], pids[0] };
		} else if (header.type == PERF_RECORD_FORK) {
			memcpy(pids, &words[0], sizeof(pids));
			if (pids[1] == live->root && pids[0] < LIVE_PIDS)
				live->since_ns[pids[0]] = words[2];
		}
		tail += header.size;
	}
	__atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
}

/* A stopped process that starts others when it goes on, which use CPU time for less than a tick. */
static pid_t start_churn(void)
{
	pid_t pid = fork();
	int status;

	if (pid) {
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		assert_true(WIFSTOPPED(status));
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	raise(SIGSTOP);
	for (;;) {
		pid_t child = fork();

		if (child == 0) {
			for (volatile int turns = 100000; turns; turns--)
				;
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static int compare_pcs(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Reads all buffers until there are so many records; 0: once. */
static void read_live(struct live *live, struct sample_program *sample, size_t until)
{
	do {
		sched_yield();
		for (size_t i = 0; i < live->event_count; i++)
			read_records(live, live->events[i].control);
		assert_int_equal(sample_program_read(sample), 0);
	} while (live->record_count < until);
}

/* The pcs that were counted, each as often as that, are those of the records. */
static void check_pcs(const struct live *live, const struct counts *counts)
{
	uint64_t *ours = calloc(live->record_count, sizeof(*ours));
	uint64_t *theirs = calloc(live->record_count, sizeof(*theirs));
	size_t count = 0;

	assert_non_null(ours);
	assert_non_null(theirs);
	for (size_t i = 0; i < counts->count; i++)
		for (uint64_t j = 0; j < counts->samples[i].count; j++)
			ours[count++] = counts->pcs[counts->samples[i].first_pc];
	for (size_t i = 0; i < live->record_count; i++)
		theirs[i] = live->records[i].pc;
	qsort(ours, count, sizeof(*ours), compare_pcs);
	qsort(theirs, count, sizeof(*theirs), compare_pcs);
	assert_memory_equal(ours, theirs, count * sizeof(*ours));
	free(ours);
	free(theirs);
}

/*
 * The program counts the ticks of which perf has a record, or has lost one: of all tasks; or
 * `family`: of a process and its descendants, which perf knows by their PIDs, but not at the very
 * end of each. Without stacks it counts each pc as often as the records have it. (A stack's leaf
 * may be the instruction after the pc.)
 */
static void check_live(bool stacks, bool family)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER | SAMPLE_KERNEL | SAMPLE_KERNEL_PC,
		.everyone = !family,
		.inherit = family,
		.stacks = stacks,
	};
	const struct member member = { .state = MEMBER_COUNTS };
	struct sample_program sample = { .keeps_records = true };
	struct members members = { 0 };
	struct counts counts = { 0 };
	struct sample_window window;
	struct live live = { 0 };
	uint64_t kernel, known = 0, ended = 0;
	struct error e;
	int err, buffers;

	err = sample_program_load(&sample, &settings, &counts, &e);
	if (err == -EPERM || err == -EACCES)
		skip();
	assert_int_equal(err, 0);
	live.program = bpf_program__fd(sample_program_on_tick(&sample));
	live.root = start_churn();
	live.since_ns = calloc(LIVE_PIDS, sizeof(*live.since_ns));
	assert_non_null(live.since_ns);
	live.since_ns[live.root] = 1;
	if (family) {
		assert_int_equal(members_begin(&members, sample_program_object(&sample), true, &e),
				 0);
		assert_int_equal(members_add(&members, live.root, &member, &e), 0);
	}
	assert_int_equal(cpus_each_online(open_live_event, &live, &e), 0);
	/* It makes so many processes that they may fill the buffers of others. */
	buffers = lock_buffers(LOCK_EX);
	set_live_events(&live, PERF_EVENT_IOC_ENABLE);
	kill(live.root, SIGCONT);
	read_live(&live, &sample, 20000);
	set_live_events(&live, PERF_EVENT_IOC_DISABLE);
	kill(live.root, SIGKILL);
	waitpid(live.root, NULL, 0);
	free_buffers(buffers);
	read_live(&live, &sample, 0);
	for (size_t i = 0; i < live.event_count; i++) {
		munmap(live.events[i].control, sysconf(_SC_PAGESIZE) + RECORDS_BYTES);
		close(live.events[i].fd);
	}
	for (size_t i = 0; i < live.record_count; i++) {
		const struct live_record *record = &live.records[i];
		uint64_t since_ns = record->pid < LIVE_PIDS ? live.since_ns[record->pid] : 0;

		known += since_ns && record->time_ns >= since_ns;
		ended += record->pid == UINT32_MAX;
	}
	window = take_all(&sample, &counts);
	assert_int_equal(window.counters.excluded, 0);
	assert_int_equal(counts_sum(&counts, &kernel) + window.counters.ring_full, window.ticks);
	if (family) {
		/* A record that was lost may be of a fork, of a child that has more ticks. */
		assert_in_range(window.ticks, known, live.lost ? UINT64_MAX : known + ended);
		assert_true(known > 0); /* how many depends on what else runs */
	} else {
		assert_int_equal(window.ticks, live.record_count + live.lost);
	}
	if (!family && !stacks && !live.lost && !window.counters.ring_full)
		check_pcs(&live, &counts);
	free(live.events);
	free(live.records);
	free(live.since_ns);
	members_free(&members);
	sample_program_free(&sample);
	counts_free(&counts);
}

static void test_live_pcs(void **state)
{
	(void)state;
	check_live(false, false);
}

static void test_live_stacks(void **state)
{
	(void)state;
	check_live(true, false);
}

static void test_live_family(void **state)
{
	(void)state;
	check_live(false, true);
}

/* --- Waits --- */

/* This thread leaves its CPU, for the program: none of its real switches is reported to that. */
static void leave(void)
{
	uint64_t arguments[] = { 1 /* TASK_INTERRUPTIBLE */, 0, 0, 0 };

	run(counting->progs.test_leave, arguments, sizeof(arguments));
}

/* The time of all waits that have ended. */
static uint64_t sum_waits(const struct sample_program *sample)
{
	int fd = bpf_object__find_map_fd_by_name(sample_program_object(sample), "waits");
	uint64_t ns = 0;

	for (uint32_t key = 0; key < WAIT_ENTRIES; key++) {
		struct wait_entry entry;

		assert_int_equal(bpf_map_lookup_elem(fd, &key, &entry), 0);
		ns += entry.blocked_ns + entry.runnable_ns;
	}
	return ns;
}

/*
 * The kernel does not report all switches to programs. A thread that leaves its CPU while its wait
 * is under way for the program has gone on unseen: its wait was as long as it has not run, however
 * often it has gone on and left.
 */
static void test_unseen_switches(void **state)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.everyone = true,
		.stacks = true,
		.waits = true,
	};
	const struct timespec pause = { .tv_nsec = 20000000 };
	struct sample_program sample = { .cpu_count = 0 };
	struct counts counts = { 0 };
	uint64_t since = 0, ran_before = 0, slept = 0;

	(void)state;
	load(&sample, &settings, &counts);
	for (uint64_t ended = 0; ended <= 2; ended++) {
		/* Reading a thread's CPU time has the kernel bring its clock up to date. */
		uint64_t all = sum_waits(&sample), before = now_ns(), after;
		uint64_t ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		leave();
		after = now_ns();
		if (ended)
			/* The clock on the wall may be adjusted, by up to 500 ppm. */
			assert_in_range(sum_waits(&sample) - all, slept * .9995,
					after - since - (ran - ran_before) +
						(after - since) / 2000);
		else
			assert_int_equal(sum_waits(&sample), 0);
		since = before;
		/* After it: what this thread runs around leave() is not in the CPU time of the
		 * wait. */
		ran_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		slept = 0;
		for (uint64_t i = 0; i <= ended; i++) {
			uint64_t end;

			assert_int_equal(nanosleep(&pause, NULL), 0);
			slept += pause.tv_nsec;
			end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + pause.tv_nsec;
			while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
				;
		}
	}
	sample_program_free(&sample);
	counts_free(&counts);
}

/* How many of so many different stacks in which a user's thread waits have entries. */
static uint64_t wait_as(uid_t uid, uint64_t different)
{
	uint64_t arguments[] = { FIRST_PC, different, different, ID + uid };
	uint32_t count;

	/* Of this thread alone, which keeps its privileges: they follow the effective user. */
	assert_int_equal(syscall(SYS_setresuid, uid, -1, -1), 0);
	count = run(counting->progs.test_leave, arguments, sizeof(arguments));
	assert_int_equal(syscall(SYS_setresuid, 0, -1, -1), 0);
	return count;
}

/* However many stacks some users' threads wait with: there is room for another one's. */
static void test_shares_of_waits(void **state)
{
	struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.everyone = true,
		.stacks = true,
		.waits = true,
	};
	struct sample_program sample = { .cpu_count = 0 };
	struct counts counts = { 0 };
	uint64_t first;

	(void)state;
	if (getuid())
		skip();
	load(&sample, &settings, &counts);
	first = wait_as(5001, 2ULL * WAIT_ENTRIES);
	assert_in_range(first, WAIT_ENTRIES * 49 / 100, WAIT_ENTRIES / 2);
	assert_int_equal(wait_as(5001, 100000), first);
	assert_in_range(wait_as(5002, WAIT_ENTRIES), WAIT_ENTRIES * 24 / 100, WAIT_ENTRIES / 4);
	assert_int_equal(wait_as(5003, 1000), 1000);
	sample_program_free(&sample);

	/* Where processes were chosen, all is for these. */
	settings.everyone = false;
	load(&sample, &settings, &counts);
	assert_in_range(wait_as(5001, 2ULL * WAIT_ENTRIES), WAIT_ENTRIES * 95 / 100, WAIT_ENTRIES);
	sample_program_free(&sample);
	counts_free(&counts);
}

/* Reads a byte from the first pipe, and then writes one to the second, again and again. */
static pid_t start_answering(const int asks[2], const int answers[2])
{
	pid_t child = fork();
	char byte, call[8] = "";

	assert_true(child >= 0);
	if (!child) {
		close(asks[1]);
		while (read(asks[0], &byte, 1) == 1 && write(answers[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	/* Not "running": it has left its CPU. */
	while (strtol(call, NULL, 10) != SYS_read || !isdigit(*call))
		assert_int_equal(
			file_read_line(proc_path(child, 0, "syscall").text, call, sizeof(call)), 0);
	return child;
}

/*
 * How long a thread waited for a pipe in the window that has ended last until this process ended
 * the wait, by the sums; and by the times.
 */
static void check_woken(struct sample_program *sample, pid_t pid, bool woken)
{
	struct counts counts = { 0 }, wakers = { 0 };
	uint64_t sum_ns = 0, timed_ns = 0;

	assert_int_equal(waits_take(&sample->waits, sample->arena, UINT64_MAX, &counts, &wakers),
			 0);
	for (size_t i = 0; i < counts.count; i++) {
		const struct counted *wait = &counts.samples[i];
		pid_t waker = 0;

		if (sample_id_tgid(wait->id) != (uint32_t)pid || wait->cpu != WAIT_PIPE)
			continue;
		for (size_t k = 0; k < wakers.count && wait->waker; k++)
			if (wakers.samples[k].entry == wait->waker)
				waker = sample_id_tgid(wakers.samples[k].id);
		if (waker != getpid())
			continue;
		sum_ns += wait->count;
		for (size_t k = 0; k < counts.waits.count; k++)
			timed_ns += counts.waits.waits[k].sample == i
					    ? counts.waits.waits[k].length_ns
					    : 0;
	}
	assert_int_equal(sum_ns > 0, woken);
	assert_int_equal(timed_ns, sum_ns);
	counts_free(&counts);
	counts_free(&wakers);
}

/*
 * Who ends a wait while a window is cut is known: before the old window has ended for this thread,
 * and after it. The thread goes on, and waits again, before the new window has begun for it.
 */
static void test_woken_in_a_cut(void **state)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.everyone = true,
		.stacks = true,
		.windows = true,
		.waits = true,
		.every_wait = true,
	};
	struct sample_program sample = { .cpu_count = 0 };
	const struct wall_settings wall_settings = { .everyone = true, .types = &sample.types };
	struct counts counts = { 0 };
	struct wall wall = { 0 };
	struct error e;
	int asks[2], answers[2], status;
	char byte = 0;

	(void)state;
	load(&sample, &settings, &counts);
	assert_int_equal(wall_open(&wall, &wall_settings, &e), 0);
	for (bool late = false;; late = true) {
		struct waits *w = &sample.waits;
		int64_t offset = wall_clock_offset(&wall);
		pid_t child;

		assert_int_equal(pipe(asks) || pipe(answers), 0);
		if (!late)
			assert_int_equal(waits_attach(w, sample.bpf, false, sample.cpu_count, &e),
					 0);
		if (!w->waking)
			skip();
		assert_int_equal(waits_begin(w, offset, NULL, &e), 0);
		child = start_answering(asks, answers);
		if (late)
			assert_int_equal(
				waits_end(w, offset, sample.arena, false, &sample.barrier, &e), 0);
		else
			*w->paused = 1; /* as waits_end() begins */
		assert_int_equal(write(asks[1], &byte, 1), 1);
		assert_int_equal(read(answers[0], &byte, 1), 1);
		if (!late)
			assert_int_equal(
				waits_end(w, offset, sample.arena, false, &sample.barrier, &e), 0);
		check_woken(&sample, child, !late);
		assert_int_equal(waits_begin(w, offset, NULL, &e), 0);
		assert_int_equal(waits_end(w, offset, sample.arena, late, &sample.barrier, &e), 0);
		check_woken(&sample, child, late);
		for (int i = 0; i < 2; i++) {
			close(asks[i]);
			close(answers[i]);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (late)
			break;
	}
	wall_free(&wall);
	sample_program_free(&sample);
	counts_free(&counts);
}

__attribute__((noinline)) static void nap(long ms, size_t deeper)
{
	const struct timespec length = { .tv_nsec = ms * 1000000 };
	volatile char frame[64 + deeper];

	frame[0] = frame[deeper] = 0;
	assert_int_equal(nanosleep(&length, NULL), 0);
	assert_int_equal(frame[0], frame[deeper]);
}

/*
 * Sleeps five times for 1 ms, and for 20 ms at another place, when the programs have taken such a
 * part of what they may. Sets how long waits with, and without, their stack took.
 */
static void sleep_at_budget(struct sample_program *sample, const struct wall *wall,
			    unsigned int per_cent, uint64_t *with_ns, uint64_t *without_ns)
{
	struct counts counts = { 0 }, wakers = { 0 };
	struct waits *w = &sample->waits;
	int64_t offset = wall_clock_offset(wall);
	struct error e;

	assert_int_equal(waits_begin(w, offset, NULL, &e), 0);
	for (size_t i = 0; i < w->cpus; i++) {
		w->counters[i].begin_ns = 1; /* the clock has run since the machine began */
		w->counters[i].timed_ns = (now_ns() + offset) / 100 * per_cent / WAIT_TIMED_PART;
	}
	for (int i = 0; i < 5; i++) {
		nap(1, 0);
		nap(20, 512);
	}
	assert_int_equal(waits_end(w, offset, sample->arena, false, &sample->barrier, &e), 0);
	assert_int_equal(waits_take(w, sample->arena, UINT64_MAX, &counts, &wakers), 0);
	*with_ns = *without_ns = 0;
	for (size_t i = 0; i < counts.count; i++) {
		const struct counted *wait = &counts.samples[i];

		if (sample_id_tid(wait->id) == (uint32_t)gettid() && wait->cpu == WAIT_SLEEP)
			*(wait->user_depth ? with_ns : without_ns) += wait->count;
	}
	counts_free(&counts);
	counts_free(&wakers);
}

/* Where they take too much time, waits have no stack: first those that will be short. */
static void test_spared_stacks(void **state)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER,
		.everyone = true,
		.stacks = true,
		.windows = true,
		.waits = true,
		.waits_percent = 100,
	};
	struct sample_program sample = { .cpu_count = 0 };
	const struct wall_settings wall_settings = { .everyone = true, .types = &sample.types };
	struct counts counts = { 0 };
	uint64_t with_ns, without_ns;
	struct wall wall = { 0 };
	struct error e;

	(void)state;
	load(&sample, &settings, &counts);
	assert_int_equal(wall_open(&wall, &wall_settings, &e), 0);
	assert_int_equal(waits_attach(&sample.waits, sample.bpf, false, sample.cpu_count, &e), 0);
	sleep_at_budget(&sample, &wall, 50, &with_ns, &without_ns);
	assert_true(with_ns > 100000000 && !without_ns);
	sleep_at_budget(&sample, &wall, 85, &with_ns, &without_ns);
	assert_true(with_ns > 100000000 && without_ns);
	sleep_at_budget(&sample, &wall, 120, &with_ns, &without_ns);
	assert_true(!with_ns && without_ns > 100000000);
	wall_free(&wall);
	sample_program_free(&sample);
	counts_free(&counts);
}

/* A program of perf events as one of a socket: whose context, the packet, has not what it reads. */
static int load_refused(void *object)
{
	struct profil_bpf *bpf = profil_bpf__open();
	struct bpf_program *program;
	int err;

	(void)object;
	if (!bpf)
		return -errno;
	bpf_object__for_each_program(program, bpf->obj)
		bpf_program__set_autoload(program, program == bpf->progs.profil);
	err = bpf_program__set_type(bpf->progs.profil, BPF_PROG_TYPE_SOCKET_FILTER)
		      ?: profil_bpf__load(bpf);
	profil_bpf__destroy(bpf);
	return err;
}

static void test_refused(void **state)
{
	struct error e;
	int err = program_load(load_refused, NULL, &e);

	(void)state;
	if (err == -EPERM)
		skip();
	assert_int_equal(err, -EACCES);
	assert_int_equal(e.kind, ERROR_KERNEL_LACKS);
	if (!strstr(e.what, "prog 'profil': ") ||
	    !strstr(e.what, ": Permission denied: invalid bpf_context access off=") ||
	    !strstr(e.hint, "a newer version of profil"))
		fail_msg("%s; %s", e.what, e.hint);
}

/* Before Linux 6.2, an array of maps refuses a map that has other types than its template. */
static void test_parts_without_types(void **state)
{
	struct sample_bpf *bpf = sample_bpf__open();
	struct bpf_map *map;
	int parts = 0;

	(void)state;
	assert_non_null(bpf);
	bpf_object__for_each_map(map, bpf->obj) {
		const struct bpf_map *part = bpf_map__inner_map(map);

		if (!part)
			continue;
		assert_int_equal(bpf_map__btf_key_type_id(part), 0);
		assert_int_equal(bpf_map__btf_value_type_id(part), 0);
		parts++;
	}
	assert_int_equal(parts, UNWIND_TABLES + 3); /* two ring buffers, and values of contexts */
	sample_bpf__destroy(bpf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pcs),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_full_table_of_stacks),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_one_hash),
		cmocka_unit_test(test_full_members),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_windows_of_stacks),
		cmocka_unit_test(test_windows_with_full_arena),
		cmocka_unit_test(test_parallel),
		cmocka_unit_test(test_parallel_stacks),
		cmocka_unit_test(test_live_pcs),
		cmocka_unit_test(test_live_stacks),
		cmocka_unit_test(test_live_family),
		cmocka_unit_test(test_unseen_switches),
		cmocka_unit_test(test_shares_of_waits),
		cmocka_unit_test(test_woken_in_a_cut),
		cmocka_unit_test(test_spared_stacks),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_parts_without_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
