// SPDX-License-Identifier: GPL-2.0-only
#include "capture/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/cpus.h"
#include "capture/perf_event.h"
#include "capture/program.h"
#include "util/array.h"
#include "util/order.h"

/*
 * Pages of each CPU's buffer: a power of two, the most that the default kernel.perf_event_mlock_kb
 * allows every user. An exec makes some ten records of about 120 bytes.
 */
#define RING_PAGES 128
/*
 * Wake after some thirty records: soon enough to open the files of short-lived processes.
 * Bound: pace.
 */
#define WAKEUP_BYTES 4096
/*
 * No record is longer, together with that of a loss before it: the longest has a path.
 * Bound: format.
 */
#define RECORD_BYTES_MAX (4096 + 256)

struct ring {
	struct perf_event_mmap_page *control; /* the data pages follow it */
	size_t data_size;
	int cpu; /* -1: its event is dead */
	uint64_t enabled_ns;
	uint64_t last_ns; /* of the last record that was read from it */
};

/* A record that was read from its ring and not yet visited. */
struct pending {
	uint64_t time_ns;
	size_t offset; /* in sideband.bytes */
};

struct sideband {
	int *fds;
	struct ring *rings;
	size_t count, fd_room, ring_room;
	char *bytes; /* copies of the pending records */
	size_t byte_count, byte_room;
	struct pending *pending;
	size_t pending_count, pending_room;
	uint64_t lost, complete_ns;
	struct perf_event_attr attr;
};

struct open_context {
	struct sideband *s;
	struct error *e;
};

static int open_cpu(int cpu, void *context)
{
	struct sideband *s = ((struct open_context *)context)->s;
	struct error *e = ((struct open_context *)context)->e;
	size_t page = sysconf(_SC_PAGESIZE);
	struct ring ring = { .data_size = RING_PAGES * page, .cpu = cpu };
	char what[64];
	int fd;

	for (size_t i = 0; i < s->count; i++)
		if (s->rings[i].cpu == cpu)
			return 0;
	snprintf(what, sizeof(what), "the records of mappings on CPU %d", cpu);
	if (array_reserve(&s->fds, &s->fd_room, s->count + 1, sizeof(*s->fds)) ||
	    array_reserve(&s->rings, &s->ring_room, s->count + 1, sizeof(*s->rings)))
		return error_no_memory(e);
	fd = perf_event_open(&s->attr, -1, cpu);
	if (fd == -ENODEV)
		return 0; /* the CPU has just gone offline */
	if (fd < 0)
		return perf_event_error(e, -fd, what);
	ring.control = mmap(NULL, page + ring.data_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring.control == MAP_FAILED) {
		program_out_of(e, errno, "cannot map the buffer for the records of mappings");
		error_hint(e, "raise the limit: sysctl kernel.perf_event_mlock_kb=1024");
		close(fd);
		return -EIO;
	}
	s->fds[s->count] = fd;
	s->rings[s->count++] = ring;
	return 0;
}

int sideband_open_cpus(struct sideband *s, struct error *e)
{
	struct open_context context = { s, e };

	/* The ring of a dead event may contain records: the next sideband_read() closes it. */
	for (size_t i = 0; i < s->count; i++)
		if (s->rings[i].cpu >= 0 && perf_event_is_dead(s->fds[i], &s->rings[i].enabled_ns))
			s->rings[i].cpu = -1;
	return cpus_each_online(open_cpu, &context, e);
}

