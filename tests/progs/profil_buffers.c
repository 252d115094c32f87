// SPDX-License-Identifier: GPL-2.0-only
/* Buffers in all kinds of memory, also memory that goes away while profiling: profil_row.h. */
#include "profil_row.h"

#define PAGE   ((size_t)sysconf(_SC_PAGESIZE))
#define MEMORY (4 * PAGE)

/* Private memory of whole pages, of its own. */
static unsigned short *make_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	return memory;
}

/*
 * Longer than it takes to see that a buffer is gone. The thread that looks wants a CPU, which
 * others may have.
 */
static void burn_long(void)
{
	const struct timespec pause = { .tv_nsec = 50000000 };

	burn(ticks_in(40e6) + some());
	nanosleep(&pause, NULL);
}

static void begin(unsigned short *buffer)
{
	expect(profil_hot(buffer) == 0, "on: %m");
	burn_long();
}

/* Until libprofil's thread, if it has one, has seen that the buffer is bad, which ends it. */
static void burn_until_off(void)
{
	for (int i = 0; i < 100; i++) {
		burn_long();
		if (count_entries("/proc/self/task") <= 1)
			return;
	}
	expect(false, "profiling is still on");
}

static void expect_alive(void)
{
	expect(profil_off() == 0, "off: %m");
	memset(cells, 0, sizeof(cells));
	expect(profil_hot(cells) == 0, "on again: %m");
	burn(some());
	profil_off();
	expect_about("on again", sum(), some());
}

/* After it was bad, the buffer is as good as before: but profiling is off. */
static void expect_gone(const unsigned short *buffer)
{
	unsigned int before = sum_of(buffer);

	burn_long();
	expect(sum_of(buffer) == before, "%u ticks in a buffer that was bad",
	       sum_of(buffer) - before);
	expect_alive();
}

/* --- Buffers that go bad --- */

static void expect_soon(const unsigned short *buffer)
{
	for (int ms = 0; ms < 30000 && !sum_of(buffer); ms++)
		sleep_ms(1);
	expect(sum_of(buffer) > 0, "no tick while it was good");
}

static void protected_by(int protection)
{
	unsigned short *buffer = make_memory(MEMORY);

	begin(buffer);
	expect_soon(buffer);
	mprotect(buffer, MEMORY, protection);
	burn_until_off();
	mprotect(buffer, MEMORY, PROT_READ | PROT_WRITE);
	expect_gone(buffer);
}

static void read_only(void)
{
	protected_by(PROT_READ);
}

static void no_access(void)
{
	protected_by(PROT_NONE);
}

