// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ticks times their period are about the CPU time that the kernel accounts, also of short-lived
 * threads and processes: profil_row.h.
 */
#include "profil_row.h"

#include <sys/resource.h>

#include "user/lib/profil.h"

/* The program is not linked with libprofil; it is preloaded. */
#pragma weak profil_attach
#pragma weak profil_detach
#pragma weak profil_error
#pragma weak profil_session_free
#pragma weak profil_read_totals

/* --- Threads that burn in `hot`, which profil() counts; a session counts all of the process --- */

static _Atomic uint64_t burnt_ns;

static void burn_ns(uint64_t ns)
{
	burnt_ns += (uint64_t)(burn(ticks_in(ns)) * tick_ns());
}

static void *burn_thread(void *ns)
{
	burn_ns(*(uint64_t *)ns);
	return NULL;
}

static void in_a_row(int count, uint64_t ns)
{
	pthread_t thread;

	while (count--) {
		need(pthread_create(&thread, NULL, burn_thread, &ns) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
}

static void at_once(int count, uint64_t ns)
{
	pthread_t threads[64];

	for (int i = 0; i < count; i++)
		need(pthread_create(&threads[i], NULL, burn_thread, &ns) == 0, "pthread_create");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static struct profil_session *attach(void)
{
	const struct profil_region region = {
		.offset = (uintptr_t)__start_hot,
		.bufsiz = CELLS * sizeof(*cells),
		.scale = 0x10000,
	};
	struct profil_session *session = NULL;
	int err = profil_attach(&session, 0, &region, 1, sizeof(region), 0);

	expect(err == 0, "profil_attach: %s", profil_error());
	return session;
}

static void expect_totals(const struct profil_totals *totals, double cpu_ns)
{
	double period = totals->period_ns;

	expect(totals->ticks == totals->in_range + totals->out_of_range + totals->lost,
	       "ticks %lu are not in_range %lu + out_of_range %lu + lost %lu", totals->ticks,
	       totals->in_range, totals->out_of_range, totals->lost);
	expect(period > tick_ns() * 0.999 && period < tick_ns() * 1.001,
	       "the period is %.0f ns, asked was %lu", period, tick_ns());
	expect_about("session: all of the process's CPU time", totals->ticks - totals->lost,
		     cpu_ns / period);
	expect_about("session: its region", totals->in_range, burnt_ns / period);
}

static void measure(void (*run)(int count, uint64_t ns), int count, uint64_t ns)
{
	struct profil_session *session;
	struct profil_totals totals;
	uint64_t cpu;

	expect(profil_hot(cells) == 0, "on: %m");
	session = attach();
	if (!session)
		return;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	run(count, ns);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	expect(profil_detach(session) == 0, "profil_detach: %s", profil_error());
	profil_off();
	expect_about("profil", sum(), ticks_in(burnt_ns));
	expect(profil_read_totals(session, &totals, sizeof(totals)) == 0, "profil_read_totals: %s",
	       profil_error());
	profil_session_free(session);
	expect_totals(&totals, cpu);
}

static void threads_of_5_ms(void)
{
	measure(in_a_row, 150, 5000000);
}

static void threads_of_half_a_ms(void)
{
	measure(in_a_row, 2000, 500000);
}

static void eight_threads(void)
{
	measure(at_once, 8, 100000000);
}

/* --- Children, each of which counts in the same memory while no other process does --- */

static void children_of_a_ms(void)
{
	unsigned short *shared = shared_memory(CELLS * sizeof(*shared));
	_Atomic uint64_t *burnt = shared_memory(sizeof(*burnt));

	expect(profil_hot(shared) == 0, "on: %m");
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();

		if (child == 0) {
			burn_ns(1000000);
			*burnt += burnt_ns;
			exit(0);
		}
		expect_well(child, "a child");
	}
	profil_off();
	expect_about("children", sum_of(shared), ticks_in(*burnt));
}

static const struct row rows[] = {
	{ "rate", "150 threads of 5 ms", threads_of_5_ms },
	{ "rate", "2,000 threads of 0.5 ms", threads_of_half_a_ms },
	{ "rate", "8 threads: 0.8 s", eight_threads },
	{ "rate", "300 children of 1 ms", children_of_a_ms },
};

int main(int argc, char **argv)
{
	return run_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
