// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod_fuzz SECONDS [SEED]: as uid nobody, makes random calls of /dev/profil, and changes at random
 * the memory, threads and processes that they apply to. Prints the seed, and exits 0 if a process
 * can still be counted at the end. Errors are in the kernel's log.
 *
 * A few workers run lives, one after the other: processes with a hundred random actions and some
 * threads. The actions of a life are determined by its seed, except for scheduling.
 */
#include "kmod_device.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define WORKERS	       4
#define MOST_PROCESSES 60
#define MOST_THREADS   6
#define DEEDS	       100
#define ARENA	       (640 * PAGE) /* more than a huge page */
#define ARENA_PLACE    0x20000000   /* so low that its holes are the last to be given to others */
#define FILE_SIZE      (64 * PAGE)
#define MOST_REGIONS   2100

extern char **environ;

static char program[4096];

/* --- Chance --- */

static __thread uint64_t state; /* never 0 */

static void seed_by(uint64_t seed)
{
	state = (2 * seed + 1) * 0x9e3779b97f4a7c15;
}

static uint64_t random_bits(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t below(uint64_t limit)
{
	return (random_bits() >> 11) % limit;
}

static bool one_in(unsigned int n)
{
	return below(n) == 0;
}

/* --- A life's memory --- */

/*
 * Deeds are for what is in there, or nowhere at all, so that a life outlives most of them. Behind
 * it is as much again, for what is moved.
 */
static char *arena;
static int file;
static _Atomic int *processes; /* of all lives, with their children; shared */
static _Atomic int threads;

/* Some bytes of the arena: pages, mostly. */
static char *some_memory(size_t *size)
{
	size_t at = below(ARENA);

	*size = 1 + below(one_in(4) ? ARENA : 4 * PAGE);
	if (!one_in(8)) {
		at -= at % PAGE;
		*size += -*size % PAGE;
	}
	if (*size > ARENA - at)
		*size = ARENA - at;
	return arena + at;
}

static __u64 some_number(void)
{
	static const __u64 numbers[] = {
		0,
		1,
		2,
		0xfff,
		0x1000,
		0x10000,
		0x20000,
		0x7fffffff,
		0x80000000,
		0xffffffff,
		0x100000000,
		0x7fffffffe000,
		0x7fffffffffff,
		0x800000000000,
		0x8000000000000000,
		0xffff888000000000,
		0xffffffff81000000,
		~0ULL,
	};
	__u64 number = numbers[below(sizeof(numbers) / sizeof(*numbers))];

	switch (below(4)) {
	case 0:
		return number + below(9) - 4;
	case 1:
		return random_bits() >> below(64);
	case 2:
		return address(arena) + below(ARENA);
	}
	return number;
}

/* --- Deeds: calls of the device --- */

static struct profil_device_region some_region(__u64 first, __u64 last)
{
	size_t size;
	char *buffer = some_memory(&size);

	return (struct profil_device_region){
		.first = first,
		.last = last,
		.offset = one_in(2) ? first : first - below(first % 0x100000 + 1),
		.buffer = address(buffer) + (one_in(8) ? below(9) : 0),
		.bufsiz = one_in(8) ? below(9) : size,
		.scale = one_in(2) ? some_number() : below(0x20001),
	};
}

/* Sorted, and apart from each other; the spinner in one of them, mostly. */
static unsigned int some_regions(struct profil_device_region *regions)
{
	unsigned int count = one_in(20) ? 1 + below(MOST_REGIONS) : 1 + below(6);
	__u64 at = one_in(4) ? 0 : address(__start_hot) - below(32);

	for (unsigned int i = 0; i < count; i++) {
		__u64 length = one_in(4) ? 1 + below(1 << 20) : 1 + below(40);

		regions[i] = some_region(at, at + length - 1);
		at += length + below(16);
	}
	return count;
}

/* A 64-bit word of it becomes another number. */
static void spoil(void *memory, size_t size)
{
	__u64 number = some_number();
	size_t width = one_in(2) ? 4 : 8;

	memcpy((char *)memory + below(size / width) * width, &number, width);
}

static struct profil_device_region *regions_of_thread(void)
{
	static __thread struct profil_device_region *regions;

	if (!regions)
		regions = make_memory(MOST_REGIONS * sizeof(*regions));
	return regions;
}

static void do_set(void)
{
	static const unsigned int rates[] = { 1, 100, 1000, 1000, 5000, 10000, 10000 };
	struct profil_device_region *regions = regions_of_thread();
	unsigned int count = some_regions(regions);
	struct profil_device_set set = {
		.size = sizeof(set),
		.flags = below(2),
		.hz = rates[below(sizeof(rates) / sizeof(*rates))],
		.region_count = count,
		.regions = address(regions),
	};

	if (one_in(4))
		spoil(&set, sizeof(set));
	if (one_in(4))
		spoil(regions, sizeof(*regions) * (count < 6 ? count : 6));
	ioctl(device(), PROFIL_IOC_SET, &set);
}

static void do_off(void)
{
	turn_off();
}

static void do_query(void)
{
	struct profil_device_query now = { .size = sizeof(now), .region_count = below(8) };
	size_t size;

	if (one_in(2))
		now.regions = address(some_memory(&size));
	if (one_in(4))
		spoil(&now, sizeof(now));
	ioctl(device(), PROFIL_IOC_QUERY, &now);
}

/* Any call, at any address: what is there, others may be changing. */
static void do_call(void)
{
	static const unsigned long calls[] = { PROFIL_IOC_SET, PROFIL_IOC_OFF, PROFIL_IOC_QUERY };
	unsigned long call = calls[below(3)];
	size_t size;
	char *memory = some_memory(&size);

	if (one_in(4))
		call = some_number();
	ioctl(device(), call, one_in(2) ? memory : (char *)(uintptr_t)some_number());
}

static void do_file_call(void)
{
	struct pollfd event = { .fd = device(), .events = POLLIN };
	char byte = 0;

	switch (below(5)) {
	case 0:
		if (read(device(), &byte, 1) > 0)
			expect(false, "it can be read");
		break;
	case 1:
		if (write(device(), &byte, 1) > 0)
			expect(false, "it can be written");
		break;
	case 2:
		mmap(NULL, PAGE, PROT_READ, MAP_SHARED, device(), 0);
		break;
	case 3:
		poll(&event, 1, 0);
		break;
	case 4:
		close(open(PROFIL_DEVICE, below(4)));
		break;
	}
}

/* --- Deeds: memory --- */

static void do_unmap(void)
{
	size_t size;
	char *memory = some_memory(&size);

	munmap(memory, size);
}

static const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
				   PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE };

