// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls work() in all ways in which a call begins and ends: 7 calls that count. Prints "ready", and
 * begins after a line on standard input.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	RETURN,
	JUMP,
	EXIT,
	RECUR = 10 /* and so many more */
};

static jmp_buf out;
static volatile int sink;

/* Not static: that would let the compiler make another one of it. */
int work(int how);

__attribute__((noinline)) int work(int how)
{
	if (how > RECUR) /* the result is used, so that it is no jump */
		return work(how - 1) + sink;
	if (how == JUMP)
		longjmp(out, 1);
	if (how == EXIT)
		pthread_exit(NULL);
	return sink;
}

/* Its frame is between that of the caller and work(). */
static __attribute__((noinline)) int deeper(int how)
{
	volatile char room[256] = { 0 };

	return work(how) + room[how];
}

static void *run(void *how)
{
	work((int)(intptr_t)how);
	return NULL;
}

static void run_thread(intptr_t how)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, (void *)how) == 0)
		pthread_join(thread, NULL);
}

int main(void)
{
	char line[16];

	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	sink += work(RETURN);
	sink += work(RECUR + 5); /* one call */
	if (!setjmp(out))
		sink += deeper(JUMP);
	sink += work(RETURN); /* ends the call before, and is one itself */
	run_thread(EXIT);
	run_thread(RETURN);
	if (!fork()) {
		sink += work(RETURN);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
