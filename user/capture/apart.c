// SPDX-License-Identifier: GPL-2.0-only
#include "capture/apart.h"

#include <stdlib.h>
#include <unistd.h>

#include "capture/perf_event.h"
#include "util/array.h"

struct apart_event {
	pid_t tid;
	int fd;	     /* -1: the thread has ended, or it failed */
	bool listed; /* in apart_update() */
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

void apart_add(struct apart *apart, pid_t tid)
{
	struct apart_event *event = find(apart, tid);

	if (event && event->fd >= 0)
		return;
	if (!event) {
		if (array_reserve(&apart->events, &apart->room, apart->count + 1, sizeof(*event)) ||
		    index_add(&apart->by_tid, hash_u64(tid, 0), apart->count))
			return;
		event = &apart->events[apart->count++];
		event->tid = tid;
	}
	event->fd = open_dummy(tid);
	apart->open += event->fd >= 0;
}

void apart_update(struct apart *apart, const pid_t *tids, size_t count)
{
	for (size_t i = 0; i < apart->count; i++)
		apart->events[i].listed = false;
	for (size_t i = 0; i < count; i++) {
		struct apart_event *event;

		apart_add(apart, tids[i]);
		event = find(apart, tids[i]);
		if (event)
			event->listed = true;
	}
	for (size_t i = 0; i < apart->count; i++)
		if (!apart->events[i].listed)
			close_event(apart, &apart->events[i]);
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
