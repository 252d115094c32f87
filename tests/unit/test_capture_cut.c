// SPDX-License-Identifier: GPL-2.0-only
/* Windows of a recording that goes on: capture_cut(). Needs the privileges to record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/events.h"
#include "symbol/parser.h"
#include "buffers_fixture.h"
#include "util/clock.h"

/* --- Recordings --- */

static const struct capture_options everything = {
	.target = CAPTURE_SYSTEM,
	.event = CAPTURE_CPU_CLOCK,
	.frequency = 997,
	.read_rows = parser_read_rows,
	.windows = true,
	.always_on = true,
};

static struct capture *start(const struct capture_options *options)
{
	struct capture *c;
	struct error e;
	int err = capture_start(options, &c, &e);

	if (err == -EPERM || err == -EACCES)
		skip();
	if (err)
		print_error("%s\n", e.what);
	assert_int_equal(err, 0);
	return c;
}

struct seen {
	uint64_t sum, of_pid;
	pid_t pid; /* 0: of any */
};

static int see(const struct capture_sample *sample, void *context)
{
	struct seen *seen = context;

	assert_true(sample->ticks.count > 0);
	seen->sum += sample->ticks.count;
	seen->of_pid += sample->pid == seen->pid ? sample->ticks.count : 0;
	return 0;
}

/* All of a window's ticks are in its samples, or lost. Returns how many there were. */
static uint64_t check_window(struct capture *c, struct seen *seen, uint64_t after_ns)
{
	struct capture_totals totals;

	seen->sum = 0;
	assert_int_equal(capture_each_sample(c, CAPTURE_TICKS, see, seen), 0);
	capture_totals(c, &totals);
	assert_int_equal(totals.counted, seen->sum);
	assert_int_equal(totals.ticks, totals.counted + totals.excluded + totals.ring_full);
	assert_true(totals.kernel <= totals.counted && totals.ring <= totals.counted);
	assert_true(totals.start_time_ns >= after_ns);
	/* It is over. The clock of files may be adjusted meanwhile. */
	assert_true(totals.duration_ns > 0 && totals.start_time_ns + totals.duration_ns <
						      clock_ns(CLOCK_REALTIME) + NS_PER_S);
	return totals.ticks;
}

static void cut(struct capture *c)
{
	struct error e;

	assert_int_equal(capture_cut(c, &e), 0);
}

static void stop_capture(struct capture *c)
{
	struct error e;

	assert_int_equal(capture_stop(c, &e), 0);
}

/* --- Processes --- */

