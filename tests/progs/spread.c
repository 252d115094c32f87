// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs evenly over argv[1] (1000000) different instructions that it generates in anonymous memory,
 * in argv[2] (1) threads, for argv[3] seconds of CPU time each (0: until it is killed): its profile
 * has about as many different pcs as ticks. Prints "ready", or "cannot" on machines with unknown
 * instructions.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* A multiplication that waits for the one before, and the return; 4 bytes each. */
#if defined(__x86_64__)
#define MULTIPLY 0xc0af0f48 /* imul %rax,%rax */
#define RETURN	 0x909090c3 /* ret */
#elif defined(__aarch64__)
#define MULTIPLY 0x9b007c00 /* mul x0, x0, x0 */
#define RETURN	 0xd65f03c0 /* ret */
#else
#define MULTIPLY 0
#define RETURN	 0
#endif

static double seconds;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void *run(void *code)
{
	while (seconds == 0 || cpu_seconds() < seconds)
		((void (*)(void))code)();
	return NULL;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? atol(argv[1]) : 1000000;
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	size_t size = (count + 1) * sizeof(uint32_t);
	pthread_t thread;
	uint32_t *code;

	seconds = argc > 3 ? atof(argv[3]) : 0;
	if (!RETURN) {
		puts("cannot");
		return 1;
	}
	code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < count; i++)
		code[i] = MULTIPLY;
	code[count] = RETURN;
	if (mprotect(code, size, PROT_READ | PROT_EXEC))
		return 1;
	__builtin___clear_cache((char *)code, (char *)code + size);
	puts("ready");
	fflush(stdout);
	for (int i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, run, code))
			return 1;
	run(code);
	pthread_exit(NULL); /* the others go on */
}
