// SPDX-License-Identifier: GPL-2.0-only
/* Buffers in all kinds of memory, also memory that goes away, with /dev/profil: kmod_device.h. */
#include "kmod_device.h"

#include <sys/resource.h>

#define HUGE (2UL << 20)

/* --- Memory that is as good as any --- */

static void expect_counts_in(const char *what, volatile uint32_t *cell)
{
	uint32_t begin = *cell;

	if (!expect(set_cell(cell) == 0, "%s: SET: %m", what))
		return;
	burn_counted(5);
	expect_exact(what, cell, begin);
	expect(turn_off() == 0, "OFF: %m");
	expect(*cell - begin >= 5, "%s: %u ticks", what, *cell - begin);
}

static void *map_file(int file, size_t size, int flags)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, file, 0);

	need(memory != MAP_FAILED, "mmap");
	return memory;
}

static int make_file(unsigned int flags, size_t size)
{
	int file = memfd_create("buffer", MFD_CLOEXEC | flags);

	need(file >= 0 && ftruncate(file, size) == 0, "memfd_create");
	return file;
}

/* Nobody has touched it yet. */
static void untouched(void)
{
	expect_counts_in("private", make_memory(PAGE));
	expect_counts_in("shared", shared_memory(PAGE));
	expect_counts_in("a file", map_file(make_file(0, PAGE), PAGE, MAP_SHARED));
	expect_counts_in("a copy of a file", map_file(make_file(0, PAGE), PAGE, MAP_PRIVATE));
	expect_counts_in("/dev/zero", map_file(open("/dev/zero", O_RDWR), PAGE, MAP_SHARED));
	expect_counts_in("/dev/zero, private",
			 map_file(open("/dev/zero", O_RDWR), PAGE, MAP_PRIVATE));
}

/* Read only so far, which is the page of zeroes that all have. */
static void zero_page(void)
{
	volatile uint32_t *cell = make_memory(PAGE), *other = make_memory(PAGE);

	expect(*cell == 0 && *other == 0, "not 0");
	expect_counts_in("once read", cell);
	expect(*other == 0, "%u in another page", *other);
}

static void in_file(void)
{
	int file = make_file(0, PAGE);
	volatile uint32_t *cell = map_file(file, PAGE, MAP_SHARED);
	uint32_t there;

	expect_counts_in("a file", cell);
	need(pread(file, &there, sizeof(there), 0) == sizeof(there), "pread");
	expect(there == *cell, "%u in the file, %u in the memory", there, *cell);
}

/* Nothing holds its pages once it is off, nor its writers. */
static void sealed(void)
{
	int file = make_file(MFD_ALLOW_SEALING, PAGE);
	volatile uint32_t *cell = map_file(file, PAGE, MAP_SHARED);

	need(fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0, "F_SEAL_FUTURE_WRITE");
	expect_counts_in("sealed for writers to come", cell);
	need(munmap((void *)cell, PAGE) == 0, "munmap");
	expect(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) == 0, "F_SEAL_WRITE: %m");
}

static void in_huge_pages(void *memory, const char *what)
{
	volatile uint32_t *cell = memory;

	expect_counts_in(what, cell);
	expect_counts_in(what, cell + HUGE / 4 - 1);
	expect_counts_in(what, cell + HUGE / 4);
	/* Two bytes in each of two huge pages. */
	expect_counts_in(what, (uint32_t *)((char *)memory + HUGE - 2));
}

static void transparent_huge_pages(void)
{
	char *memory = make_memory(3 * HUGE);

	memory += -(uintptr_t)memory % HUGE;
	madvise(memory, 2 * HUGE, MADV_HUGEPAGE);
	in_huge_pages(memory, "by madvise");
}

static void set_huge_pages(int count)
{
	int file = open("/proc/sys/vm/nr_hugepages", O_WRONLY | O_CLOEXEC);

	need(file >= 0 && dprintf(file, "%d", count) > 0, "nr_hugepages");
	close(file);
}

static void huge_pages(void)
{
	static const int kinds[] = { MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS };
	void *memory;

	set_huge_pages(4);
	for (int i = 0; i < 2; i++) {
		memory =
			mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, kinds[i] | MAP_HUGETLB, -1, 0);
		if (memory == MAP_FAILED) /* the machine has not enough memory in one piece */
			continue;
		in_huge_pages(memory, "MAP_HUGETLB");
		munmap(memory, 2 * HUGE);
	}
	set_huge_pages(0);
}