/* Runs until its parent ends. */
static pid_t start_busy_child(void)
{
	pid_t parent = getpid(), child = fork();

	if (child)
		return child;
	for (volatile uint64_t i = 0; getppid() == parent; i++)
		;
	_exit(0);
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Starts processes that run a program, and some that do not; a few milliseconds each. */
static void run_short_processes(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		pid_t child = fork();

		if (child == 0) {
			for (volatile unsigned int k = 0; k < 300000; k++)
				;
			if (i % 2)
				execl("/bin/true", "true", NULL);
			_exit(0);
		}
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
}

/* --- Windows --- */

#define WINDOWS 40

/*
 * Windows end while processes come and go: each has all of its ticks, and they follow each other.
 * They go on until the busy child has had a CPU at a tick.
 */
static void record(enum capture_event event, enum capture_stacks stacks)
{
	struct capture_options options = everything;
	struct seen seen = { .pid = start_busy_child() };
	struct capture *c;
	struct capture_totals totals;
	uint64_t ticks = 0, end_ns = 0;

	options.event = event;
	options.frequency = event == CAPTURE_TICK ? 0 : options.frequency;
	options.stacks = stacks;
	c = start(&options);
	for (size_t i = 0; i < WINDOWS || !seen.of_pid; i++) {
		run_short_processes(i % 4);
		cut(c);
		/* The clock of files may be adjusted by some milliseconds. */
		ticks += check_window(c, &seen, end_ns ? end_ns - NS_PER_MS : 0);
		capture_totals(c, &totals);
		end_ns = totals.start_time_ns + totals.duration_ns;
	}
	stop_capture(c);
	ticks += check_window(c, &seen, end_ns - NS_PER_MS);
	assert_true(ticks > 0 && seen.of_pid > 0);
	capture_free(c);
	end(seen.pid);
}

static void test_pcs(void **state)
{
	(void)state;
	record(CAPTURE_CPU_CLOCK, CAPTURE_NO_STACKS);
}

static void test_frame_pointers(void **state)
{
	(void)state;
	record(CAPTURE_CPU_CLOCK, CAPTURE_STACKS_FP);
}

static void test_frame_information(void **state)
{
	(void)state;
	record(CAPTURE_CPU_CLOCK, CAPTURE_STACKS_CFI);
}

static void test_tick(void **state)
{
	(void)state;
	record(CAPTURE_TICK, CAPTURE_STACKS_CFI);
}

static void test_tick_pcs(void **state)
{
	(void)state;
	record(CAPTURE_TICK, CAPTURE_NO_STACKS);
}

static int see_first(const struct capture_sample *sample, void *context)
{
	uint64_t *first_ns = context;

	for (uint64_t i = 0; sample->ticks.times && i < sample->ticks.count; i++)
		if (sample->ticks.times[i] < *first_ns)
			*first_ns = sample->ticks.times[i];
	return 0;
}

/*
 * The first window begins when its ticks do, though attaching the programs that follow threads, and
 * reading what processes have mapped, takes as long as some ticks: else they are too many for it.
 */
static void test_begin(void **state)
{
	struct capture_options options = everything;
	pid_t busy = start_busy_child();
	uint64_t first_ns = UINT64_MAX;
	struct capture_totals totals;
	struct capture *c;

	(void)state;
	options.wall = true;
	options.frequency = 9973;
	c = start(&options);
	while (!capture_ticks(c))
		sched_yield();
	cut(c);
	assert_int_equal(capture_each_sample(c, CAPTURE_TICKS, see_first, &first_ns), 0);
	capture_totals(c, &totals);
	assert_true(totals.counted > 0 && first_ns != UINT64_MAX);
	assert_true(first_ns >= totals.start_ns);
	capture_free(c);
	end(busy);
}

/* The account may be a tick of the scheduler behind. */
#define BEHIND_NS (10 * NS_PER_MS)

static uint64_t cpu_time(pid_t pid)
{
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	return clock_ns(clock);
}

/* Of a process the windows have all ticks too, and all of its CPU time. */
static void test_process(void **state)
{
	pid_t child = start_busy_child();
	struct capture_options options = everything;
	struct capture_totals totals;
	struct seen seen = { .pid = child };
	uint64_t cpu_ns = 0, begin_ns, started_ns, last_ns;
	struct capture *c;

	(void)state;
	options.target = CAPTURE_PROCESSES;
	options.pids = &child;
	options.pid_count = 1;
	options.user = true; /* the others are excluded */
	options.stacks = CAPTURE_STACKS_CFI;
	begin_ns = cpu_time(child);
	c = start(&options);
	started_ns = cpu_time(child);
	for (size_t i = 0; i < WINDOWS; i++) {
		usleep(20000);
		last_ns = cpu_time(child);
		if (i == WINDOWS - 1)
			stop_capture(c);
		else
			cut(c);
		check_window(c, &seen, 0);
		assert_int_equal(seen.of_pid, seen.sum);
		seen.of_pid = 0;
		capture_totals(c, &totals);
		cpu_ns += totals.cpu_ns;
	}
	assert_in_range(cpu_ns + BEHIND_NS, last_ns - started_ns,
			cpu_time(child) - begin_ns + 2 * BEHIND_NS);
	capture_free(c);
	end(child);
}

/* --- What has ended --- */

static const char *program_name(unsigned int round, unsigned int number)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/profil-cut-%d-%u-%u", getpid(), round, number);
	return path;
}

#define ROUNDS	  8
#define PROCESSES 40
#define PROGRAMS  5
/* What ends in a window may be known until the next one ends, and for a second. */
#define KNOWN	 3
#define ROUND_NS (600 * NS_PER_MS)

