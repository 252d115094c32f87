// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which cell a tick is counted in: the kernel's count against the formula of profil(2), with the pc
 * forced by a loop at a chosen address. Cases that cannot be mapped here are skipped.
 *
 *   profil_cells golden FILE         each line of golden-cells.csv
 *   profil_cells random SEED COUNT   random (offset, scale, bufsiz, pc)
 *   profil_cells each                each scale with each size of buffer and address of code
 *   profil_cells large               buffers of 16 MiB, 1 GiB and 4 GiB
 *
 * Prints wrong counts, then "cases N". Exits 0 if none is wrong.
 */
#include "profil_loop.h"

struct call {
	uintptr_t pc, offset;
	size_t bufsiz;
	unsigned int scale;
};

static unsigned int cases;

/* A range of addresses that is not to be counted in: all code but the loop's. */
struct extent {
	uintptr_t first, end;
};

static struct extent code[256];
static size_t code_count;

static void find_code(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4352], executable;

	need(maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps) && code_count < 256) {
		struct extent *e = &code[code_count];

		if (sscanf(line, "%lx-%lx %*c%*c%c", &e->first, &e->end, &executable) == 3)
			code_count += executable == 'x';
	}
	fclose(maps);
}

/* The cell of an address, or -1: the formula of profil(3) in 128 bits. */
static long long cell_of(const struct call *call, uintptr_t address)
{
	__int128 cell = ((__int128)address - (__int128)call->offset) * call->scale;

	if (call->scale < 2 || address < call->offset || (cell >> 17) * 2 + 2 > call->bufsiz)
		return -1;
	return cell >> 17;
}

/* Whether other code can be counted as well. Cells grow with the address. */
static bool counts_other_code(const struct call *call)
{
	for (size_t i = 0; i < code_count; i++) {
		uintptr_t first = code[i].first > call->offset ? code[i].first : call->offset;

		if (first < code[i].end && cell_of(call, first) >= 0)
			return true;
	}
	return false;
}

static void tell_case(const struct call *call)
{
	printf("pc 0x%lx offset 0x%lx bufsiz %zu scale 0x%x: ", call->pc, call->offset,
	       call->bufsiz, call->scale);
}

/* --- The buffer: in memory of its own, which must stay 0 but for the cell --- */

#define GUARD 64 /* bytes before the buffer; behind it are as many, at least */

struct buffer {
	unsigned char *map;
	size_t size;
};

static unsigned short *make_buffer(struct buffer *b, size_t bufsiz)
{
	b->size = (bufsiz + 2 * GUARD + 4095) & ~4095UL;
	b->map = mmap(NULL, b->size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	need(b->map != MAP_FAILED, "mmap of a buffer");
	return (unsigned short *)(b->map + GUARD);
}

/*
 * Looks at the pages that were ever touched alone. Returns the first byte that is not 0, or NULL.
 */
static const unsigned char *find_written(const struct buffer *b)
{
	unsigned char *resident = malloc(b->size / 4096);
	const unsigned char *found = NULL;

	need(resident && mincore(b->map, b->size, resident) == 0, "mincore");
	for (size_t page = 0; page < b->size / 4096 && !found; page++)
		for (int i = 0; resident[page] & 1 && i < 4096 && !found; i++)
			if (b->map[page * 4096 + i])
				found = &b->map[page * 4096 + i];
	free(resident);
	return found;
}

/* --- One case --- */

/* The C library's, which is not judged, is slow. */
static double ticks_of_case(void)
{
	return is_libc() ? 4 : 26;
}

#define LARGE (256UL << 20)

/*
 * Runs the loop while profiling is on; every second time it runs before and after that as well.
 * Returns for how many tick periods, 0 if profil() failed.
 */
static double count_loop(struct loop *loop, const struct call *call, unsigned short *buffer)
{
	long long cell = cell_of(call, call->pc);
	bool around = cases % 2;
	double before = 0, after = 0;

	if (around) {
		loop_start(loop);
		before = loop_ticks(loop);
	}
	if (profil(buffer, call->bufsiz, call->offset, call->scale)) {
		/* What profil(3) allows for buffers that are larger than memory. */
		if (errno != ENOMEM || call->bufsiz <= LARGE) {
			tell_case(call);
			expect(false, "profil(): %m");
		}
		if (around)
			loop_stop(loop);
		return 0;
	}
	if (!around)
		loop_start(loop);
	loop_wait_counted(loop, ticks_of_case(), cell >= 0 ? &buffer[cell] : NULL);
	if (around)
		profil_off();
	after = loop_stop(loop);
	profil_off();
	return after - before;
}

/* Prints what was counted in that many tick periods outside the one cell. */
static void verify(const struct call *call, const struct buffer *b, unsigned short *buffer,
		   double periods)
{
	long long cell = cell_of(call, call->pc), last = cell_of(call, call->pc + 2);
	const unsigned char *written;
	unsigned int got = 0;

	if (cell >= 0) {
		got = buffer[cell];
		buffer[cell] = 0;
		if (got < 1 || !is_about(got, 0, periods, 1)) {
			tell_case(call);
			expect(false, "%u ticks of %.0f in cell %lld", got, periods, cell);
		}
	}
	/* It may be seen when it leaves the loop. */
	if (last >= 0 && buffer[last] == 1)
		buffer[last] = 0;
	written = find_written(b);
	if (written) {
		tell_case(call);
		expect(false, "byte %td of the buffer is %d, counted must be in cell %lld",
		       written - (unsigned char *)buffer, *written, cell);
	}
}

static void run_case(const struct call *call)
{
	unsigned short *buffer;
	struct loop loop;
	struct buffer b;
	double periods;

	if (call->pc % LOOP_ALIGN || counts_other_code(call) || !loop_make(&loop, call->pc))
		return; /* it cannot be run here */
	buffer = make_buffer(&b, call->bufsiz);
	periods = count_loop(&loop, call, buffer);
	if (periods > 0)
		verify(call, &b, buffer, periods);
	munmap(b.map, b.size);
	loop_unmap(&loop);
	cases++;
}

/* --- Where the cases come from --- */

static void run_golden(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256];
	long long delta, cell;
	struct call call;

	need(file, path);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%li,%lli,%zu,%i,%lli", (long *)&call.offset, &delta, &call.bufsiz,
			   (int *)&call.scale, &cell) != 5)
			continue;
		call.pc = call.offset + delta;
		expect(cell_of(&call, call.pc) == cell, "the formula does not give: %s", line);
		run_case(&call);
	}
	fclose(file);
}