/* There is room for none: who writes there gets SIGBUS. */
static void no_huge_pages(void)
{
	void *memory = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);

	if (memory != MAP_FAILED && set_cell(memory) == 0)
		burn_to_off();
	expect_alive();
}

static void locked(void)
{
	volatile uint32_t *cell = make_memory(PAGE);

	need(mlock((void *)cell, PAGE) == 0, "mlock");
	expect_counts_in("locked", cell);
}

static void on_stack(void)
{
	volatile uint32_t cell = 0;

	expect_counts_in("the stack", &cell);
}

/* It grows when something is written below it, as far as its limit lets it. */
static void below_stack(void)
{
	volatile uint32_t here = 0;

	if (set_cell(&here - PAGE * 16) == 0)
		burn(5);
	expect_alive();
}

/* Far from what is needed to return, for there it counts on until the stack is unmapped. */
static void *count_on_stack(void *unused)
{
	volatile uint32_t deep[1 << 18];

	deep[0] = 0;
	turn_on(deep);
	burn_counted(2);
	expect_exact("the stack of a thread", deep, 0);
	return unused;
}

/* The stack of a thread that has ended may be unmapped, or another's. */
static void on_stack_of_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	need(pthread_attr_init(&attributes) == 0, "pthread_attr_init");
	need(pthread_attr_setstacksize(&attributes, 64 << 20) == 0, "pthread_attr_setstacksize");
	need(pthread_create(&thread, &attributes, count_on_stack, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
	burn(5);
	expect_alive();
}

/* Every address in and around a page's end. */
static void anywhere(void)
{
	unsigned char *memory = make_memory(2 * PAGE);

	for (unsigned int width = 2; width <= 4; width += 2) {
		for (size_t at = PAGE - 9; at < PAGE + 9; at++) {
			struct profil_device_region region = everywhere(memory + at, width);

			memset(memory, GUARD, 2 * PAGE);
			need(set_regions(width == 4, &region, 1) == 0, "SET");
			burn_counted(2);
			turn_off();
			expect_guarded("before it", memory, at);
			expect_guarded("behind it", memory + at + width, 2 * PAGE - at - width);
			expect(memory[at] != GUARD, "byte %zu is as before", at);
		}
	}
}

/* Both are counted, whichever mapping it is by. */
static void mapped_twice(void)
{
	int file = make_file(0, PAGE);
	volatile uint32_t *one = map_file(file, PAGE, MAP_SHARED);
	volatile uint32_t *other = map_file(file, PAGE, MAP_SHARED);
	struct profil_device_region two[] = { everywhere(one, 4), everywhere(other, 4) };

	/* The spinner in one, the rest in the other. */
	two[0].last = address(__stop_hot) - 1;
	two[1].first = two[1].offset = two[0].last + 1;
	need(set_regions(PROFIL_WIDE, two, 2) == 0, "SET");
	burn_counted(20);
	expect_exact("in both", one, 0);
}

/* What no cell of the code lies in need not be there. */
static void mostly_unmapped(void)
{
	size_t size = sizeof(size_t) > 4 ? 1ULL << 40 : 1 << 28;
	unsigned char *memory =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct profil_device_region region;

	need(memory != MAP_FAILED, "mmap");
	need(mprotect(memory, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	region = everywhere(memory, size);
	need(set_regions(0, &region, 1) == 0, "SET");
	burn_counted(5);
	expect(memory[0] + (memory[1] << 8) >= 5, "no tick in the cell");
}

/* --- Memory that was never good --- */

/* SET may report it; otherwise profiling goes off later. */
static void never_good(const char *what, volatile void *buffer)
{
	if (set_cell(buffer) == 0)
		burn_to_off();
	else
		expect(errno == EFAULT, "%s: SET: %m", what);
}

static void not_writable(void)
{
	static const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC };
	unsigned char *memory = make_memory(2 * PAGE);

	memset(memory, GUARD, 2 * PAGE);
	for (size_t i = 0; i < sizeof(protections) / sizeof(*protections); i++) {
		mprotect(memory, PAGE, protections[i]);
		never_good("protected", memory);
		/* Half of it could be written. */
		never_good("half protected", memory + PAGE - 2);
		mprotect(memory, PAGE, PROT_READ | PROT_WRITE);
		mprotect(memory + PAGE, PAGE, protections[i]);
		never_good("the other half protected", memory + PAGE - 2);
		mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE);
		expect_guarded("protected", memory, 2 * PAGE);
	}
	munmap(memory + PAGE, PAGE);
	never_good("half unmapped", memory + PAGE - 1);
	expect_guarded("half unmapped", memory, PAGE);
	expect_alive();
}

static void constant_file(void)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *memory = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);

	need(memory != MAP_FAILED, "mmap");
	never_good("a file opened to read", memory);
	never_good("the code itself", (void *)__start_hot);
	expect_alive();
}