static int some_protection(void)
{
	return protections[below(sizeof(protections) / sizeof(*protections))];
}

static void do_map(void)
{
	static const int kinds[] = { MAP_PRIVATE, MAP_SHARED, MAP_PRIVATE | MAP_ANONYMOUS,
				     MAP_SHARED | MAP_ANONYMOUS,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
	int kind = kinds[below(5)];
	size_t size;
	char *memory = some_memory(&size);

	mmap(memory, size, some_protection(), kind | MAP_FIXED, kind & MAP_ANONYMOUS ? -1 : file,
	     below(FILE_SIZE / PAGE) * PAGE);
}

static void do_protect(void)
{
	size_t size;
	char *memory = some_memory(&size);

	mprotect(memory, size, some_protection());
}

static void do_advise(void)
{
	static const int advices[] = { MADV_DONTNEED,	MADV_FREE,
				       MADV_COLD,	MADV_PAGEOUT,
				       MADV_HUGEPAGE,	MADV_NOHUGEPAGE,
				       MADV_DONTFORK,	MADV_DOFORK,
				       MADV_WIPEONFORK, MADV_KEEPONFORK,
				       MADV_MERGEABLE,	MADV_REMOVE,
				       MADV_WILLNEED,	23 /* MADV_POPULATE_WRITE */ };
	size_t size;
	char *memory = some_memory(&size);

	madvise(memory, size, advices[below(sizeof(advices) / sizeof(*advices))]);
}

static void do_move(void)
{
	size_t size, other_size;
	char *memory = some_memory(&size), *other = some_memory(&other_size);
	int flags = one_in(4) ? MREMAP_MAYMOVE | MREMAP_DONTUNMAP | MREMAP_FIXED
			      : MREMAP_MAYMOVE | MREMAP_FIXED;

	mremap(memory, size, one_in(2) ? size : other_size, one_in(4) ? 0 : flags, other);
}

static void do_cut(void)
{
	if (one_in(2))
		fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  below(FILE_SIZE / PAGE) * PAGE, PAGE * (1 + below(8)));
	else if (ftruncate(file, below(FILE_SIZE)) == 0 && ftruncate(file, FILE_SIZE) != 0)
		expect(false, "ftruncate: %m");
}

static void do_lock(void)
{
	size_t size;
	char *memory = some_memory(&size);

	if (one_in(2))
		mlock(memory, size);
	else
		munlock(memory, size);
}

/* Pages that nobody brings: for the kernel, they cannot be written. */
static void do_miss(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register missing = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	size_t size;

	if (faults < 0)
		return;
	missing.range.start = address(some_memory(&size));
	missing.range.len = size;
	ioctl(faults, UFFDIO_API, &api);
	ioctl(faults, UFFDIO_REGISTER, &missing);
	do_set();
	spin_hot(below(20000));
	close(faults);
}

