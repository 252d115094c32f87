// SPDX-License-Identifier: GPL-2.0-only
/*
 * run_delay SECONDS [PID]: prints for how long all threads of the machine, or of a process, have
 * run, and have waited for a CPU, meanwhile, by the kernel's own account: sum_exec_runtime and
 * run_delay, with the waits under way. since_ns, until_ns: from when and up to when, since the
 * epoch.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run_delay.skel.h"
#include "tests/progs/run_delay.h"

#define TIDS (1 << 22) /* PID_MAX_LIMIT */

static int read_threads(const struct run_delay_bpf *bpf, struct thread_account *accounts,
			struct timespec *time)
{
	int fd = bpf_iter_create(bpf_link__fd(bpf->links.each_thread));
	struct thread_account a[64];
	ssize_t size;

	if (fd < 0)
		return -1;
	clock_gettime(CLOCK_REALTIME, time);
	while ((size = read(fd, a, sizeof(a))) > 0)
		for (size_t i = 0; i < size / sizeof(*a); i++)
			if (a[i].tid < TIDS)
				accounts[a[i].tid] = a[i];
	close(fd);
	return size;
}

static unsigned long long only_pid; /* 0: all processes */

/* Adds what a thread has done since `before`, in which it may be by its TID. */
static void add_thread(struct thread_account *sum, const struct thread_account *thread,
		       const struct thread_account *before)
{
	const struct thread_account none = { 0 }, *from = &before[thread->tid];

	if (only_pid && thread->pid != only_pid)
		return;
	if (from->start_ns != thread->start_ns)
		from = &none; /* it is newer */
	sum->ran_ns += thread->ran_ns - from->ran_ns;
	sum->delay_ns += thread->delay_ns - from->delay_ns;
}

/* Adds the threads that have ended, which may still be in `after`; sum may be NULL. */
static void take_ended(int map, struct thread_account *sum, const struct thread_account *before,
		       struct thread_account *after)
{
	struct thread_account thread;
	uint64_t start_ns;

	while (bpf_map_get_next_key(map, NULL, &start_ns) == 0) {
		if (sum && bpf_map_lookup_elem(map, &start_ns, &thread) == 0 && thread.tid < TIDS) {
			add_thread(sum, &thread, before);
			if (after[thread.tid].start_ns == start_ns)
				after[thread.tid] = (struct thread_account){ 0 };
		}
		bpf_map_delete_elem(map, &start_ns);
	}
}

static long long epoch_ns(const struct timespec *time)
{
	return time->tv_sec * 1000000000LL + time->tv_nsec;
}

int main(int argc, char **argv)
{
	/* By TID; all 0: there is no such thread. */
	struct thread_account *before = calloc(TIDS, sizeof(*before)),
			      *after = calloc(TIDS, sizeof(*after)), sum = { 0 };
	const struct sched_param first = { .sched_priority = 1 };
	struct run_delay_bpf *bpf = run_delay_bpf__open_and_load();
	struct timespec since, until;
	int map;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: run_delay SECONDS [PID]\n");
		return 2;
	}
	only_pid = argc > 2 ? atoi(argv[2]) : 0;
	/* What it reads at one time must not be interrupted by those that it reads. */
	if (!before || !after || !bpf || run_delay_bpf__attach(bpf) ||
	    sched_setscheduler(0, SCHED_FIFO, &first)) {
		perror("run_delay");
		return 1;
	}
	map = bpf_map__fd(bpf->maps.ended);
	take_ended(map, NULL, before, after); /* before the time */
	if (read_threads(bpf, before, &since)) {
		perror("run_delay");
		return 1;
	}
	usleep(atof(argv[1]) * 1000000);
	if (read_threads(bpf, after, &until)) {
		perror("run_delay");
		return 1;
	}
	take_ended(map, &sum, before, after);
	for (size_t tid = 0; tid < TIDS; tid++)
		if (after[tid].start_ns)
			add_thread(&sum, &after[tid], before);
	printf("{ \"since_ns\": %lld, \"until_ns\": %lld, \"ran_ns\": %llu, \"delay_ns\": %llu }\n",
	       epoch_ns(&since), epoch_ns(&until), sum.ran_ns, sum.delay_ns);
	return 0;
}
