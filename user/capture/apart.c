// SPDX-License-Identifier: GPL-2.0-only
#include "capture/apart.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/perf_event.h"
#include "util/array.h"

struct apart_event {
	pid_t tid;
	int fd; /* -1: the thread has ended, or it failed */
};

static bool tid_equal(const void *array, uint32_t number, const void *key)
{
	return ((const struct apart_event *)array)[number].tid == *(const pid_t *)key;
}

static struct apart_event *find(const struct apart *apart, pid_t tid)
{
	uint32_t number =
		index_find(&apart->by_tid, hash_u64(tid, 0), tid_equal, apart->events, &tid);

	return number == INDEX_NONE ? NULL : &apart->events[number];
}

static int open_dummy(pid_t tid)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
	};

	return perf_event_open(&attr, tid, -1);
}

static void close_event(struct apart *apart, struct apart_event *event)
{
	if (event->fd < 0)
		return;
	close(event->fd);
	event->fd = -1;
	apart->open--;
}

/* Notes a thread's event. Returns 0 or -ENOMEM. */
static int add(struct apart *apart, pid_t tid, int fd)
{
	if (array_reserve(&apart->events, &apart->room, apart->count + 1, sizeof(*apart->events)) ||
	    index_add(&apart->by_tid, hash_u64(tid, 0), apart->count))
		return -ENOMEM;
	apart->events[apart->count++] = (struct apart_event){ tid, fd };
	apart->open += fd >= 0;
	return 0;
}

void apart_add(struct apart *apart, pid_t tid)
{
	struct apart_event *event = find(apart, tid);
	int fd;

	if (event && event->fd >= 0)
		return;
	fd = open_dummy(tid);
	if (event) {
		event->fd = fd;
		apart->open += fd >= 0;
	} else if (add(apart, tid, fd) && fd >= 0) {
		close(fd);
	}
}

/* Takes over the event that a thread has in `from`, or opens one. */
static void take_over(struct apart *apart, struct apart *from, pid_t tid)
{
	struct apart_event *event = find(from, tid);

	if (event && event->fd >= 0 && add(apart, tid, event->fd) == 0) {
		event->fd = -1;
		from->open--;
	} else {
		apart_add(apart, tid);
	}
}

/* Made anew, for the threads that a process had may be many more than those that it has. */
void apart_update(struct apart *apart, const pid_t *tids, size_t count)
{
	struct apart now = { 0 };

	for (size_t i = 0; i < count; i++)
		take_over(&now, apart, tids[i]);
	apart_free(apart);
	*apart = now;
}

void apart_remove(struct apart *apart, pid_t tid)
{
	struct apart_event *event = find(apart, tid);

	if (event)
		close_event(apart, event);
}

void apart_free(struct apart *apart)
{
	for (size_t i = 0; i < apart->count; i++)
		if (apart->events[i].fd >= 0)
			close(apart->events[i].fd);
	free(apart->events);
	index_free(&apart->by_tid);
}