int sideband_open(bool forks, struct sideband **out, struct error *e)
{
	struct sideband *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_no_memory(e);
	/*
	 * Without build_id: the kernel says by a bit of a record whether it has a build ID, and
	 * does not clear that bit (seen up to Linux 6.18) before it writes the record for the
	 * events of others, such as perf's, which takes the device and inode there for a build ID
	 * then.
	 */
	s->attr = (struct perf_event_attr){
		.size = sizeof(s->attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = forks,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = WAKEUP_BYTES,
	};
	err = sideband_open_cpus(s, e);
	if (err)
		sideband_free(s);
	else
		*out = s;
	return err;
}

static void close_ring(const struct sideband *s, size_t number)
{
	munmap(s->rings[number].control, sysconf(_SC_PAGESIZE) + s->rings[number].data_size);
	close(s->fds[number]);
}

void sideband_free(struct sideband *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		close_ring(s, i);
	free(s->fds);
	free(s->rings);
	free(s->bytes);
	free(s->pending);
	free(s);
}

/* Copies from a ring, which continues at its start; its size is a power of two. */
static void ring_copy(const struct ring *ring, uint64_t position, void *to, size_t size)
{
	const char *data = (const char *)ring->control + sysconf(_SC_PAGESIZE);
	size_t at = position & (ring->data_size - 1);
	size_t first = MIN(size, ring->data_size - at);

	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, size - first);
}

/* Returns memory for another record; NULL: out of memory. */
static char *reserve_record(struct sideband *s, size_t size)
{
	if (array_reserve(&s->bytes, &s->byte_room, s->byte_count + size, 1) ||
	    array_reserve(&s->pending, &s->pending_room, s->pending_count + 1, sizeof(*s->pending)))
		return NULL;
	return s->bytes + s->byte_count;
}

/* Adds the record that was written to reserve_record()'s memory. */
static void append_record(struct sideband *s, size_t size, uint64_t time_ns)
{
	s->pending[s->pending_count++] = (struct pending){ time_ns, s->byte_count };
	s->byte_count += size;
}

static int drain_ring(struct sideband *s, struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->control->data_tail;
	bool full = head - tail > ring->data_size - RECORD_BYTES_MAX;
	char *copy = NULL;

	while (tail < head) {
		struct perf_event_header header;

		ring_copy(ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) + 2 * sizeof(uint64_t) ||
		    header.size > head - tail) {
			tail = head; /* cannot happen: do not loop */
			break;
		}
		copy = reserve_record(s, header.size);
		if (!copy)
			return -ENOMEM;
		ring_copy(ring, tail, copy, header.size);
		/* With sample_id_all, TID and TIME are at the end of each record. */
		memcpy(&ring->last_ns, copy + header.size - sizeof(ring->last_ns),
		       sizeof(ring->last_ns));
		append_record(s, header.size, ring->last_ns);
		tail += header.size;
	}
	__atomic_store_n(&ring->control->data_tail, tail, __ATOMIC_RELEASE);
	/* The kernel reports what it has dropped with the next record that it does not drop. */
	if (full && ring->last_ns < s->complete_ns)
		s->complete_ns = ring->last_ns;
	return 0;
}

ORDER(by_time, struct pending, LEAST(time_ns) ?: (a->offset < b->offset ? -1 : 1))

/* The bodies of the records, as perf_event_open(2) gives them. */
struct mmap2_body {
	uint32_t pid, tid;
	uint64_t start, length, offset;
	uint32_t major, minor; /* of the file's device */
	uint64_t inode, generation;
	uint32_t protection, flags;
	char path[];
};

struct comm_body {
	uint32_t pid, tid;
	char name[];
};

struct task_body {
	uint32_t pid, parent, tid, parent_tid;
	uint64_t time_ns;
};

/* Written as the kernel writes its records. */
int sideband_add(struct sideband *s, const struct sideband_record *record)
{
	struct perf_event_header header = {
		.type = record->type == SIDEBAND_FORK ? PERF_RECORD_FORK : PERF_RECORD_EXIT,
		.size = sizeof(header) + sizeof(struct task_body),
	};
	const struct task_body body = { record->pid, record->parent, record->tid,
					record->parent_tid, record->time_ns };
	char *copy = reserve_record(s, header.size);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, &header, sizeof(header));
	memcpy(copy + sizeof(header), &body, sizeof(body));
	append_record(s, header.size, record->time_ns);
	return 0;
}

/* Returns false for records that are not visited. */
static bool decode_record(struct sideband *s, const struct perf_event_header *header,
			  struct sideband_record *record)
{
	const struct mmap2_body *mapping = (const void *)(header + 1);
	const struct comm_body *comm = (const void *)(header + 1);
	const struct task_body *task = (const void *)(header + 1);
	uint64_t lost;

