// SPDX-License-Identifier: GPL-2.0-only
#include "format/perf/perf_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

/*
 * Each change of an address space moves the mappings behind it. Files of real systems stay far
 * below these: they bound the time that a malicious one takes to some seconds.
 * Bound: files: mappings of a process, and moves of mappings in all; then: the file is refused.
 */
#define MAPS_MAX	   ((size_t)262144) /* in a process */
#define MOVED_MAX	   (UINT64_C(1) << 28)
#define MOVED_FOR_EACH_MAP 1024 /* so many more for each record of a mapping */

static bool process_equal(const void *array, uint32_t id, const void *key)
{
	const struct perf_process *process = (const struct perf_process *)array + id;

	return process->pid == *(const uint32_t *)key && !process->is_old;
}

static bool thread_equal(const void *array, uint32_t id, const void *key)
{
	const struct perf_thread *thread = (const struct perf_thread *)array + id;

	return thread->tid == *(const uint32_t *)key && !thread->is_old;
}

static uint32_t known_process(const struct perf_tasks *t, uint32_t pid)
{
	return index_find(&t->process_index, hash_u64(pid, 0), process_equal, t->processes, &pid);
}

static uint32_t known_thread(const struct perf_tasks *t, uint32_t tid)
{
	return index_find(&t->thread_index, hash_u64(tid, 0), thread_equal, t->threads, &tid);
}

static int new_process(struct perf_tasks *t, uint32_t pid, uint32_t *id)
{
	if (array_reserve(&t->processes, &t->process_room, t->process_count + 1,
			  sizeof(*t->processes)) ||
	    index_add(&t->process_index, hash_u64(pid, 0), t->process_count))
		return -ENOMEM;
	*id = t->process_count++;
	t->processes[*id] = (struct perf_process){ .pid = pid, .comm = "" };
	return 0;
}

static int find_process(struct perf_tasks *t, uint32_t pid, uint32_t *id)
{
	*id = known_process(t, pid);
	return *id == INDEX_NONE ? new_process(t, pid, id) : 0;
}

static int new_thread(struct perf_tasks *t, uint32_t tid, uint32_t process, const char *comm,
		      uint32_t *id)
{
	uint32_t known = known_thread(t, tid);

	if (known != INDEX_NONE) {
		t->threads[known].is_old = true;
		index_remove(&t->thread_index, hash_u64(tid, 0), known);
	}
	if (array_reserve(&t->threads, &t->thread_room, t->thread_count + 1, sizeof(*t->threads)) ||
	    index_add(&t->thread_index, hash_u64(tid, 0), t->thread_count))
		return -ENOMEM;
	*id = t->thread_count++;
	t->threads[*id] = (struct perf_thread){ .tid = tid, .process = process, .comm = comm };
	return 0;
}

int perf_find_thread(struct perf_tasks *t, uint32_t pid, uint32_t tid, uint32_t *thread)
{
	uint32_t process;
	int err;

	*thread = t->last;
	if (t->last >= t->thread_count || t->threads[t->last].tid != tid ||
	    t->threads[t->last].is_old)
		*thread = known_thread(t, tid);
	if (*thread != INDEX_NONE) {
		const struct perf_process *known = &t->processes[t->threads[*thread].process];

		t->last = *thread;
		if (known->pid == pid && !known->is_old)
			return 0;
	}
	err = find_process(t, pid, &process);
	return err ?: new_thread(t, tid, process, t->processes[process].comm, thread);
}

/* --- Address spaces --- */

static void drop_space(struct perf_process *process)
{
	struct perf_space *space = process->space;

	process->space = NULL;
	if (!space || --space->users)
		return;
	free(space->maps);
	free(space);
}

/* Sets *space to the process's own, which no other one shares. */
static int own_space(struct perf_tasks *t, struct perf_process *process, struct perf_space **space)
{
	struct perf_space *shared = process->space, *own;

	if (shared && shared->users == 1) {
		*space = shared;
		return 0;
	}
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->users = 1;
	if (shared && shared->count) {
		t->moved += shared->count;
		if (array_reserve(&own->maps, &own->room, shared->count, sizeof(*own->maps))) {
			free(own);
			return -ENOMEM;
		}
		memcpy(own->maps, shared->maps, shared->count * sizeof(*own->maps));
		own->count = shared->count;
	}
	drop_space(process);
	process->space = *space = own;
	return 0;
}

