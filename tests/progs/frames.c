// SPDX-License-Identifier: GPL-2.0-only
/*
 * All kinds of frames that are hard to unwind, one after the other, until it is killed: signal
 * handlers (on the stack, and on a separate one), frames of variable size, realigned frames, code
 * after a call that does not return, coroutines, callbacks, children on the parent's stack. Built
 * without frame pointers. frames US: a signal every so many microseconds; on a slow machine, the
 * handlers would take all of the time.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned int sink;
static volatile int zero; /* that the compiler does not know of */

static unsigned int turns = 20000;

NOINLINE static void burn(void)
{
	for (unsigned int i = 0; i < turns; i++)
		sink += i;
}

/* More turns on a fast CPU: what is in a handler for a few microseconds is hardly ever seen. */
static void choose_turns(void)
{
	const long least_ns = 40000;
	struct timespec begin, end;
	long shortest = least_ns;

	for (int i = 0; i < 20; i++) {
		long took;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		burn();
		clock_gettime(CLOCK_MONOTONIC, &end);
		took = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
		shortest = took < shortest ? took : shortest;
	}
	turns = (unsigned long)turns * least_ns / shortest;
}

NOINLINE static int recurse(int depth)
{
	if (depth == 0)
		burn();
	else
		recurse(depth - 1);
	return sink + depth; /* no tail call */
}

NOINLINE static void use(char *bytes, size_t size)
{
	memset(bytes, 1, size);
	burn();
	sink += bytes[size - 1];
}

NOINLINE static void with_alloca(size_t size)
{
	use(alloca(size), size);
	sink++;
}

NOINLINE static void with_variable_array(size_t size)
{
	char bytes[size];

	use(bytes, size);
	sink++;
}

/* Both: the frame can be found neither by the stack pointer nor by a fixed distance. */
NOINLINE static void with_realigned_array(size_t size)
{
	_Alignas(64) char aligned[128];
	char bytes[size];

	use(bytes, size);
	use(aligned, sizeof(aligned));
	sink++;
}

/* --- Jumps --- */

static __thread jmp_buf jump;

NOINLINE __attribute__((noreturn)) static void jump_back(void)
{
	burn();
	longjmp(jump, 1);
}

/* Its last instruction is a call, behind which another function begins. */
NOINLINE __attribute__((noreturn)) static void never_returns(int depth)
{
	sink += depth;
	jump_back();
}

NOINLINE static void with_jump(void)
{
	if (setjmp(jump) == 0)
		never_returns(zero);
	sink++;
}

/* --- Coroutines --- */

static ucontext_t main_context, coroutine_context;
static char coroutine_stack[65536];

NOINLINE static void coroutine(void)
{
	for (;;) {
		recurse(2);
		swapcontext(&coroutine_context, &main_context);
	}
}

static void make_coroutine(void)
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = coroutine_stack;
	coroutine_context.uc_stack.ss_size = sizeof(coroutine_stack);
	makecontext(&coroutine_context, coroutine, 0);
}

NOINLINE static void switch_contexts(void)
{
	for (int i = 0; i < 4; i++)
		swapcontext(&main_context, &coroutine_context);
	sink++;
}

/* --- Callbacks, children, the vDSO --- */

NOINLINE static int compare(const void *a, const void *b)
{
	for (unsigned int i = 0; i < turns / 1000; i++)
		sink += i;
	return *(const int *)a - *(const int *)b;
}

NOINLINE static void sort(void)
{
	int numbers[200];

	for (int i = 0; i < 200; i++)
		numbers[i] = i * 7919 % 200;
	qsort(numbers, 200, sizeof(*numbers), compare);
	sink += numbers[0];
}

/* Longer than the time between two ticks. */
NOINLINE static void in_child(void)
{
	for (int i = 0; i < 40; i++)
		burn();
}

NOINLINE static void with_child(void)
{
	pid_t child = vfork();

	if (child == 0) {
		in_child();
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

NOINLINE static void ask_time(void)
{
	struct timespec now;

	for (unsigned int i = 0; i < turns / 50; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sink += now.tv_nsec;
	}
}

NOINLINE static void ask_kernel(void)
{
	for (unsigned int i = 0; i < turns / 100; i++)
		sink += syscall(SYS_getppid);
}

/* --- Signals: every 300 us, wherever the thread is --- */

NOINLINE static void on_stack(int number)
{
	burn();
	sink += number;
}

NOINLINE static void on_other_stack(int number)
{
	recurse(2);
	sink += number;
}

static long signal_ns = 300000; /* from one signal to the next */

static void start_timer(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number };
	struct itimerspec every = { { 0, signal_ns }, { 0, signal_ns } };
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (sigaction(number, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &every, NULL)) {
		perror("a timer");
		exit(1);
	}
}

/* --- --- */

NOINLINE static void run_all(void)
{
	recurse(20);
	with_alloca(100 + sink % 100);
	with_variable_array(100 + sink % 100);
	with_realigned_array(100 + sink % 100);
	with_jump();
	sort();
	ask_time();
	ask_kernel();
}

/* This one handles signals on a stack that lies just below its own, so that one copy has both. */
#ifdef __aarch64__
#define STACK_BYTES (256 << 10) /* PTHREAD_STACK_MIN is 128 KiB, and signal frames are large */
#else
#define STACK_BYTES 16384
#endif

static void *run_beside(void *stacks)
{
	const stack_t other = { .ss_sp = stacks, .ss_size = STACK_BYTES };

	if (sigaltstack(&other, NULL)) {
		perror("sigaltstack");
		exit(1);
	}
	start_timer(SIGUSR2, on_other_stack, SA_ONSTACK);
	for (;;)
		run_all();
	return NULL;
}

static void start_thread_beside(void)
{
	char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (stacks == MAP_FAILED ||
	    pthread_attr_setstack(&attr, stacks + STACK_BYTES, STACK_BYTES) ||
	    pthread_create(&thread, &attr, run_beside, stacks)) {
		perror("a thread");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		signal_ns = atol(argv[1]) * 1000;
	choose_turns();
	make_coroutine();
	start_thread_beside();
	start_timer(SIGUSR1, on_stack, 0);
	puts("ready");
	fflush(stdout);
	for (unsigned int round = 0;; round++) {
		run_all();
		switch_contexts();
		recurse(200);
		if (round % 8 == 0)
			with_child();
	}
}
