// SPDX-License-Identifier: GPL-2.0-only
/*
 * run_delay: prints every 20 ms for how long all threads of the machine have waited for a CPU,
 * since it began, by the kernel's own account: run_delay, with the waits under way. Lines of
 * numbers: the time since the epoch, and for each CPU what threads have waited that are there; ns.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run_delay.skel.h"
#include "tests/progs/run_delay.h"

#define TIDS (1 << 22) /* PID_MAX_LIMIT */

static struct thread_account *last; /* by TID; all 0: no such thread was seen */
static size_t cpus;
static unsigned long long *sums; /* of each CPU */

/* Adds what a thread has done since it was seen, or since it began. */
static void add_thread(const struct thread_account *thread)
{
	struct thread_account *before = &last[thread->tid];

	if (thread->tid >= TIDS || thread->cpu >= cpus)
		return;
	if (before->start_ns != thread->start_ns)
		*before = (struct thread_account){ 0 };
	sums[thread->cpu] += thread->delay_ns - before->delay_ns;
	*before = *thread;
}

/* Adds the threads that have ended, which may still be among those that the iterator finds. */
static void add_ended(int map)
{
	struct thread_account thread;
	uint64_t start_ns;

	while (bpf_map_get_next_key(map, NULL, &start_ns) == 0) {
		if (bpf_map_lookup_elem(map, &start_ns, &thread) == 0)
			add_thread(&thread);
		bpf_map_delete_elem(map, &start_ns);
	}
}

static int add_threads(const struct run_delay_bpf *bpf)
{
	int fd = bpf_iter_create(bpf_link__fd(bpf->links.each_thread));
	struct thread_account a[64];
	ssize_t size;

	if (fd < 0)
		return -1;
	while ((size = read(fd, a, sizeof(a))) > 0)
		for (size_t i = 0; i < size / sizeof(*a); i++)
			add_thread(&a[i]);
	close(fd);
	return size;
}

int main(void)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct run_delay_bpf *bpf = run_delay_bpf__open_and_load();

	cpus = libbpf_num_possible_cpus();
	last = calloc(TIDS, sizeof(*last));
	sums = calloc(cpus, sizeof(*sums));
	/* What it reads at one time must not be interrupted by those that it reads. */
	if (!last || !sums || !bpf || run_delay_bpf__attach(bpf) ||
	    sched_setscheduler(0, SCHED_FIFO, &first)) {
		perror("run_delay");
		return 1;
	}
	for (bool begun = false;; begun = true) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		if (add_threads(bpf)) {
			perror("run_delay");
			return 1;
		}
		add_ended(bpf_map__fd(bpf->maps.ended));
		if (!begun)
			memset(sums, 0, cpus * sizeof(*sums));
		printf("%lld", now.tv_sec * 1000000000LL + now.tv_nsec);
		for (size_t i = 0; i < cpus; i++)
			printf(" %llu", sums[i]);
		puts("");
		fflush(stdout);
		usleep(20000);
	}
}