	switch (header->type) {
	case PERF_RECORD_MMAP2:
		record->type = SIDEBAND_MMAP;
		record->pid = mapping->pid;
		record->tid = mapping->tid;
		record->start = mapping->start;
		record->limit = mapping->start + mapping->length;
		record->offset = mapping->offset;
		record->name = mapping->path;
		/* Others may have asked for build IDs, for which the kernel sets the bit here, too.
		 */
		record->device = makedev(mapping->major, mapping->minor);
		record->inode = mapping->inode;
		return true;
	case PERF_RECORD_COMM:
		record->type =
			header->misc & PERF_RECORD_MISC_COMM_EXEC ? SIDEBAND_EXEC : SIDEBAND_COMM;
		record->pid = comm->pid;
		record->tid = comm->tid;
		record->name = comm->name;
		return true;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		record->type = header->type == PERF_RECORD_FORK ? SIDEBAND_FORK : SIDEBAND_EXIT;
		record->pid = task->pid;
		record->tid = task->tid;
		record->parent = task->parent;
		record->parent_tid = task->parent_tid;
		return true;
	case PERF_RECORD_LOST:
		memcpy(&lost, (const char *)(header + 1) + sizeof(uint64_t), sizeof(lost));
		s->lost += lost;
		return false;
	default:
		return false;
	}
}

/* Removes the first `visited` records. */
static int remove_visited(struct sideband *s, size_t visited)
{
	size_t bytes = 0, room = 0;
	char *kept = NULL;

	for (size_t i = visited; i < s->pending_count; i++) {
		const struct perf_event_header *header =
			(const void *)(s->bytes + s->pending[i].offset);

		if (array_reserve(&kept, &room, bytes + header->size, 1)) {
			free(kept);
			return -ENOMEM;
		}
		memcpy(kept + bytes, header, header->size);
		s->pending[i - visited] = (struct pending){ s->pending[i].time_ns, bytes };
		bytes += header->size;
	}
	free(s->bytes);
	s->bytes = kept;
	s->byte_count = bytes;
	s->byte_room = room;
	s->pending_count -= visited;
	array_trim(&s->pending, &s->pending_room, s->pending_count, sizeof(*s->pending));
	return 0;
}

/*
 * The rings are read one after the other, so while the last is read, the first may get records
 * again. Records after until_ns are therefore left to the next call.
 */
int sideband_read(struct sideband *s, uint64_t until_ns,
		  int (*visit)(const struct sideband_record *, void *context), void *context)
{
	size_t done, left = 0;
	int err = 0;

	s->complete_ns = until_ns;
	for (size_t i = 0; i < s->count && !err; i++)
		err = drain_ring(s, &s->rings[i]);
	/* Closes the rings of dead events, which have been read to their ends. */
	for (size_t i = 0; i < s->count && !err; i++) {
		if (s->rings[i].cpu < 0) {
			close_ring(s, i);
			continue;
		}
		s->fds[left] = s->fds[i];
		s->rings[left++] = s->rings[i];
	}
	s->count = err ? s->count : left;
	if (err || !s->pending_count)
		return err;
	qsort(s->pending, s->pending_count, sizeof(*s->pending), by_time);
	for (done = 0; done < s->pending_count && !err; done++) {
		struct sideband_record record = { .time_ns = s->pending[done].time_ns };

		if (record.time_ns > until_ns)
			break;
		if (decode_record(s, (const void *)(s->bytes + s->pending[done].offset), &record))
			err = visit(&record, context);
	}
	return remove_visited(s, done) ?: err;
}

uint64_t sideband_lost(const struct sideband *s)
{
	return s->lost;
}

uint64_t sideband_complete_ns(const struct sideband *s)
{
	return s->complete_ns;
}

const int *sideband_fds(const struct sideband *s, size_t *count)
{
	*count = s->count;
	return s->fds;
}