/* Runs programs that are new, and that no process will run again, and others. */
static void run_round(unsigned int round)
{
	uint64_t end_ns = now_ns() + ROUND_NS;
	char command[256];

	for (unsigned int i = 0; i < PROGRAMS; i++) {
		const char *path = program_name(round, i);

		snprintf(command, sizeof(command), "cp /bin/true '%s' && '%s'", path, path);
		assert_int_equal(system(command), 0);
		unlink(path);
	}
	run_short_processes(PROCESSES);
	while (now_ns() < end_ns)
		usleep(10000);
}

/* Whether a link, or a path, names a program of a round that should be forgotten. */
static bool is_old_program(const char *path, unsigned int round)
{
	for (unsigned int i = 0; i + KNOWN < round; i++)
		for (unsigned int k = 0; k < PROGRAMS; k++) {
			const char *name = program_name(i, k);

			if (strncmp(path, name, strlen(name)) == 0)
				return true;
		}
	return false;
}

static void check_open_files(unsigned int round)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[256];

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		ssize_t size =
			readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		target[size > 0 ? size : 0] = '\0';
		assert_false(is_old_program(target, round));
	}
	closedir(directory);
}

static void check_images(const struct capture *c, unsigned int round)
{
	const struct capture_image *images;
	size_t count;

	images = capture_images(c, &count);
	for (size_t i = 0; i < count; i++)
		assert_false(images[i].path && is_old_program(images[i].path, round));
}

/*
 * Of the programs that were run the recording knows those of the last windows: an image is known
 * for as long as a process that has mapped it.
 */
static void test_ended(void **state)
{
	struct capture_options options = everything;
	struct seen seen = { .pid = 0 };
	struct capture *c;

	(void)state;
	options.stacks = CAPTURE_STACKS_CFI;
	c = start(&options);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		run_round(i);
		cut(c);
		check_window(c, &seen, 0);
		check_images(c, i);
		check_open_files(i);
	}
	stop_capture(c);
	capture_free(c);
}

/* --- Mappings that are missing --- */

static void map_and_unmap(unsigned int count)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	size_t page = sysconf(_SC_PAGESIZE);

	for (unsigned int i = 0; i < count; i++) {
		void *memory = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		munmap(memory, page);
	}
	close(fd);
}

static void map_on_each_cpu(unsigned int count)
{
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
			map_and_unmap(count);
		}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* A byte from the child that has the other end of the pipe: it has come so far. */
static void wait_for_byte(const int ends[2])
{
	char byte;

	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
}

/* Runs this program again: as a process that is busy until it is ended. Returns when it is. */
static pid_t run_busy_program(void)
{
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execl("/proc/self/exe", "test_capture_cut", "busy", NULL);
		_exit(1);
	}
	wait_for_byte(ends);
	return child;
}

struct mapped {
	pid_t pid;
	uint64_t mapped, unknown;
};

static int see_mapped(const struct capture_sample *sample, void *context)
{
	struct mapped *m = context;
	const struct capture_frame *root = &sample->frames[sample->depth - 1];

	if (sample->pid != m->pid || !sample->user_depth)
		return 0;
	if (root->mapping)
		m->mapped += sample->ticks.count;
	else
		m->unknown += sample->ticks.count;
	return 0;
}

/* Cuts until there are many samples of the process. */
static struct mapped cut_until_mapped(struct capture *c, pid_t pid)
{
	struct mapped m = { .pid = pid };

	while (m.mapped + m.unknown < 20) {
		usleep(100000);
		cut(c);
		assert_int_equal(capture_each_sample(c, CAPTURE_TICKS, see_mapped, &m), 0);
	}
	return m;
}

/* A program whose records were lost is known after the next cut. */
static void test_lost_records(void **state)
{
	struct capture_options options = everything;
	struct capture_totals totals;
	struct capture *c;
	struct mapped m;
	uint64_t lost;
	int buffers;

	(void)state;
	c = start(&options);
	buffers = lock_buffers(LOCK_EX);
	map_on_each_cpu(20000);
	m.pid = run_busy_program();
	cut(c);
	capture_totals(c, &totals);
	lost = totals.mapping_records_lost;
	map_on_each_cpu(1); /* with the next record the kernel reports that it lost some */
	cut(c);
	capture_totals(c, &totals);
	assert_true(lost + totals.mapping_records_lost > 0);
	m = cut_until_mapped(c, m.pid);
	free_buffers(buffers);
	assert_int_equal(m.unknown, 0);
	end(m.pid);
	stop_capture(c);
	capture_free(c);
}

