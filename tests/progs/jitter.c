// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs code that it has generated in anonymous memory, and prints "ready" and the addresses of its
 * two functions: the first takes three quarters of the time. argv[1]: the kind of memory, "anon" or
 * "memfd". argv[2]: seconds. With argv[3], "late", it first waits for a line on standard input and
 * generates the code then; and for another one before it ends.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
/* mov ecx, edi (64-bit) or [esp + 4]; loop: dec ecx; jnz loop; ret */
#ifdef __x86_64__
static const unsigned char code[] = { 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
#else
static const unsigned char code[] = { 0x8b, 0x4c, 0x24, 0x04, 0xff, 0xc9, 0x75, 0xfb, 0xc3 };
#endif
#elif defined(__aarch64__)
static const uint32_t code[] = { 0x71000400, 0x54ffffe1, 0xd65f03c0 }; /* subs; b.ne; ret */
#else
#error "no machine code for this architecture"
#endif

#define DISTANCE 256

static char *make_memory(const char *kind)
{
	size_t size = 4096;
	int fd = -1;
	char *memory;

	if (strcmp(kind, "memfd") == 0) {
		fd = memfd_create("jitter", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, size))
			return MAP_FAILED;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return memory;
	memcpy(memory, code, sizeof(code));
	memcpy(memory + DISTANCE, code, sizeof(code));
	__builtin___clear_cache(memory, memory + size);
	return mprotect(memory, size, PROT_READ | PROT_EXEC) ? MAP_FAILED : memory;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	char line[64];
	char *memory;
	double end;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		return 2;
	if (argc > 3) {
		puts("ready");
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	memory = make_memory(argv[1]);
	if (memory == MAP_FAILED)
		return 1;
	printf("ready %lx %lx\n", (unsigned long)memory, (unsigned long)memory + DISTANCE);
	for (end = seconds() + atof(argv[2]); seconds() < end;) {
		/* At random: else on some CPU a turn is as long as a tick's period. */
		int turns = 200000 + rand() % 200000;

		((void (*)(int))memory)(3 * turns);
		((void (*)(int))(memory + DISTANCE))(turns);
	}
	return argc > 3 && !fgets(line, sizeof(line), stdin);
}