/* --- Deeds: time --- */

static void do_burn(void)
{
	spin_hot(below(100000));
}

static void do_burn_in_kernel(void)
{
	static char buffer[1 << 16];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 20; i++)
		if (read(zero, buffer, sizeof(buffer)) < 0)
			break;
	close(zero);
}

static void do_move_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(below(4), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	sched_yield();
}

static void do_signal(void)
{
	static const int signals[] = { SIGUSR1, SIGUSR1, SIGUSR2, SIGPROF, SIGALRM,
				       SIGSTOP, SIGCONT, SIGTERM, SIGKILL, SIGSEGV };

	kill(one_in(4) ? 0 : getpid(), signals[below(one_in(20) ? 10 : 3)]);
}

/* --- Deeds: threads and processes --- */

static void live(unsigned int deeds);

static bool may_fork(void)
{
	if (processes[0]++ < MOST_PROCESSES)
		return true;
	processes[0]--;
	return false;
}

/* Whoever waits for the end of a process that may_fork() allowed; how it ended does not matter. */
static void wait_for_one(pid_t child)
{
	if (child <= 0 || waitpid(child, NULL, 0) == child)
		processes[0]--;
}

static __thread pid_t child_behind; /* one that goes on meanwhile */

static void do_fork(void)
{
	uint64_t seed = random_bits();
	pid_t child;

	if (child_behind) {
		if (one_in(2))
			kill(child_behind, SIGKILL);
		wait_for_one(child_behind);
		child_behind = 0;
	}
	if (!may_fork())
		return;
	child = one_in(2) ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		threads = 0;
		child_behind = 0;
		seed_by(seed);
		alarm(3);
		live(below(20));
		_exit(0);
	}
	if (one_in(2) || child < 0)
		wait_for_one(child);
	else
		child_behind = child;
}

static void do_vfork(void)
{
	char *nothing[] = { program, "nothing", NULL };
	unsigned int choice = below(3), turns = below(20000);
	pid_t child;

	if (!may_fork())
		return;
	child = vfork();
	if (child == 0) {
		spin_hot(turns);
		if (choice == 0)
			ioctl(device(), PROFIL_IOC_OFF);
		if (choice == 1)
			execv(program, nothing);
		_exit(0);
	}
	wait_for_one(child);
}

static void do_spawn(void)
{
	char seed[32], *life[] = { program, "live", seed, NULL };
	pid_t child;

	if (!may_fork())
		return;
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)random_bits());
	if (posix_spawn(&child, program, NULL, NULL, life, environ) != 0)
		child = -1;
	wait_for_one(child);
}

static void do_exec(void)
{
	char seed[32], *life[] = { program, "live", seed, NULL };

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)random_bits());
	if (one_in(10))
		execv(program, life);
	else
		execv("/nonexistent", life);
}

static int burn_in_memory(void *unused)
{
	(void)unused;
	spin_hot(30000);
	return 0;
}

static void do_share_memory(void)
{
	char *stack;
	pid_t child;

	if (!may_fork())
		return;
	stack = make_memory(4 * PAGE);
	child = clone(burn_in_memory, stack + 4 * PAGE, CLONE_VM | SIGCHLD, NULL);
	spin_hot(10000);
	wait_for_one(child);
	munmap(stack, 4 * PAGE);
}

static void *live_in_thread(void *seed)
{
	seed_by((uintptr_t)seed);
	live(below(DEEDS));
	munmap(regions_of_thread(), MOST_REGIONS * sizeof(struct profil_device_region));
	if (child_behind)
		wait_for_one(child_behind);
	threads--;
	return NULL;
}

static void do_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (threads++ >= MOST_THREADS) {
		threads--;
		return;
	}
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 32 * PAGE);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, live_in_thread,
			   (void *)(uintptr_t)random_bits()) != 0)
		threads--;
	pthread_attr_destroy(&attributes);
}

static void do_namespace(void)
{
	if (one_in(4))
		unshare(CLONE_NEWUSER | (one_in(2) ? CLONE_NEWNS : 0));
}

static void do_end(void)
{
	if (!one_in(20))
		return;
	switch (below(3)) {
	case 0:
		_exit(0);
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		syscall(SYS_exit, 0); /* of this thread alone */
	}
}

/* --- Lives --- */

