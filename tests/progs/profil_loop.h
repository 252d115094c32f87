/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code at chosen addresses: a loop of one instruction, so that each tick of a thread in it has the
 * same pc.
 */
#ifndef TESTS_PROFIL_LOOP_H
#define TESTS_PROFIL_LOOP_H

#include "machine.h"
#include "profil_row.h"

struct loop {
	void *map;
	size_t map_size;
	volatile unsigned char *pc;
	pthread_t thread;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
};

/*
 * Makes a loop whose pc is `pc`. Returns false if there is something else already, or may not be.
 */
static inline bool loop_make(struct loop *loop, uintptr_t pc)
{
	static const unsigned char code[LOOP_SIZE] = LOOP_CODE;
	uintptr_t page = sysconf(_SC_PAGESIZE);
	uintptr_t first = pc & -page, end = ((pc + LOOP_SIZE - 1) & -page) + page;

	loop->map_size = end - first;
	loop->map = mmap((void *)first, loop->map_size, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (loop->map == MAP_FAILED)
		return false;
	loop->pc = (unsigned char *)pc;
	memcpy((void *)pc, code, LOOP_SIZE);
	__builtin___clear_cache((char *)pc, (char *)pc + LOOP_SIZE);
	return true;
}

static inline void loop_unmap(struct loop *loop)
{
	munmap(loop->map, loop->map_size);
}

static inline void loop_start(struct loop *loop)
{
	void *(*entry)(void *) = (void *(*)(void *))loop->pc;

	loop->begin_ns = clock_ns(CLOCK_MONOTONIC);
	need(pthread_create(&loop->thread, NULL, entry, NULL) == 0, "pthread_create");
}

/* The tick periods that the loop has run for. */
static inline double loop_ticks(const struct loop *loop)
{
	clockid_t clock;

	need(pthread_getcpuclockid(loop->thread, &clock) == 0, "pthread_getcpuclockid");
	return ticks_in(clock_ns(clock));
}

/* Waits until the loop has run for that many tick periods more. */
static inline void loop_wait(const struct loop *loop, double ticks)
{
	double begin = loop_ticks(loop);

	while (loop_ticks(loop) - begin < ticks)
		sleep_ms(0.1);
}

/*
 * The same, and until this cell has a tick, which is to be seen while profiling is on: for the time
 * in which the machine stood still there may be none. NULL: no cell. Gives up after ten seconds.
 */
static inline void loop_wait_counted(const struct loop *loop, double ticks,
				     const volatile void *cell)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	loop_wait(loop, ticks);
	while (cell && !*(const volatile unsigned short *)cell &&
	       clock_ns(CLOCK_MONOTONIC) - begin < UINT64_C(10000000000))
		sleep_ms(0.1);
}

static inline void loop_set(struct loop *loop, unsigned char value)
{
	loop->pc[LOOP_BYTE] = value;
	__builtin___clear_cache((char *)loop->pc, (char *)loop->pc + LOOP_SIZE);
}

/*
 * The jump becomes one to the instruction behind it. Returns the tick periods that it has run for
 * in all: more than were waited for, on a busy machine.
 */
static inline double loop_stop(struct loop *loop)
{
	double ticks = loop_ticks(loop);

	loop_set(loop, LOOP_LEAVE);
	pthread_join(loop->thread, NULL);
	loop_set(loop, LOOP_STAY);
	add_uncharged(clock_ns(CLOCK_MONOTONIC) - loop->begin_ns, ticks * tick_ns());
	return ticks;
}

#endif
