// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that try to harm a profiler that walks their stacks by call frame information. Each
 * prints "ready" once it is set up.
 *
 * unwinder images DIRECTORY KIND COUNT: creates COUNT ELF files and maps their code, one after the
 * other. KIND:
 *
 *   tiny   one function
 *   wide   two functions, 4 GiB apart, in a file of one page
 *   rows   two million rows of call frame information
 *   rules  65,000 different rules
 *   slow   forty million instructions that make no row
 *
 * unwinder deepest DIRECTORY: like "images rows", with these files mapped at 8,000 addresses, and a
 * stack of return addresses there.
 *
 * unwinder stacks DIRECTORY: processes, one after the other, burn CPU time with an invalid stack
 * pointer and frame pointer.
 *
 * unwinder storm COUNT: maps code at COUNT addresses, and then continuously at new ones.
 *
 * unwinder leaders COUNT: makes COUNT processes whose first thread ends before the other.
 *
 * unwinder crowd KIND COUNT: makes COUNT mappings below the libraries', then is called by a
 * library, and burns CPU time. KIND: file (mappings of one file's code) or memory (code without a
 * file, every other page of it).
 *
 * unwinder family CHILDREN COUNT: makes COUNT mappings, prints "ready", waits for a line of
 * standard input, makes CHILDREN processes, each of which maps one more, prints "grown", and burns
 * CPU time.
 *
 * unwinder stuck UID: begun by root, becomes this user, and waits with its stack in memory whose
 * pages only it can provide, and does not.
 *
 * unwinder burn SECONDS: waits for a line of standard input, or its end, calls itself ten times,
 * and burns CPU time there.
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

__attribute__((noinline)) static void deepest(double seconds)
{
	double end = cpu_seconds() + seconds;

	while (cpu_seconds() < end)
		;
}

__attribute__((noinline)) static void deep(int depth, double seconds)
{
	if (depth)
		deep(depth - 1, seconds);
	else
		deepest(seconds);
	__asm__ volatile(""); /* no jump instead of the call */
}

/* --- ELF files --- */

#define ROWS_BYTES ((size_t)128 * 1024 * 1024)

struct file {
	uint8_t *bytes; /* ROWS_BYTES */
	size_t size;
};

static void put(struct file *f, const void *bytes, size_t size)
{
	memcpy(f->bytes + f->size, bytes, size);
	f->size += size;
}

static void put_number(struct file *f, uint64_t number, size_t size)
{
	put(f, &number, size);
}

static void put_uleb(struct file *f, uint64_t number)
{
	for (; number > 127; number >>= 7)
		put_number(f, (number & 127) | 128, 1);
	put_number(f, number, 1);
}

/* Begins a record; end_record() fills in its size. */
static size_t begin_record(struct file *f, uint32_t id)
{
	put_number(f, 0, 4);
	put_number(f, id, 4);
	return f->size - 8;
}

static void end_record(struct file *f, size_t begin)
{
	uint32_t size;

	while (f->size % 8)
		put_number(f, 0, 1); /* DW_CFA_nop */
	size = f->size - begin - 4;
	memcpy(f->bytes + begin, &size, sizeof(size));
}

static void put_fde(struct file *f, size_t cie, uint64_t start, uint64_t size, size_t rows,
		    size_t rules)
{
	size_t fde = begin_record(f, f->size + 4 - cie);

	put_number(f, start, 8);
	put_number(f, size, 8);
	for (size_t i = 0; i < rows; i++) {
		put_number(f, 0x41, 1); /* DW_CFA_advance_loc */
		put_number(f, 0x0e, 1); /* DW_CFA_def_cfa_offset */
		put_uleb(f, 8 + 8 * (i % rules));
	}
	end_record(f, fde);
}

