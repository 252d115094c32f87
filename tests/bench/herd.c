// SPDX-License-Identifier: GPL-2.0-only
/*
 * herd PROCESSES ROUNDS MS: busy processes, without and with profil() on in all of them, for MS
 * milliseconds each, ROUNDS times. Prints for each round
 *
 *   kept=SHARE       work for each second of CPU time while on, relative to that while off
 *   least=SHARE      the same of the process at the tenth percentile
 *   off=N, on=N      local timer interrupts of the machine in a second
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "legacy.h"

enum {
	OFF,
	ON
};

/* What a process has done in a phase. */
struct work {
	uint64_t units, cpu_ns;
};

static struct shared {
	atomic_uint phase;   /* its number: rest, off, rest, on, ... */
	atomic_uint arrived; /* in this phase */
	struct work work[][2];
} * shared;

static void work_on(unsigned int phase, struct work *work)
{
	uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	volatile unsigned int sink;
	unsigned int x = 1;

	work->units = 0;
	while (shared->phase == phase) {
		for (int i = 0; i < 50000; i++)
			x = x * 1664525 + 1013904223;
		sink = x;
		work->units++;
	}
	(void)sink;
	work->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
}

static void arrive_and_rest(unsigned int phase)
{
	shared->arrived++;
	while (shared->phase == phase)
		usleep(1000);
}

static void run_member(unsigned long number, unsigned long rounds)
{
	struct work *work = shared->work[number];
	unsigned int phase = 0;
	unsigned short *cells;
	size_t size;

	require(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "prctl");
	cells = make_cells(&size);
	while (rounds--) {
		profil_off();
		arrive_and_rest(phase++);
		work_on(phase++, &work[OFF]);
		profil_on(cells, size);
		arrive_and_rest(phase++);
		work_on(phase++, &work[ON]);
	}
	arrive_and_rest(phase);
}

/* Of all CPUs, so far. */
static uint64_t timer_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	uint64_t sum = 0;
	char line[65536];

	require(file, "/proc/interrupts");
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "LOC:"), *end;

		if (!at)
			continue;
		for (at += 4;; at = end) {
			uint64_t count = strtoull(at, &end, 10);

			if (end == at)
				break;
			sum += count;
		}
	}
	fclose(file);
	return sum;
}

/* When all rest, lets them work for a while. Returns the interrupts of a second. */
static double work_phase(unsigned long processes, unsigned long ms)
{
	uint64_t begin, interrupts;
	double seconds;

	while (shared->arrived < processes)
		usleep(1000);
	shared->arrived = 0;
	interrupts = timer_interrupts();
	begin = clock_ns(CLOCK_MONOTONIC);
	shared->phase++;
	sleep_until(begin + ms * 1000000);
	interrupts = timer_interrupts() - interrupts;
	seconds = (clock_ns(CLOCK_MONOTONIC) - begin) / 1e9;
	shared->phase++;
	return interrupts / seconds;
}

static int compare(const void *left, const void *right)
{
	double l = *(const double *)left, r = *(const double *)right;

	return (l > r) - (l < r);
}

static void print_round(unsigned long processes, const double interrupts[2])
{
	double *kept = calloc(processes, sizeof(*kept));
	struct work sum[2] = { 0 };
	unsigned long count = 0;

	require(kept, "calloc");
	for (unsigned long i = 0; i < processes; i++) {
		struct work *work = shared->work[i];

		for (int phase = OFF; phase <= ON; phase++) {
			sum[phase].units += work[phase].units;
			sum[phase].cpu_ns += work[phase].cpu_ns;
		}
		if (work[OFF].units && work[ON].units)
			kept[count++] = (double)work[ON].units / work[ON].cpu_ns /
					((double)work[OFF].units / work[OFF].cpu_ns);
	}
	qsort(kept, count, sizeof(*kept), compare);
	printf("kept=%.4f\nleast=%.4f\noff=%.1f\non=%.1f\n",
	       (double)sum[ON].units / sum[ON].cpu_ns / ((double)sum[OFF].units / sum[OFF].cpu_ns),
	       count ? kept[count / 10] : 0, interrupts[OFF], interrupts[ON]);
	fflush(stdout);
	free(kept);
}

/* When all rest behind the last work phase, what they have written is complete. */
static void wait_until_all_rest(unsigned long processes)
{
	while (shared->arrived < processes)
		usleep(1000);
}

int main(int argc, char **argv)
{
	unsigned long processes, rounds, ms;
	double interrupts[2];

	if (argc != 4) {
		fprintf(stderr, "usage: herd PROCESSES ROUNDS MS\n");
		return 2;
	}
	processes = strtoul(argv[1], NULL, 10);
	rounds = strtoul(argv[2], NULL, 10);
	ms = strtoul(argv[3], NULL, 10);
	require(dlsym(RTLD_DEFAULT, "profil_backend"), "libprofil is not here");
	shared = mmap(NULL, sizeof(*shared) + processes * sizeof(shared->work[0]),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	require(shared != MAP_FAILED, "mmap");
	signal(SIGCHLD, SIG_IGN);
	for (unsigned long i = 0; i < processes; i++) {
		pid_t child = fork();

		require(child >= 0, "fork");
		if (child == 0) {
			run_member(i, rounds);
			_exit(0);
		}
	}
	while (rounds--) {
		interrupts[OFF] = work_phase(processes, ms);
		interrupts[ON] = work_phase(processes, ms);
		wait_until_all_rest(processes);
		print_round(processes, interrupts);
	}
	return 0;
}