static void behind_file(void)
{
	volatile uint32_t *cell = map_file(make_file(0, PAGE), 2 * PAGE, MAP_SHARED);

	never_good("behind the end of a file", cell + PAGE / 4);
	expect_alive();
}

static void protection_key(void)
{
	int key = pkey_alloc(0, PKEY_DISABLE_WRITE);
	unsigned char *memory = make_memory(PAGE);

	memset(memory, GUARD, PAGE);
	if (key < 0) /* the processor has none */
		return;
	need(pkey_mprotect(memory, PAGE, PROT_READ | PROT_WRITE, key) == 0, "pkey_mprotect");
	never_good("a key that allows no write", memory);
	pkey_set(key, PKEY_DISABLE_ACCESS);
	never_good("a key that allows no access", memory);
	pkey_set(key, 0);
	expect_guarded("a key", memory, PAGE);
	expect_counts_in("a key that allows all", (uint32_t *)memory);
}

/* What the kernel has put there, by its name in /proc/self/maps. */
static unsigned char *find_mapping(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long begin = 0;
	char line[512];

	need(maps, "/proc/self/maps");
	while (!begin && fgets(line, sizeof(line), maps))
		if (strstr(line, name))
			begin = strtoull(line, NULL, 16);
	fclose(maps);
	return (unsigned char *)(uintptr_t)begin;
}

static void of_the_kernel(void)
{
	static const char *const names[] = { "[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]" };
	unsigned char *vdso = find_mapping("[vdso]"), before[PAGE];

	need(vdso, "[vdso]");
	memcpy(before, vdso, PAGE);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		unsigned char *memory = find_mapping(names[i]);

		if (memory)
			never_good(names[i], memory + 128);
	}
	expect(memcmp(before, vdso, PAGE) == 0, "the vdso became another");
	expect(clock_ns(CLOCK_MONOTONIC) <= clock_ns(CLOCK_MONOTONIC), "the clock goes back");
	expect_alive();
}

static void nowhere(void)
{
	static const __u64 places[] = {
		0,
		1,
		0x10000,
		0x7fffffffe000,
		0x7fffffffeffc,
		0x7fffffffefff,
		0x7ffffffff000,
		0x800000000000,
		0xffff800000000000,
		0xffffffff81000000,
		0xffffffffff600000,
		-4ULL,
		-1ULL,
	};
	struct profil_device_region region;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		region = everywhere(NULL, 4);
		region.buffer = places[i];
		if (set_regions(PROFIL_WIDE, &region, 1) == 0)
			burn_to_off();
		else
			expect(errno == EFAULT, "0x%llx: %m", places[i]);
	}
	expect_alive();
}

/*
 * What a device has there instead of memory. It is root's, who may write there. Machines other than
 * x86 have devices elsewhere, and arm64's kernel panics wherever it reads an address of none for a
 * process, as in write(2).
 */
static void device_memory(void)
{
#ifdef __x86_64__
	static const off_t places[] = { 0xa0000, 0xf0000, 0xfed00000, 0xfee00000 };
	int memory = open("/dev/mem", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; memory >= 0 && i < sizeof(places) / sizeof(*places); i++) {
		void *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, places[i]);

		/* The last four bytes of none of these pages are a register. */
		if (map != MAP_FAILED && set_cell((uint32_t *)map + PAGE / 4 - 1) == 0)
			burn(5);
	}
#endif
	expect_alive();
}

/* --- Memory that goes bad while it is on --- */

static unsigned char *begin_in(void *memory)
{
	turn_on(memory);
	burn_counted(2);
	return memory;
}

/* Off from the call on, and not when the next tick comes. */
static void expect_off(const char *what)
{
	expect(!is_on(), "%s: it is on", what);
}

static void unmapped(void)
{
	for (int page = 0; page < 3; page++) {
		unsigned char *memory = make_memory(3 * PAGE);
		struct profil_device_region region = everywhere(memory, 3 * PAGE);

		need(set_regions(0, &region, 1) == 0, "SET");
		burn_counted(1);
		munmap(memory + page * PAGE, PAGE);
		expect_off("unmapped in part");
	}
	expect_alive();
}