/* --- Inherited mappings --- */

/* A busy process, the parent of which ends: sends its PID to the pipe. */
static pid_t start_orphan(void)
{
	pid_t test = getpid(), parent, orphan;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	parent = fork();
	if (parent == 0) {
		orphan = fork();
		if (orphan == 0) {
			for (volatile uint64_t i = 0; i % 1000000 || kill(test, 0) == 0; i++)
				;
			_exit(0);
		}
		_exit(write(ends[1], &orphan, sizeof(orphan)) != sizeof(orphan));
	}
	assert_int_equal(read(ends[0], &orphan, sizeof(orphan)), sizeof(orphan));
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	close(ends[0]);
	close(ends[1]);
	return orphan;
}

struct orphan {
	struct capture *c;
	pid_t pid;
	uint64_t count, settled_count;
	bool settled; /* its mappings have been published as its own */
};

static int see_orphan(const struct capture_sample *sample, void *context)
{
	struct orphan *o = context;
	const struct capture_frame *root = &sample->frames[sample->depth - 1];
	size_t count;

	if (sample->pid != o->pid || !sample->user_depth)
		return 0;
	/*
	 * The kernel finds no parent's mappings any more; on a busy machine not every stack is
	 * copied.
	 */
	if (!o->settled && sample->end == UNWIND_NO_PROCESS)
		return 0;
	/* From start_orphan() to the C library's start of main(), or the dynamic linker. */
	assert_int_equal(sample->end, UNWIND_COMPLETE);
	assert_true(sample->user_depth >= 4);
	assert_non_null(root->mapping);
	assert_true(root->mapping->image < (capture_images(o->c, &count), count));
	assert_non_null(strstr(capture_images(o->c, &count)[root->mapping->image].path,
			       "test_capture_cut"));
	o->count += sample->ticks.count;
	o->settled_count += o->settled ? sample->ticks.count : 0;
	return 0;
}

/* A process that has not called exec keeps the mappings of its parent, which has ended. */
static void test_orphan(void **state)
{
	struct capture_options options = everything;
	struct orphan o = { .count = 0 };
	int buffers = lock_buffers(LOCK_SH);

	(void)state;
	options.stacks = CAPTURE_STACKS_CFI;
	o.c = start(&options);
	o.pid = start_orphan();
	/* The parent is kept for a second after its end; the cut after that settles the orphan. */
	for (uint64_t begin_ns = now_ns(), cuts = 0; !o.settled_count || o.count <= 50;) {
		usleep(100000);
		cuts += now_ns() > begin_ns + 1200 * NS_PER_MS;
		cut(o.c);
		run_short_processes(2);
		assert_int_equal(capture_each_sample(o.c, CAPTURE_TICKS, see_orphan, &o), 0);
		o.settled = cuts >= 2;
	}
	kill(o.pid, SIGKILL);
	stop_capture(o.c);
	capture_free(o.c);
	free_buffers(buffers);
}

/* --- Where a process belongs --- */

/* Makes a control group in the hierarchy that is reported. Returns false if that is impossible. */
static bool make_group(char *path, size_t size)
{
	FILE *table = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;

	path[0] = '\0';
	while (table && (entry = getmntent(table)))
		if (strcmp(entry->mnt_type, "cgroup2") == 0 ||
		    (!path[0] && strcmp(entry->mnt_type, "cgroup") == 0 &&
		     hasmntopt(entry, "name=systemd")))
			snprintf(path, size, "%s/profil-cut-%d", entry->mnt_dir, getpid());
	if (table)
		endmntent(table);
	return path[0] && mkdir(path, 0755) == 0;
}