static const uintptr_t places[] = {
	0x1000, /* below 64 KiB, where vm.mmap_min_addr allows it */
	0x10000,	0x400000,	0x7ffff000,
	0x80000000,	0xfffff000, /* up to 4 GiB */
	0x100000000,	0x123456789000, 0x2aaaaaaab000,
	0x7ffffff00000, /* near the end of user space */
	0x7fffffffe000, /* its last page */
};

static const unsigned int scales[] = { 2,	3,	 0x4000,    0x5555,    0x8000,
				       0xc000,	0xfffe,	 0xffff,    0x10000,   0x10001,
				       0x20000, 0x12345, 0x1000000, 0xffffffff };

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static uint64_t seed;

static uint64_t random_below(uint64_t end)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % end;
}

/* Sizes around the one that makes the cell the last. */
static size_t random_bufsiz(const struct call *call)
{
	struct call all = { .offset = call->offset, .scale = call->scale, .bufsiz = SIZE_MAX / 2 };
	long long cell = cell_of(&all, call->pc);

	if (cell < 0 || cell > 1 << 20)
		return random_below(8192);
	switch (random_below(4)) {
	case 0:
		return 2 * cell + random_below(4);
	case 1:
		return cell;
	default:
		return 2 * cell + 2 + random_below(8192);
	}
}

static void run_random(void)
{
	struct call call;
	uint64_t delta = random_below(1ULL << random_below(40));

	call.pc = places[random_below(COUNT(places))] + random_below(4096 - LOOP_SIZE + 1);
	call.pc &= -LOOP_ALIGN;
	call.scale = scales[random_below(COUNT(scales))];
	if (random_below(3) == 0)
		call.scale = 2 + random_below(0x20000);
	call.offset = delta <= call.pc ? call.pc - delta : call.pc;
	if (random_below(16) == 0)
		call.offset = call.pc + 1 + random_below(64);
	call.bufsiz = random_bufsiz(&call);
	run_case(&call);
}

static void run_each(void)
{
	static const size_t sizes[] = { 1, 2, 3, 255, 4096, 65537 };
	struct call call;

	for (size_t i = 0; i < COUNT(scales) * COUNT(sizes); i++) {
		call.scale = scales[i % COUNT(scales)];
		call.bufsiz = sizes[i / COUNT(scales)];
		call.pc = places[i % COUNT(places)] + (0x765 & -LOOP_ALIGN);
		call.offset = call.pc - i % 3;
		run_case(&call);
	}
}

static void run_large(void)
{
	static const struct call calls[] = {
		{ 0x101000000 - 0x1001, 0x100000000, 1UL << 24, 0x10000 },
		{ 0x140000000 - 0x1001, 0x100000000, 1UL << 30, 0x10000 },
		{ 0x1fffffffe, 0x100000000, 1UL << 32, 0x10000 },
		{ 0x17fffffff, 0x100000000, 1UL << 32, 0x20000 },
		{ 0x40000ffff, 0x100000000, 1UL << 32, 2 },
		{ 0x100000001, 0x100000000, 1UL << 32, 0xffffffff },
	};

	for (size_t i = 0; i < COUNT(calls); i++)
		run_case(&calls[i]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	find_code();
	if (strcmp(what, "golden") == 0 && argc == 3) {
		run_golden(argv[2]);
	} else if (strcmp(what, "random") == 0 && argc == 4) {
		seed = strtoull(argv[2], NULL, 0) * 2654435761 + 1;
		for (unsigned int count = atoi(argv[3]); cases < count;)
			run_random();
	} else if (strcmp(what, "each") == 0) {
		run_each();
	} else if (strcmp(what, "large") == 0) {
		run_large();
	} else {
		return 2;
	}
	printf("cases %u\n", cases);
	return wrong;
}
