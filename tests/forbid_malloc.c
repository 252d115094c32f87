// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to be preloaded: its malloc(3) ends the process if it is called in a signal handler,
 * where the interrupted code may hold malloc's locks. The handler says so by forbid_malloc(1), for
 * this thread, or (2) for all threads, and at its end by forbid_malloc(0).
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);

static volatile int whose, thread;

void forbid_malloc(int of)
{
	thread = syscall(SYS_gettid);
	whose = of;
}

static void check(void)
{
	/* Read once: the handler may run, and end, between two reads. */
	int of = whose;

	if (!of || (of == 1 && syscall(SYS_gettid) != thread))
		return;
	if (write(1, "malloc(3) in a signal handler\n", 30))
		_exit(3);
}

void *malloc(size_t size)
{
	check();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	check();
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	check();
	return __libc_realloc(memory, size);
}

void free(void *memory)
{
	if (memory)
		check();
	__libc_free(memory);
}