static void make_image(const char *path, const char *kind)
{
	static struct file f;
	uint64_t limit = (uint64_t)4 << 30;
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr segments[2] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = limit, .p_memsz = limit },
		{ .p_type = PT_GNU_EH_FRAME, .p_offset = 256, .p_vaddr = 256, .p_filesz = 16 },
	};
	size_t cie;
	int fd;

	if (!f.bytes)
		f.bytes = malloc(ROWS_BYTES);
	f.size = 0;
	put(&f, &header, sizeof(header));
	put(&f, segments, sizeof(segments));
	while (f.size < 256)
		put_number(&f, 0, 1);
	put(&f, (uint8_t[]){ 1, 3, 255, 255 }, 4); /* udata4, omit, omit */
	put_number(&f, 264, 4);
	cie = begin_record(&f, 0);
	put(&f, (uint8_t[]){ 1, 0, 1, 0x78, 16, 12, 7, 8, 0x90, 1 }, 10);
	end_record(&f, cie);
	put_fde(&f, cie, 0x1000, 0x100, 1, 1);
	if (strcmp(kind, "wide") == 0)
		put_fde(&f, cie, limit - 0x100000, 0x100, 1, 1);
	else if (strcmp(kind, "rows") == 0)
		put_fde(&f, cie, 0x2000, 0x8000000, 2000000, 2);
	else if (strcmp(kind, "rules") == 0)
		put_fde(&f, cie, 0x2000, 0x8000000, 65000, 65000);
	else if (strcmp(kind, "slow") == 0)
		for (size_t i = 0; i < 40; i++)
			put_fde(&f, cie, 0x2000 + i * 0x1000000, 0x1000000, 1000000, 1);
	put_number(&f, 0, 8);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
	if (fd < 0 || write(fd, f.bytes, f.size) != (ssize_t)f.size)
		fail(path);
	if (mmap(NULL, 0x10000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		fail("mmap");
	close(fd);
}

static void make_images(const char *directory, const char *kind, int count)
{
	char path[4096];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s.%d", directory, kind, i);
		make_image(path, kind);
	}
}

/* --- Mappings --- */

/* Nowhere near what else is mapped. */
static void *random_place(uint64_t half)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (void *)((half << 44) + (seed >> 36) * 8192);
}

static void *map_at(void *at)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/self/exe", O_RDONLY);
	return mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
}

static void map_many(int count)
{
	for (int i = 0; i < count; i++)
		if (map_at(random_place(1)) == MAP_FAILED)
			fail("mmap");
}

/* They are in the way of who reads mappings in the order of their addresses. */
static void map_crowd(const char *kind, int count)
{
	bool memory = strcmp(kind, "memory") == 0;
	char *place = mmap(NULL, count * 4096L, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		fail("mmap");
	for (int i = 0; i < count; i += 1 + memory)
		if (memory ? mprotect(place + i * 4096L, 4096, PROT_READ | PROT_EXEC)
			   : map_at(place + i * 4096L) == MAP_FAILED)
			fail("mmap");
}

static void map_on(void)
{
	for (;;)
		munmap(map_at(random_place(2)), 4096);
}

/* --- Stacks --- */

/* Does not come back. */
static void burn_at(uint64_t pc, const void *sp, uint64_t bp)
{
	__asm__ volatile("mov %1, %%rsp\n\t"
			 "mov %2, %%rbp\n\t"
			 "jmp *%0"
			 :
			 : "r"(pc), "r"(sp), "r"(bp));
	__builtin_unreachable();
}

#define ROWS_END   (2 << 20)
#define LOOP_AT	   (16 << 20) /* in the file, behind all rows */
#define PLACES	   8000
#define STACK_SIZE (1 << 16)

/* Code that loops, in a file whose rows say that each frame is a word or two. */
static uintptr_t map_loop(const char *directory, int *fd)
{
	static const uint8_t loop[] = { 0xeb, 0xfe }; /* jmp to itself */
	char path[4096], *code;

	snprintf(path, sizeof(path), "%s/loop", directory);
	make_image(path, "rows");
	*fd = open(path, O_RDWR);
	if (*fd < 0 || pwrite(*fd, loop, sizeof(loop), LOOP_AT) != sizeof(loop))
		fail(path);
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, *fd, LOOP_AT);
	if (code == MAP_FAILED)
		fail("mmap");
	return (uintptr_t)code;
}

static void burn_deepest(const char *directory)
{
	static uint64_t places[PLACES], stack[STACK_SIZE];
	int fd;
	uintptr_t code = map_loop(directory, &fd);

	for (size_t i = 0; i < PLACES; i++) {
		char *place =
			mmap(random_place(1), 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			     fd, 8192 + i * 4096 % (ROWS_END - 8192));

		if (place == MAP_FAILED)
			fail("mmap");
		places[i] = (uintptr_t)place;
	}
	for (size_t i = 0; i < STACK_SIZE; i++)
		stack[i] = places[(uint64_t)rand() % PLACES] + rand() % 4096;
	puts("ready");
	burn_at(code, stack, 0);
}