static void move_to_group(pid_t pid, const char *path)
{
	char name[512];
	FILE *file;

	snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	file = fopen(name, "we");
	assert_non_null(file);
	fprintf(file, "%d\n", pid);
	assert_int_equal(fclose(file), 0);
}

struct named {
	pid_t parent;
	int told; /* the end of a pipe */
};

static void *be_busy(void *argument)
{
	const struct named *named = argument;

	prctl(PR_SET_NAME, "a thread");
	if (write(named->told, "", 1) != 1)
		_exit(1);
	while (getppid() == named->parent)
		;
	return NULL;
}

#define NOBODY 65534

/*
 * A process with two busy threads, the names of which differ, on one CPU, of user nobody. Returns
 * when all of that is so: before, samples have other names.
 */
static pid_t start_named_child(void)
{
	struct named named = { .parent = getpid() };
	pthread_t thread;
	cpu_set_t one;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	named.told = ends[1];
	child = fork();
	if (child) {
		wait_for_byte(ends);
		return child;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "the leader");
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || setuid(NOBODY) ||
	    pthread_create(&thread, NULL, be_busy, &named))
		_exit(1);
	while (getppid() == named.parent)
		;
	_exit(0);
}

struct origins {
	pid_t pid;
	const char *group; /* the last part of its path; NULL: any */
	bool is_older;
	uint64_t leader, thread; /* samples of each */
};

static int see_origin(const struct capture_sample *sample, void *context)
{
	struct origins *o = context;

	if (sample->pid != o->pid)
		return 0;
	assert_string_equal(sample->process_comm, "the leader");
	if (sample->tid == sample->pid)
		o->leader += sample->ticks.count;
	else
		o->thread += sample->ticks.count;
	assert_string_equal(sample->comm, sample->tid == sample->pid ? "the leader" : "a thread");
	assert_int_equal(sample->uid, NOBODY);
	assert_int_equal(sample->ticks.cpu, 0);
	assert_int_equal(sample->is_older, o->is_older);
	assert_non_null(sample->cgroup);
	assert_true(sample->cgroup[0] == '/');
	if (o->group)
		assert_string_equal(strrchr(sample->cgroup, '/') + 1, o->group);
	return 0;
}

/* Cuts until a window has samples of both threads. */
static void cut_until_seen(struct capture *c, struct origins *o)
{
	o->leader = o->thread = 0;
	while (!o->leader || !o->thread) {
		usleep(50000);
		cut(c);
		assert_int_equal(capture_each_sample(c, CAPTURE_TICKS, see_origin, o), 0);
		o->is_older = true;
	}
}

/* Names, user and CPU of a process that begins in the first window; then it moves to a group. */
static void test_origins(void **state)
{
	struct capture_options options = everything;
	char group[256];
	bool has_group;
	struct origins o = { .is_older = false };
	struct capture *c;
	int buffers;

	(void)state;
	if (geteuid() != 0)
		skip();
	buffers = lock_buffers(LOCK_SH);
	options.stacks = CAPTURE_STACKS_FP;
	c = start(&options);
	o.pid = start_named_child();
	cut(c); /* with samples from before it had its name */
	o.is_older = true;
	cut_until_seen(c, &o);
	has_group = make_group(group, sizeof(group));
	if (has_group) {
		move_to_group(o.pid, group);
		o.group = strrchr(group, '/') + 1;
		cut_until_seen(c, &o);
	}
	end(o.pid);
	assert_true(!has_group || rmdir(group) == 0);
	stop_capture(c);
	capture_free(c);
	free_buffers(buffers);
}

/* --- Labels of waits that go on --- */

static __thread const char *volatile works_for;

struct labelled {
	int begin, told; /* ends of pipes */
	bool is_later;	 /* its threads are there, and wait, before they work for anything */
	const char *name;
};

