/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For programs that use /dev/profil directly, without libprofil: tables of rows as in profil_row.h,
 * of three kinds:
 *
 *   any      run as uid nobody, whoever starts the program
 *   root     needs root
 *   exact    any, on a machine where each tick comes in time, because its clock counts instructions
 */
#ifndef TESTS_KMOD_DEVICE_H
#define TESTS_KMOD_DEVICE_H

#include "kmod/device.h"
#include "tests/progs/profil_row.h"

#include <grp.h>
#include <sys/ioctl.h>

#define PAGE   ((size_t)sysconf(_SC_PAGESIZE))
#define NOBODY 65534

/*
 * How often a row repeats what goes wrong by chance, if it does: a tenth of that in brief, where an
 * emulated machine takes minutes for all.
 */
static inline int rounds(int all)
{
	return getenv("PROFIL_TEST_BRIEF") ? all / 10 : all;
}

/* --- The device --- */

static inline int open_device(void)
{
	int device = open(PROFIL_DEVICE, O_RDWR | O_CLOEXEC);

	need(device >= 0, PROFIL_DEVICE);
	return device;
}

/* Kept open. A call does not belong to it, but to who makes it: so a child may use it, too. */
static inline int device(void)
{
	static int kept = -1;

	if (kept < 0)
		kept = open_device();
	return kept;
}

static inline __u64 address(const volatile void *pointer)
{
	return (uintptr_t)pointer;
}

static inline int set_regions(unsigned int flags, const struct profil_device_region *regions,
			      unsigned int count)
{
	struct profil_device_set set = {
		.size = sizeof(set),
		.flags = flags,
		.hz = rate_hz(),
		.region_count = count,
		.regions = address(regions),
	};

	return ioctl(device(), PROFIL_IOC_SET, &set);
}

/* Every pc that there is in one cell, the first. */
static inline struct profil_device_region everywhere(const volatile void *buffer, __u64 bufsiz)
{
	return (struct profil_device_region){
		.last = ~0ULL,
		.buffer = address(buffer),
		.bufsiz = bufsiz,
	};
}

/* The spinner's, two bytes of code in a 16-bit cell. */
static inline struct profil_device_region hot_region(const volatile void *buffer, __u64 bufsiz)
{
	return (struct profil_device_region){
		.first = address(__start_hot),
		.last = address(__stop_hot) - 1,
		.offset = address(__start_hot),
		.buffer = address(buffer),
		.bufsiz = bufsiz,
		.scale = 0x10000,
	};
}

/* Sets it on, with a 32-bit cell that counts everything. */
static inline int set_cell(volatile uint32_t *cell)
{
	struct profil_device_region region = everywhere(cell, sizeof(*cell));

	return set_regions(PROFIL_WIDE, &region, 1);
}

static inline void turn_on(volatile uint32_t *cell)
{
	need(set_cell(cell) == 0, "SET");
}

static inline int turn_off(void)
{
	return ioctl(device(), PROFIL_IOC_OFF);
}

/* Prints an error if the account does not add up. */
static inline struct profil_device_query query(void)
{
	struct profil_device_query now = { .size = sizeof(now) };

	expect(ioctl(device(), PROFIL_IOC_QUERY, &now) == 0, "QUERY: %m");
	expect(now.ticks == now.counted + now.out_of_range + now.lost,
	       "%llu ticks are not %llu counted, %llu out of range and %llu lost", now.ticks,
	       now.counted, now.out_of_range, now.lost);
	expect(now.kernel <= now.counted, "%llu in the kernel of %llu counted", now.kernel,
	       now.counted);
	return now;
}

static inline bool is_on(void)
{
	return query().flags & PROFIL_ON;
}

/* --- Time --- */

static inline double seconds(clockid_t clock)
{
	return clock_ns(clock) / 1e9;
}

/* Burns until that many more ticks are counted. Prints an error if they do not come. */
static inline void burn_counted(unsigned int ticks)
{
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + 5;
	__u64 due = query().counted + ticks;

	while (query().counted < due) {
		spin_hot(10000);
		if (!expect(seconds(CLOCK_THREAD_CPUTIME_ID) < end, "no tick in 5 s of CPU time"))
			return;
	}
}

/* Burns until profiling is off. Prints an error if it stays on. */
static inline void burn_to_off(void)
{
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + 2;

	while (is_on()) {
		spin_hot(10000);
		if (!expect(seconds(CLOCK_THREAD_CPUTIME_ID) < end, "on after 2 s of CPU time"))
			return;
	}
}

/* What the cell had before this process counted in it: a child's is a copy of its parent's. */
static inline uint32_t not_counted(const volatile uint32_t *cell)
{
	__u64 counted;
	uint32_t now;

	do {
		now = *cell;
		counted = query().counted;
	} while (now != *cell);
	return now - counted;
}

/* Reads a cell, queries, and reads again: the query must be between both. */
static inline void expect_exact(const char *when, const volatile uint32_t *cell, uint32_t begin)
{
	uint32_t before = *cell - begin;
	__u64 counted = query().counted;
	uint32_t after = *cell - begin;

	expect(before <= counted && counted <= after, "%s: %llu counted, of cells %u to %u", when,
	       counted, before, after);
}

/* That it works as if nothing had been. */
static inline void expect_alive(void)
{
	static volatile uint32_t cell;

	cell = 0;
	turn_on(&cell);
	burn_counted(2);
	expect_exact("on again", &cell, 0);
	expect(turn_off() == 0, "OFF: %m");
	expect(!is_on(), "on after OFF");
}

/* --- Memory --- */

/* Private memory of whole pages, of its own. */
static inline void *make_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	return memory;
}

#define GUARD 0x5a

/* How many bytes are not as they were made. */
static inline size_t count_changed(const volatile void *memory, size_t size)
{
	const volatile unsigned char *bytes = memory;
	size_t changed = 0;

	for (size_t i = 0; i < size; i++)
		changed += bytes[i] != GUARD;
	return changed;
}

static inline bool expect_guarded(const char *what, const volatile void *memory, size_t size)
{
	size_t changed = count_changed(memory, size);

	return expect(changed == 0, "%s: %zu bytes were written", what, changed);
}

/* What rows count in, that need no more than a cell. */
static volatile uint32_t cells32[4];

/* --- Processes --- */

static inline void become_nobody(void)
{
	if (geteuid())
		return;
	need(setgroups(0, NULL) == 0, "setgroups");
	need(setresgid(NOBODY, NOBODY, NOBODY) == 0, "setresgid");
	need(setresuid(NOBODY, NOBODY, NOBODY) == 0, "setresuid");
}

static inline void expect_in_child(void (*run)(void), const char *name)
{
	pid_t child = fork();

	if (child == 0) {
		run();
		_exit(wrong);
	}
	expect_well(child, name);
}

static inline void start_threads(pthread_t *threads, int count, void *(*run)(void *))
{
	for (int i = 0; i < count; i++)
		need(pthread_create(&threads[i], NULL, run, NULL) == 0, "pthread_create");
}

static inline void join_threads(pthread_t *threads, int count)
{
	for (int i = 0; i < count; i++)
		need(pthread_join(threads[i], NULL) == 0, "pthread_join");
}

static inline int run_kmod_row(int argc, char **argv, const struct row *rows, size_t count)
{
	setenv("PROFIL_HZ", "1000", 0);
	for (size_t i = 0; argc == 2 && i < count; i++)
		if (strcmp(argv[1], rows[i].name) == 0 && strcmp(rows[i].where, "root") != 0)
			become_nobody();
	return run_row(argc, argv, rows, count);
}

#endif