/* The number of the first mapping that ends behind the address. */
static size_t first_behind(const struct perf_space *space, uint64_t address)
{
	size_t low = 0, high = space->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (space->maps[middle].limit > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct perf_map *perf_find_map(const struct perf_space *space, uint64_t address)
{
	size_t i = space ? first_behind(space, address) : 0;

	return space && i < space->count && space->maps[i].start <= address ? &space->maps[i]
									    : NULL;
}

/* What lies where the new mapping comes is gone; of the first and last one a part may be left. */
static int insert_map(struct perf_tasks *t, struct perf_space *space, const struct perf_map *map)
{
	size_t first = first_behind(space, map->start), end = first, count = 0;
	struct perf_map parts[3];

	while (end < space->count && space->maps[end].start < map->limit)
		end++;
	if (first < end && space->maps[first].start < map->start) {
		parts[count] = space->maps[first];
		parts[count++].limit = map->start;
	}
	parts[count++] = *map;
	if (first < end && space->maps[end - 1].limit > map->limit) {
		parts[count] = space->maps[end - 1];
		parts[count++].start = map->limit;
	}
	t->moved += space->count - first;
	if (t->moved > MOVED_MAX + t->map_records * MOVED_FOR_EACH_MAP ||
	    space->count + count - (end - first) > MAPS_MAX)
		return -E2BIG;
	if (array_reserve(&space->maps, &space->room, space->count + count, sizeof(*space->maps)))
		return -ENOMEM;
	memmove(space->maps + first + count, space->maps + end,
		(space->count - end) * sizeof(*space->maps));
	memcpy(space->maps + first, parts, count * sizeof(*parts));
	space->count = space->count - (end - first) + count;
	space->stamp = ++t->stamp;
	return 0;
}

int perf_map(struct perf_tasks *t, uint32_t pid, const struct perf_map *map)
{
	struct perf_space *space = &t->kernel;
	uint32_t process;
	int err = 0;

	t->map_records++;
	if (pid != UINT32_MAX) {
		err = find_process(t, pid, &process);
		err = err ?: own_space(t, &t->processes[process], &space);
	}
	return err ?: insert_map(t, space, map);
}

/* --- What tasks do --- */

int perf_fork(struct perf_tasks *t, uint32_t pid, uint32_t tid, uint32_t parent_pid,
	      uint32_t parent_tid, bool was_running)
{
	uint32_t process, parent, thread, known;
	const char *comm = "";
	int err;

	if (pid == parent_pid) {
		err = find_process(t, pid, &process);
		known = known_thread(t, parent_tid);
		comm = known == INDEX_NONE ? t->processes[process].comm : t->threads[known].comm;
		return err ?: new_thread(t, tid, process, comm, &thread);
	}
	known = known_process(t, pid);
	if (known != INDEX_NONE && was_running)
		return 0;
	if (known != INDEX_NONE) {
		t->processes[known].is_old = true;
		index_remove(&t->process_index, hash_u64(pid, 0), known);
		drop_space(&t->processes[known]);
	}
	err = new_process(t, pid, &process);
	if (err)
		return err;
	if (known != INDEX_NONE)
		t->processes[process].generation = t->processes[known].generation + 1;
	parent = known_process(t, parent_pid);
	if (parent != INDEX_NONE && parent_pid) {
		t->processes[process].space = t->processes[parent].space;
		if (t->processes[process].space)
			t->processes[process].space->users++;
		comm = t->processes[parent].comm;
	}
	known = known_thread(t, parent_tid);
	if (known != INDEX_NONE && parent_pid)
		comm = t->threads[known].comm;
	t->processes[process].comm = comm;
	return new_thread(t, tid, process, comm, &thread);
}

int perf_comm(struct perf_tasks *t, uint32_t pid, uint32_t tid, const char *comm, bool is_exec)
{
	uint32_t thread;
	int err = perf_find_thread(t, pid, tid, &thread);
	struct perf_thread *named;

	if (err)
		return err;
	named = &t->threads[thread];
	named->comm = comm;
	if (pid == tid)
		t->processes[named->process].comm = comm;
	if (is_exec)
		drop_space(&t->processes[named->process]);
	return 0;
}

void perf_tasks_free(struct perf_tasks *t)
{
	for (size_t i = 0; i < t->process_count; i++)
		drop_space(&t->processes[i]);
	free(t->processes);
	index_free(&t->process_index);
	free(t->threads);
	index_free(&t->thread_index);
	free(t->kernel.maps);
}