static void *wait_with_label(void *argument)
{
	const struct labelled *l = argument;
	char text[32], byte;

	snprintf(text, sizeof(text), "%s of %lx", l->name, (unsigned long)&text);
	/* Letters alone: constants are one. */
	for (char *c = text; *c; c++)
		*c += *c >= '0' && *c <= '9' ? 'g' - '0' : 0;
	if (l->is_later && (write(l->told, "", 1) != 1 || read(l->begin, &byte, 1) != 1))
		_exit(1);
	works_for = text;
	if (write(l->told, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Writes so many bytes to a process, and reads one of each of its threads. */
static void turn(int begin, size_t bytes, int told, size_t threads)
{
	char byte = 0;

	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(write(begin, &byte, 1), 1);
	for (size_t i = 0; i < threads; i++)
		assert_int_equal(read(told, &byte, 1), 1);
}

/* A process that has so many threads when it has read a byte. Returns its PID, and its pipes. */
static pid_t start_labelled(struct labelled l, size_t threads, uid_t uid, int *begin, int *told)
{
	int begins[2], tells[2];
	pthread_attr_t small;
	pthread_t thread;
	char byte;
	pid_t child;

	assert_int_equal(pipe(begins) | pipe(tells), 0);
	child = fork();
	if (child) {
		close(begins[0]);
		close(tells[1]);
		*begin = begins[1];
		*told = tells[0];
		return child;
	}
	l.begin = begins[0];
	l.told = tells[1];
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	if (setuid(uid) || prctl(PR_SET_PDEATHSIG, SIGKILL) || read(l.begin, &byte, 1) != 1)
		_exit(1);
	for (size_t i = 0; i < threads; i++)
		if (pthread_create(&thread, &small, wait_with_label, &l))
			_exit(1);
	for (;;)
		pause();
}

struct labels_seen {
	const struct capture *c;
	pid_t pids[2];
	uint64_t without, others, with;
};

static int see_label(const struct capture_sample *sample, void *context)
{
	struct labels_seen *seen = context;
	static struct context_text texts[CONTEXT_TEXTS_MAX];

	if (sample->tid == sample->pid || sample->waits.reason == WAIT_CPU ||
	    (sample->pid != seen->pids[0] && sample->pid != seen->pids[1]))
		return 0;
	if (!capture_context(seen->c, sample, texts))
		seen->without++;
	else if (strcmp(texts[0].text, context_others) == 0)
		seen->others++;
	else
		seen->with++;
	return 0;
}

/*
 * Values are in the table in the order in which threads wait; those of waits that go on are carried
 * into the next window's in the order of threads' numbers. So those of the second user have less
 * room there than before, as the first user's come first.
 */
static void test_carried_labels(void **state)
{
	static const struct context_wishes wishes = {
		.wishes[0] = { .label = "for", .symbol = "works_for" },
		.count = 1,
	};
	/* Of 4,064 values, the second user may have as many as are still free. */
	enum {
		FIRST = 1000,
		SECOND = 1900
	};
	struct capture_options options = everything;
	struct labels_seen seen = { 0 };
	struct capture_totals totals;
	struct capture *c;
	int begin[2], told[2];

	(void)state;
	if (geteuid() != 0)
		skip();
	seen.pids[0] = start_labelled((struct labelled){ .is_later = true, .name = "first" }, FIRST,
				      0, &begin[0], &told[0]);
	seen.pids[1] = start_labelled((struct labelled){ .name = "second" }, SECOND, NOBODY,
				      &begin[1], &told[1]);
	options.target = CAPTURE_PROCESSES;
	options.pids = seen.pids;
	options.pid_count = 2;
	options.always_on = false;
	options.stacks = CAPTURE_STACKS_CFI;
	options.wall = options.waits = true;
	options.wishes = &wishes;
	c = start(&options);
	turn(begin[0], 1, told[0], FIRST);
	turn(begin[1], 1, told[1], SECOND);
	turn(begin[0], FIRST, told[0], FIRST);
	cut(c);
	stop_capture(c);
	seen.c = c;
	assert_int_equal(capture_each_sample(c, CAPTURE_WAITS, see_label, &seen), 0);
	capture_totals(c, &totals);
	assert_int_equal(seen.without, 0);
	assert_true(seen.with > 0 && seen.others > 0);
	assert_int_equal(totals.context_others, seen.others);
	capture_free(c);
	for (int i = 0; i < 2; i++) {
		end(seen.pids[i]);
		close(begin[i]);
		close(told[i]);
	}
}

/* A user starts more processes than a window may have: it is full until it is cut. */
static void test_full(void **state)
{
	int buffers = lock_buffers(LOCK_SH);
	struct capture_options options = everything;
	struct capture *c;
	struct error e;

	(void)state;
	options.window_bytes = 512 * 1024;
	c = start(&options);
	assert_false(capture_is_full(c));
	for (int i = 0; i < 1500; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		if (i % 100 == 0)
			assert_int_equal(capture_handle(c, &e), 0);
	}
	assert_int_equal(capture_handle(c, &e), 0);
	assert_true(capture_is_full(c));
	cut(c);
	assert_false(capture_is_full(c));
	stop_capture(c);
	capture_free(c);
	free_buffers(buffers);
}

/* What an interrupt costs is measured again: when the last time is old, CPUs differ, or none was.
 */
static void test_tick_cost(void **state)
{
	struct tick_cost cost = { 0 };
	const uint64_t now = now_ns(), long_ns = 1000 * NS_PER_S;

	(void)state;
	for (int i = 0; i < 100 && !cost.ns; i++) /* a busy machine */
		tick_cost_update(&cost, now);
	if (!cost.ns)
		skip();
	cost.ns = long_ns; /* as of a machine that was busy just then */
	tick_cost_update(&cost, now + NS_PER_S);
	assert_int_equal(cost.ns, long_ns);
	for (int i = 0; i < 100 && cost.ns == long_ns; i++)
		tick_cost_update(&cost, cost.next_ns);
	assert_in_range(cost.ns, 1, long_ns - 1);
	cost.ns = long_ns;
	for (int i = 0; i < 100 && cost.ns == long_ns; i++) {
		cost.cpus++;
		tick_cost_update(&cost, cost.next_ns - 1);
	}
	assert_in_range(cost.ns, 1, long_ns - 1);
}

/* --- Tables that fill up --- */

static unsigned int path = 1;

/* Calls itself from one of two places at each level, so that hardly any two stacks are equal. */
__attribute__((noipa, optimize("no-omit-frame-pointer", "no-optimize-sibling-calls"))) static void
descend(int levels)
{
	path = path * 1664525 + 1013904223;
	if (!levels)
		for (volatile int i = 0; i < 100000; i++)
			;
	else if (path >> 31)
		descend(levels - 1);
	else
		descend(levels - 1);
	path++; /* behind the call, so that it does not become a jump */
}

/*
 * Deep stacks that all differ, more than the table has room for: it is taken before it is full, so
 * that few go through the ring buffer, and all are counted.
 */
static void test_filled_tables(void **state)
{
	pid_t parent = getpid(), child = fork();
	struct capture_options options = everything;
	struct seen seen = { .pid = child };
	struct capture_totals totals;
	struct capture *c;
	struct error e;

	(void)state;
	while (!child && getppid() == parent)
		descend(125);
	if (!child)
		_exit(0);
	options.target = CAPTURE_PROCESSES;
	options.pids = &child;
	options.pid_count = 1;
	options.stacks = CAPTURE_STACKS_FP;
	options.windows = options.always_on = false;
	c = start(&options);
	while (capture_ticks(c) < 3000) {
		assert_int_equal(capture_handle(c, &e), 0);
		poll(NULL, 0, 10);
	}
	stop_capture(c);
	assert_true(check_window(c, &seen, 0) >= 3000);
	capture_totals(c, &totals);
	assert_true(totals.ring < totals.counted / 10);
	assert_int_equal(seen.of_pid, totals.counted);
	capture_free(c);
	end(child);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tick_cost),
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_pcs),
		cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_frame_information),
		cmocka_unit_test(test_tick),
		cmocka_unit_test(test_tick_pcs),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_filled_tables),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_orphan),
		cmocka_unit_test(test_lost_records),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_carried_labels),
		cmocka_unit_test(test_full),
	};

	(void)argv;
	if (argc > 1) { /* see run_busy_program() */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(STDOUT_FILENO, "", 1) != 1)
			return 1;
		for (volatile uint64_t i = 0;; i++)
			;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