static void burn_astray(const char *directory)
{
	static const uint64_t pointers[] = {
		0,
		8,
		0xfff,
		UINT64_MAX - 7,
		UINT64_MAX,
		0x7fffffffeff8,
		0x7ffffffff000,
		0x800000000000,
		0xffff800000000000,
		0xffffffff81000000,
		0xffffffffff600000,
		INT64_MAX,
		(uint64_t)INT64_MAX + 1,
	};
	size_t count = sizeof(pointers) / sizeof(*pointers);
	uint64_t loop[512];
	int fd;
	uintptr_t code = map_loop(directory, &fd);

	for (size_t i = 0; i < 512; i += 2) { /* frames that have each other for callers */
		loop[i] = (uintptr_t)&loop[(i + 2) % 512];
		loop[i + 1] = code;
	}
	for (size_t i = 0; i < 2 * count + 2; i++) {
		uint64_t pointer = i / 2 < count ? pointers[i / 2] : (uintptr_t)loop;
		const struct timespec a_little = { .tv_nsec = 60000000 };
		pid_t child = fork();

		if (child == 0)
			burn_at(code, i % 2 ? (void *)pointer : (void *)loop, pointer);
		nanosleep(&a_little, NULL);
		kill(child, SIGKILL);
		wait(NULL);
	}
}

/* --- Processes --- */

static void *outlive_leader(void *unused)
{
	const struct timespec a_little = { .tv_nsec = 5000000 };

	nanosleep(&a_little, NULL);
	_exit(0);
	return unused;
}

static void make_leaders(int count)
{
	const struct timespec a_little = { .tv_nsec = 2000000 };
	pthread_t thread;

	for (int i = 0; i < count; i++) {
		if (fork()) {
			if (i % 8 == 7)
				while (wait(NULL) > 0)
					;
			continue;
		}
		if (map_at(random_place(1)) == MAP_FAILED ||
		    pthread_create(&thread, NULL, outlive_leader, NULL))
			_exit(1);
		nanosleep(&a_little, NULL);
		pthread_exit(NULL);
	}
}

/* The children live until their parent ends. */
static void grow_family(int children)
{
	int ready[2];
	char byte = 0;

	if (pipe(ready))
		fail("pipe");
	for (int i = 0; i < children; i++) {
		pid_t child = fork();

		if (child < 0)
			fail("fork");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (map_at(random_place(1)) == MAP_FAILED || write(ready[1], &byte, 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		if (read(ready[0], &byte, 1) != 1)
			fail("read");
	}
}

static int burn_in_compare(const void *a, const void *b)
{
	deep(10, 60);
	return *(const char *)a - *(const char *)b;
}

static char *make_stuck(uid_t uid)
{
	struct uffdio_register all = { .range.len = 1 << 20, .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	char *stack = mmap(NULL, all.range.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	all.range.start = (uintptr_t)stack;
	if (fd < 0 || stack == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &all))
		fail("userfaultfd");
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1))
		fail("setresuid");
	return stack + all.range.len / 2;
}

static void wait_on(const char *stack)
{
#if defined(__x86_64__)
	asm volatile("mov %0, %%rsp\n1: mov %1, %%eax\nsyscall\njmp 1b"
		     :
		     : "r"(stack), "i"(SYS_pause)
		     : "rax", "rcx", "r11", "memory");
#elif defined(__aarch64__)
	asm volatile("mov sp, %0\n1: mov x8, %1\nmov x0, 0\nmov x1, 0\nmov x2, 0\nmov x3, 0\n"
		     "svc 0\nb 1b"
		     :
		     : "r"(stack), "i"(SYS_ppoll)
		     : "x0", "x1", "x2", "x3", "x8", "memory");
#endif
}

int main(int argc, char **argv)
{
	const char *stack = NULL;
	char two[] = "ba";
	const char *what = argc > 2 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "images") == 0 && argc == 5)
		make_images(argv[2], argv[3], atoi(argv[4]));
	else if (strcmp(what, "storm") == 0)
		map_many(atoi(argv[2]));
	else if (strcmp(what, "crowd") == 0 && argc == 4)
		map_crowd(argv[2], atoi(argv[3]));
	else if (strcmp(what, "family") == 0 && argc == 4)
		map_crowd("file", atoi(argv[3]));
	else if (strcmp(what, "leaders") == 0)
		make_leaders(atoi(argv[2]));
	else if (strcmp(what, "deepest") == 0)
		burn_deepest(argv[2]);
	else if (strcmp(what, "stacks") == 0)
		burn_astray(argv[2]);
	else if (strcmp(what, "stuck") == 0)
		stack = make_stuck(atoi(argv[2]));
	else if (strcmp(what, "burn"))
		return 2;
	puts("ready");
	if (strcmp(what, "storm") == 0)
		map_on();
	if (stack)
		wait_on(stack);
	if (strcmp(what, "images") == 0)
		pause(); /* until it is killed */
	if (strcmp(what, "crowd") == 0)
		qsort(two, 2, 1, burn_in_compare);
	if (strcmp(what, "family") == 0) {
		getchar();
		grow_family(atoi(argv[2]));
		puts("grown");
		deep(10, 60);
	}
	if (strcmp(what, "burn") == 0) {
		getchar();
		deep(10, atof(argv[2]));
	}
	return 0;
}
