// SPDX-License-Identifier: GPL-2.0-only
/*
 * A perf session of its own, beside whatever else records: maps its file for execution on each CPU
 * and prints what its event recorded of that, which must be as nobody else was there:
 *
 *   mappings N, with a build ID M
 *
 * The event does not ask for build IDs. Ends with 1 if M is not 0, or if records are missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_PAGES 8
#define BUILD_ID   (1 << 14) /* PERF_RECORD_MISC_MMAP_BUILD_ID, which older headers do not have */

int main(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.exclude_kernel = 1,
	};
	size_t page = sysconf(_SC_PAGESIZE), ring = RING_PAGES * page;
	int event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int mapped = 0, recorded = 0, marked = 0;
	struct perf_event_mmap_page *control;

	if (event < 0 || file < 0) {
		perror("neighbour");
		return 2;
	}
	control = mmap(NULL, page + ring, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	if (control == MAP_FAILED) {
		perror("neighbour: mmap");
		return 2;
	}
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF) && mapped < 16; cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			continue; /* it is offline, or not ours */
		munmap(mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0), page);
		mapped++;
	}
	while (control->data_tail < control->data_head) {
		const struct perf_event_header *header =
			(void *)((char *)control + page + control->data_tail % ring);

		recorded += header->type == PERF_RECORD_MMAP2;
		marked += header->type == PERF_RECORD_MMAP2 && header->misc & BUILD_ID;
		control->data_tail += header->size;
	}
	printf("mappings %d, with a build ID %d\n", recorded, marked);
	return recorded != mapped || marked;
}