static void beside_it(void)
{
	unsigned char *memory = make_memory(3 * PAGE);
	volatile uint32_t *cell = (uint32_t *)(memory + PAGE);
	struct profil_device_region region = everywhere(cell, PAGE);

	need(set_regions(PROFIL_WIDE, &region, 1) == 0, "SET");
	burn_counted(1);
	munmap(memory, PAGE);
	munmap(memory + 2 * PAGE, PAGE);
	expect(is_on(), "off by what was beside it");
	burn_counted(2);
	expect_exact("beside it", cell, 0);
}

/* What is there next is prepared before, so that it is whole from its first moment. */
static void replaced(void)
{
	int file = make_file(0, PAGE);
	void *guarded = map_file(file, PAGE, MAP_SHARED);
	unsigned char *memory = begin_in(make_memory(PAGE));

	memset(guarded, GUARD, PAGE);
	need(mmap(memory, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == memory,
	     "mmap");
	expect_off("replaced");
	burn(5);
	expect_guarded("what replaces it", memory, PAGE);
	expect_alive();
}

static void moved(void)
{
	unsigned char *memory = begin_in(make_memory(2 * PAGE)), *to = make_memory(2 * PAGE);
	uint32_t before = *(uint32_t *)memory;

	need(mremap(memory, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to, "mremap");
	expect_off("moved");
	before = *(uint32_t *)to;
	burn(5);
	expect(*(uint32_t *)to == before, "%u ticks where it was moved to",
	       *(uint32_t *)to - before);
	expect_alive();
}

/* What stays in its old place is empty. */
static void moved_away(void)
{
	unsigned char *memory = begin_in(make_memory(PAGE));

	need(mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) != MAP_FAILED,
	     "mremap");
	expect_off("moved away");
	burn(5);
	expect(*(uint32_t *)memory == 0, "%u ticks in its old place", *(uint32_t *)memory);
}

static void grown(void)
{
	unsigned char *memory = make_memory(3 * PAGE);

	munmap(memory + PAGE, 2 * PAGE);
	begin_in(memory);
	if (mremap(memory, PAGE, 2 * PAGE, 0) == MAP_FAILED) /* another has the place by now */
		return;
	expect(is_on(), "off as it grew");
	burn_counted(1);
	expect_exact("grown", (uint32_t *)memory, 0);
	need(mremap(memory, 2 * PAGE, PAGE, 0) == memory, "mremap");
	expect(is_on(), "off as what is behind it shrank");
}

static void reallocated(void)
{
	size_t size = 1 << 20;
	unsigned char *memory = calloc(1, size), *other;
	__u64 place = address(memory);

	need(memory, "calloc");
	begin_in(memory);
	other = realloc(memory, 64 * size);
	need(other, "realloc");
	memset(other, GUARD, size);
	if (address(other) != place)
		expect_off("moved by realloc");
	else
		turn_off();
	burn(5);
	free(other);
	expect_alive();
}

static void protected_while_on(void)
{
	static const int protections[] = { PROT_NONE, PROT_READ };

	for (int i = 0; i < 2; i++) {
		uint32_t *cell = make_memory(PAGE), before;

		begin_in(cell);
		mprotect(cell, PAGE, protections[i]);
		burn_to_off();
		mprotect(cell, PAGE, PROT_READ | PROT_WRITE);
		before = *cell;
		burn(5);
		expect(*cell == before, "%u ticks after that", *cell - before);
	}
	expect_alive();
}

/* Where no tick sees it, it is as if it had not been; no tick is lost either way. */
static void protected_shortly(void)
{
	uint32_t *cell = make_memory(PAGE);

	for (int i = 0; i < 200; i++) {
		if (!is_on()) {
			*cell = 0;
			begin_in(cell);
		}
		spin_hot(2000);
		mprotect(cell, PAGE, PROT_READ);
		mprotect(cell, PAGE, PROT_READ | PROT_WRITE);
		if (is_on())
			expect_exact("protected shortly", cell, 0);
	}
	expect_alive();
}

/* It goes on in the page that is there next, which begins with 0. */
static void given_back(void)
{
	volatile uint32_t *cell = make_memory(PAGE);
	uint32_t before, behind, there;
	__u64 counted;

	begin_in((void *)cell);
	for (int i = 0; i < 50; i++) {
		before = query().counted;
		madvise((void *)cell, PAGE, MADV_DONTNEED);
		behind = query().counted;
		burn_counted(2);
		there = *cell;
		counted = query().counted;
		expect(there <= counted - before && counted - behind <= *cell,
		       "%llu counted, %u in the page, which came between %u and %u", counted, there,
		       before, behind);
	}
	expect(is_on(), "off");
}

/* The kernel may take them and bring them back: nothing gets lost. */
static void taken(void)
{
	static const int advices[] = { MADV_COLD, MADV_PAGEOUT, MADV_MERGEABLE, MADV_DONTFORK };
	volatile uint32_t *cell = make_memory(PAGE);

	begin_in((void *)cell);
	for (int i = 0; i < 40; i++) {
		madvise((void *)cell, PAGE, advices[i % 4]);
		burn_counted(1);
		expect_exact("taken", cell, 0);
	}
	expect(is_on(), "off");
}

static void cut_file(void)
{
	int file = make_file(0, PAGE);
	volatile uint32_t *cell = map_file(file, PAGE, MAP_SHARED);

	begin_in((void *)cell);
	need(ftruncate(file, 0) == 0, "ftruncate");
	burn_to_off();
	need(ftruncate(file, PAGE) == 0, "ftruncate");
	burn(5);
	expect(*cell == 0, "%u ticks after that", *cell);
	expect_alive();
}

static void punched_file(void)
{
	int file = make_file(0, PAGE);
	volatile uint32_t *cell = map_file(file, PAGE, MAP_SHARED);

	begin_in((void *)cell);
	need(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) == 0,
	     "fallocate");
	burn_counted(2);
	expect(is_on() && *cell >= 2, "%u ticks in the hole", *cell);
}