static void unmapped(void)
{
	unsigned short *buffer = make_memory(MEMORY);

	begin(buffer);
	munmap(buffer, MEMORY);
	burn_until_off();
	need(mmap(buffer, MEMORY, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == buffer,
	     "mmap");
	expect_gone(buffer);
}

static void freed(void)
{
	unsigned short *buffer = calloc(1, 1 << 20); /* so large that free() unmaps it */

	need(buffer, "calloc");
	begin(buffer);
	free(buffer);
	burn_until_off();
	expect_alive();
}

static void cut_file(void)
{
	int file = memfd_create("buffer", MFD_CLOEXEC);
	unsigned short *buffer;

	need(file >= 0 && ftruncate(file, MEMORY) == 0, "memfd_create");
	buffer = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(buffer != MAP_FAILED, "mmap");
	begin(buffer);
	expect_soon(buffer);
	need(ftruncate(file, 0) == 0, "ftruncate");
	burn_until_off();
	need(ftruncate(file, MEMORY) == 0, "ftruncate");
	expect_gone(buffer);
}

/* At the end of the process it is still on. */
static void unmapped_at_exit(void)
{
	unsigned short *buffer = make_memory(MEMORY);

	begin(buffer);
	munmap(buffer, MEMORY);
	burn(2);
}

static void unmapped_at_fork(void)
{
	unsigned short *buffer = make_memory(MEMORY);
	pid_t child;

	begin(buffer);
	munmap(buffer, MEMORY);
	child = fork();
	burn_long();
	if (child == 0)
		_exit(0);
	expect_well(child, "child");
	expect_alive();
}

/* Not munmap(): another thread could get the place for something else. */
static void *forbid_and_allow(void *buffer)
{
	while (go_on) {
		mprotect(buffer, MEMORY, PROT_NONE);
		mprotect(buffer, MEMORY, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

static void comes_and_goes(void)
{
	unsigned short *buffer = make_memory(MEMORY);
	pthread_t thread;

	need(pthread_create(&thread, NULL, forbid_and_allow, buffer) == 0, "pthread_create");
	for (int i = 0; i < 5; i++) {
		begin(buffer);
		profil_off();
	}
	go_on = false;
	pthread_join(thread, NULL);
	expect_alive();
}

/* --- Buffers that were never good --- */

/* profil() itself may report it. */
static void never_good(unsigned short *buffer)
{
	profil_hot(buffer);
	burn_long();
	expect_alive();
}

static void constant(void)
{
	static const unsigned short buffer[CELLS];

	never_good((unsigned short *)buffer);
}

static void wild(void)
{
	static const uintptr_t addresses[] = {
		0x10,		    /* of no page */
		0x7fffffffefff,	    /* the last byte of user space */
		0x800000000000,	    /* no address at all */
		0xffff800000000000, /* the kernel's */
		-2UL * CELLS,	    /* up to the very last byte */
		-1UL,
	};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
		never_good((unsigned short *)addresses[i]);
}

/* --- Unusual buffers --- */

static void count_in(unsigned short *buffer)
{
	expect(profil_hot(buffer) == 0, "on: %m");
	burn_long();
	expect(profil_off() == 0, "off: %m");
	expect_about("counted", sum_of(buffer), ticks_in(40e6) + some());
}

static void huge_page(void)
{
	size_t size = 2 << 20;
	void *memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (memory == MAP_FAILED) { /* none are reserved: one made out of small ones does */
		memory = make_memory(2 * size);
		madvise(memory, 2 * size, MADV_HUGEPAGE);
		memset(memory, 0, 2 * size);
	}
	count_in(memory);
}

static void shared_file(void)
{
	int file = memfd_create("buffer", MFD_CLOEXEC);
	unsigned short *buffer, in_file[CELLS];

	need(file >= 0 && ftruncate(file, MEMORY) == 0, "memfd_create");
	buffer = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(buffer != MAP_FAILED, "mmap");
	count_in(buffer);
	need(pread(file, in_file, sizeof(in_file), 0) == sizeof(in_file), "pread");
	expect(memcmp(buffer, in_file, sizeof(in_file)) == 0, "the file has other counts");
}

/* Only the last cell that code runs in is in the first page; the pages behind are not there. */
static void bad_page_unused(void)
{
	unsigned short *memory = make_memory(MEMORY);

	munmap(memory + PAGE / 2, MEMORY - PAGE);
	expect(profil(memory, MEMORY, (size_t)__start_hot, 0x10000) == 0, "on: %m");
	burn_long();
	expect(profil_off() == 0, "off: %m");
	expect_about("in the page that is there", sum_of(memory), ticks_in(40e6) + some());
}

/* All ticks are in one cell, of which each mapping has a byte; the low one overflows. */
static void two_mappings(void)
{
	unsigned char *memory = (unsigned char *)make_memory(2 * PAGE), *cell = memory + PAGE - 1;

	need(mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
	     "mmap");
	*cell = 250;
	expect(profil((unsigned short *)(cell - 200), 202, (size_t)__start_hot - 100 * 65536, 2) ==
		       0,
	       "on: %m");
	burn_long();
	profil_off();
	expect_about("in the cell", (cell[0] | cell[1] << 8) - 250, ticks_in(40e6) + some());
	expect(cell[2] == 0, "the byte behind became %u", cell[2]);
}

/* Neither may harm the other; what both add at the same time may get lost. */
static void shared_with_child(void)
{
	unsigned short *buffer = shared_memory(MEMORY);
	double due = ticks_in(40e6) + some();
	pid_t child;

	expect(profil_hot(buffer) == 0, "on: %m");
	child = fork();
	burn_long();
	profil_off();
	if (child == 0)
		_exit(wrong);
	expect_well(child, "child");
	expect(is_about(sum_of(buffer), due * 0.7, due * 2, 2), "%u ticks of twice %.0f",
	       sum_of(buffer), due);
}

static const struct row rows[] = {
	{ "kernel", "read-only while on", read_only },
	{ "kernel", "without access while on", no_access },
	{ "kernel", "unmapped while on", unmapped },
	{ "kernel", "freed while on", freed },
	{ "kernel", "in a file that is cut while on", cut_file },
	{ "kernel", "unmapped at exit", unmapped_at_exit },
	{ "kernel", "unmapped at fork", unmapped_at_fork },
	{ "kernel", "forbidden and allowed all the time", comes_and_goes },
	{ "kernel", "constant from the start", constant },
	{ "kernel", "nowhere", wild },
	{ "any", "in a huge page", huge_page },
	{ "any", "in a shared file", shared_file },
	{ "any", "with pages that are not there and not needed", bad_page_unused },
	{ "any", "in two mappings", two_mappings },
	{ "kernel", "shared with a child", shared_with_child },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