static const struct {
	unsigned int weight;
	void (*act)(void);
} deeds[] = {
	{ 12, do_set },		{ 2, do_off },	     { 4, do_query },
	{ 4, do_call },		{ 1, do_file_call }, { 3, do_unmap },
	{ 5, do_map },		{ 3, do_protect },   { 3, do_advise },
	{ 3, do_move },		{ 2, do_cut },	     { 1, do_lock },
	{ 1, do_miss },		{ 12, do_burn },     { 2, do_burn_in_kernel },
	{ 1, do_move_cpu },	{ 1, do_signal },    { 3, do_fork },
	{ 2, do_vfork },	{ 1, do_spawn },     { 1, do_exec },
	{ 1, do_share_memory }, { 3, do_thread },    { 1, do_namespace },
	{ 1, do_end },
};

static void live(unsigned int left)
{
	unsigned int sum = 0, choice, i;

	for (i = 0; i < sizeof(deeds) / sizeof(*deeds); i++)
		sum += deeds[i].weight;
	while (left--) {
		choice = below(sum);
		for (i = 0; choice >= deeds[i].weight; i++)
			choice -= deeds[i].weight;
		deeds[i].act();
	}
}

static void ignore(int signal)
{
	(void)signal;
}

static void limit(int resource, rlim_t most)
{
	struct rlimit limits = { most, most };

	need(setrlimit(resource, &limits) == 0, "setrlimit");
}

/* In a separate process, which is new or has executed this program again. */
static void run_life(uint64_t seed)
{
	static const int harmless[] = { SIGUSR1, SIGUSR2, SIGPROF, SIGCONT };

	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		signal(harmless[i], ignore);
	alarm(5);
	seed_by(seed);
	arena = mmap((void *)ARENA_PLACE, 2 * ARENA, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	file = memfd_create("file", MFD_CLOEXEC);
	if (arena == MAP_FAILED || file < 0 || ftruncate(file, FILE_SIZE))
		_exit(1);
	device(); /* not first in a child that has the memory, but descriptors of its own */
	live(DEEDS);
	_exit(0);
}

/*
 * Until it has ended or stopped. The alarm of one that is stopped waits, and it does not count as
 * stopped before a thread that waits for a stopped child of vfork() is: that one is not waited for.
 */
static void wait_for_life(pid_t life)
{
	double late = seconds(CLOCK_MONOTONIC) + 6;
	siginfo_t info = { .si_pid = 0 };

	while (info.si_pid == 0 && seconds(CLOCK_MONOTONIC) < late) {
		need(waitid(P_PID, life, &info, WEXITED | WSTOPPED | WNOWAIT | WNOHANG) == 0,
		     "waitid");
		if (info.si_pid == 0)
			sleep_ms(5);
	}
}

/*
 * Until the end, one life after the other. What one leaves behind is of its group, and ends with
 * it.
 */
static void work(uint64_t seed, double end)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (; seconds(CLOCK_MONOTONIC) < end; seed = seed * 6364136223846793005 + 1) {
		pid_t life;

		processes[0] = 0;
		life = fork();
		if (life == 0) {
			setpgid(0, 0);
			run_life(seed);
		}
		need(life > 0, "fork");
		wait_for_life(life);
		kill(-life, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
		processes[1]++;
	}
	_exit(0);
}

static int fuzz(unsigned int duration, uint64_t seed)
{
	double end = seconds(CLOCK_MONOTONIC) + duration;
	unsigned int lives = 0;
	pid_t workers[WORKERS];
	_Atomic int *counts[WORKERS];
	int status;

	for (int i = 0; i < WORKERS; i++) {
		processes = counts[i] = shared_memory(PAGE);
		workers[i] = fork();
		if (workers[i] == 0)
			work(seed * WORKERS + i, end);
	}
	for (int i = 0; i < WORKERS; i++) {
		while (waitpid(workers[i], &status, WNOHANG) == 0 &&
		       expect(seconds(CLOCK_MONOTONIC) < end + 60, "a life does not end"))
			sleep_ms(20);
		expect(status == 0, "a worker ended with status 0x%x", status);
		lives += counts[i][1];
	}
	printf("%u lives\n", lives);
	expect(lives > 0, "no life came to its end");
	expect_alive();
	return wrong;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : clock_ns(CLOCK_REALTIME) / 1000;

	if (argc < 2)
		return 2;
	need(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0, "/proc/self/exe");
	if (strcmp(argv[1], "nothing") == 0)
		return 0;
	setenv("PROFIL_HZ", "1000", 0);
	if (strcmp(argv[1], "live") == 0) {
		processes = shared_memory(PAGE);
		processes[0] = MOST_PROCESSES; /* it may have none */
		run_life(seed);
	}
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	become_nobody();
	prctl(PR_SET_DUMPABLE, 1);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NPROC, 1000);
	return fuzz(atoi(argv[1]), seed);
}