/* --- It takes no memory of the process's limits --- */

static void expect_nothing_locked(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned int kb, found = 0;
	char line[128];

	need(status, "/proc/self/status");
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "VmLck: %u", &kb) == 1 || sscanf(line, "VmPin: %u", &kb) == 1)
			found += expect(kb == 0, "%s", line);
	fclose(status);
	expect(found == 2, "%u lines of /proc/self/status", found);
}

static void no_locked_memory(void)
{
	static const struct rlimit none = { 0, 0 };
	size_t size = 16 << 20;
	unsigned char *memory = make_memory(size);
	struct profil_device_region region = everywhere(memory, size);

	need(setrlimit(RLIMIT_MEMLOCK, &none) == 0, "RLIMIT_MEMLOCK");
	need(set_regions(PROFIL_WIDE, &region, 1) == 0, "SET");
	burn_counted(5);
	expect_nothing_locked();
	expect_exact("without locked memory", (uint32_t *)memory, 0);
}

static const struct row rows[] = {
	{ "any", "good: never touched", untouched },
	{ "any", "good: only read so far", zero_page },
	{ "any", "good: a shared file", in_file },
	{ "any", "good: a sealed file", sealed },
	{ "any", "good: transparent huge pages", transparent_huge_pages },
	{ "root", "good: huge pages", huge_pages },
	{ "any", "good: locked", locked },
	{ "any", "good: the stack", on_stack },
	{ "any", "good: odd addresses, over the border of pages", anywhere },
	{ "any", "good: one page mapped twice", mapped_twice },
	{ "any", "good: most of it unmapped, where no cell is", mostly_unmapped },
	{ "any", "bad: not writable", not_writable },
	{ "any", "bad: huge pages that are not there", no_huge_pages },
	{ "any", "bad: below the stack", below_stack },
	{ "any", "bad: a file that cannot be written", constant_file },
	{ "any", "bad: behind the end of a file", behind_file },
	{ "any", "bad: a protection key", protection_key },
	{ "any", "bad: the vdso and its data", of_the_kernel },
	{ "any", "bad: nowhere", nowhere },
	{ "root", "bad: a device's memory", device_memory },
	{ "any", "goes: the stack of a thread", on_stack_of_thread },
	{ "any", "goes: unmapped in part", unmapped },
	{ "any", "goes: what is beside it", beside_it },
	{ "any", "goes: replaced", replaced },
	{ "any", "goes: moved", moved },
	{ "any", "goes: moved away", moved_away },
	{ "any", "goes: grows and shrinks", grown },
	{ "any", "goes: reallocated", reallocated },
	{ "any", "goes: protected", protected_while_on },
	{ "any", "goes: protected shortly", protected_shortly },
	{ "any", "goes: given back", given_back },
	{ "any", "goes: taken by the kernel", taken },
	{ "any", "goes: a file is cut", cut_file },
	{ "any", "goes: a file gets a hole", punched_file },
	{ "any", "no locked memory", no_locked_memory },
};

int main(int argc, char **argv)
{
	return run_kmod_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
