// SPDX-License-Identifier: GPL-2.0-only
#include "capture/forget.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/image.h"
#include "capture/origin.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * Ended processes are kept this long: a thread still runs briefly after its exit record, and the
 * next window may hold samples of it.
 * Bound: pace.
 */
#define AFTER_END_NS NS_PER_S

/*
 * Marks the process and the threads of a tick, or wait. *until_ns: the time up to which they are
 * the same.
 */
static int mark_time(struct process_table *table, uint64_t id, uint64_t time_ns, uint64_t *until_ns)
{
	pid_t pid = sample_id_tgid(id), tids[] = { pid, sample_id_tid(id) };
	struct process *process = process_at(table, pid, time_ns);

	*until_ns = process ? process_until(table, process) : UINT64_MAX;
	for (size_t i = 0; i < sizeof(tids) / sizeof(*tids); i++) {
		struct thread *thread = thread_at(table, tids[i], time_ns);

		if (!thread)
			continue;
		thread->sampled = true;
		if (thread->younger != INDEX_NONE &&
		    table->threads[thread->younger].since_ns < *until_ns)
			*until_ns = table->threads[thread->younger].since_ns;
	}
	if (!process || process->sampled)
		return 0;
	process->sampled = true;
	return process->ended ? 0 : origin_read(table, process);
}

static bool thread_exists(pid_t tid)
{
	return syscall(SYS_tkill, tid, 0) == 0 || errno != ESRCH;
}

static int mark_samples(struct process_table *table, const struct counts *counts)
{
	int err = 0;

	for (size_t i = 0; i < counts->count && !err; i++) {
		const struct counted *sample = &counts->samples[i];
		size_t count, wait_count;
		const uint64_t *times = counts_times(counts, i, &count);
		const struct timed_wait *waits = counts_waits(counts, i, &wait_count);
		uint64_t until_ns;

		err = mark_time(table, sample->id, sample->first_ns, &until_ns);
		for (size_t k = 0; k < count && !err; k++)
			if (times[k] >= until_ns)
				err = mark_time(table, sample->id, times[k], &until_ns);
		for (size_t k = 0; k < wait_count && !err; k++)
			if (waits[k].since_ns >= until_ns)
				err = mark_time(table, sample->id, waits[k].since_ns, &until_ns);
	}
	return err;
}

int forget_choose(struct process_table *table, const struct counts *const counts[], size_t kinds,
		  uint64_t end_ns)
{
	int err = 0;

	for (size_t i = 0; i < table->count; i++)
		table->processes[i].sampled = false;
	for (size_t i = 0; i < table->thread_count; i++)
		table->threads[i].sampled = false;
	for (size_t i = 0; i < kinds && !err; i++)
		err = mark_samples(table, counts[i]);
	for (size_t i = 0; i < table->count && !err; i++) {
		struct process *process = &table->processes[i];
		bool is_last = process->next_with_pid == INDEX_NONE;

		/* Records of ends may be lost. */
		if (!process->ended && (!is_last || !thread_exists(process->pid))) {
			process->ended = true;
			process->ended_ns = end_ns;
			if (!is_last)
				process->ended_ns =
					table->processes[process->next_with_pid].begin_ns;
			err = process_note_change(table, process);
		}
		if (!process->count || process->sampled || !process->ended ||
		    process->ended_ns + AFTER_END_NS >= end_ns)
			continue;
		if (is_last && process_has_threads(process->pid))
			process->ended_ns = end_ns; /* not before the last of its threads */
		else if (table->everyone || i > 0)  /* the first target is asked for later */
			process->forgotten = true;
	}
	return err;
}

/*
 * Puts what an address space has of its parent's mappings before its own. No other refers to the
 * parent: this one takes its place.
 */
static int absorb_parent(struct process_table *table, struct address_space *space)
{
	struct address_space *parent = space->parent;
	size_t count = space_inherited(space);

	if (array_reserve(&parent->mappings, &parent->room, count + space->count,
			  sizeof(*parent->mappings)))
		return -ENOMEM;
	table->mapping_count -= parent->count - count;
	if (space->count)
		memcpy(parent->mappings + count, space->mappings,
		       space->count * sizeof(*space->mappings));
	free(space->mappings);
	space->mappings = parent->mappings;
	space->room = parent->room;
	space->count += count;
	space->absorbed += count;
	space->bytes += count ? parent->bytes : 0;
	space->crowded |= parent->crowded;
	space->inherited = parent->inherited;
	space->parent = parent->parent;
	free(parent);
	return 0;
}

/*
 * Open files and root directories keep a container's file systems in use, also of one that ended
 * long ago, where its files are those of others that run. Once no process has a root directory any
 * more, what was opened through it is opened again through one of the processes that map it.
 * by: see forget_images().
 */
static void leave_roots(struct process_table *table, const uint32_t *by)
{
	for (size_t r = 0; r < table->root_count; r++) {
		struct root *root = &table->roots[r];
		bool held = image_has_root(root->pid, root);

		for (int leaves = 0; leaves < 2 && !held; leaves++)
			for (size_t i = 0; i < table->image_count && !held; i++) {
				struct capture_image *image = &table->images[i];
				const struct process *process = &table->processes[by[i]];

				if (image->root != root->fd || by[i] == INDEX_NONE ||
				    process->ended)
					continue;
				if (leaves) {
					image->is_left = true;
					table->open_left = table->count;
				} else if (process->pid != root->pid) {
					root->pid = process->pid;
					held = image_has_root(root->pid, root);
				}
			}
	}
}

/*
 * Forgets the programs that ended before the window, and the images that no mapping of the others
 * refers to.
 */
static int forget_images(struct process_table *table, uint64_t begin_ns, uint64_t end_ns)
{
	/* Of each image: a process that maps it, one that runs if there is any; or INDEX_NONE. */
	uint32_t *by = malloc((table->image_count + 1) * sizeof(*by));
	int err = 0;

	if (!by)
		return -ENOMEM;
	memset(by, 0xff, table->image_count * sizeof(*by));
	for (size_t i = 0; i < table->count; i++) {
		struct process *process = &table->processes[i];
		size_t past = 0;

		while (past + 1 < process->count &&
		       process->spaces[past + 1]->since_ns + AFTER_END_NS < begin_ns)
			past++;
		process_remove_spaces(table, process, past);
		if (process->jit.image != INDEX_NONE)
			by[process->jit.image] = i;
		if (process->jit.dump != INDEX_NONE)
			by[process->jit.dump] = i;
	}
	for (size_t n = 0; n < 2 * table->count; n++) {
		struct process *process = &table->processes[n % table->count];

		if (process->ended != (n >= table->count))
			continue;
		for (size_t k = 0; k < process->count; k++) {
			struct address_space *space = process->spaces[k];

			for (; space && space->checked_ns != end_ns && !err;
			     space = space->parent) {
				space->checked_ns = end_ns;
				/*
				 * Daemons fork and end, again and again: the chain must not grow.
				 */
				while (space->parent && space->parent->references == 1 && !err)
					err = absorb_parent(table, space);
				for (size_t m = 0; m < space->count; m++)
					if (!process->ended ||
					    by[space->mappings[m].image] == INDEX_NONE)
						by[space->mappings[m].image] = n % table->count;
			}
		}
	}
	for (size_t i = 0; i < table->image_count && !err; i++)
		if (by[i] == INDEX_NONE && table->images[i].path)
			image_remove(table, i);
	if (!err)
		leave_roots(table, by);
	while (table->image_count && !table->images[table->image_count - 1].path)
		table->image_count--;
	table->next_image = MIN(table->next_image, table->image_count);
	array_trim(&table->images, &table->image_room, table->image_count, sizeof(*table->images));
	free(by);
	return err;
}

/* An open root directory keeps its file system mounted. */
static void forget_roots(struct process_table *table)
{
	size_t kept = 0;

	for (size_t r = 0; r < table->root_count; r++) {
		int fd = table->roots[r].fd;
		bool used = false;

		for (size_t i = 0; i < table->image_count && !used; i++)
			used = table->images[i].root == fd;
		for (size_t i = 0; i < table->count && !used; i++)
			used = table->processes[i].jit.has_root &&
			       table->processes[i].jit.root == fd;
		if (used)
			table->roots[kept++] = table->roots[r];
		else
			close(fd);
	}
	table->root_count = kept;
}

/*
 * Forgets gaps from before the window, but for those since which /proc has not shown some process.
 * In a recording without an end there would be more and more, and what is between two would be in
 * doubt, too.
 */
static void forget_gaps(struct process_table *table, uint64_t begin_ns)
{
	uint64_t known_ns = begin_ns > AFTER_END_NS ? begin_ns - AFTER_END_NS : 0;
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct process *process = &table->processes[i];
		uint64_t since_ns = process->count ? process->spaces[0]->since_ns : UINT64_MAX;

		since_ns = MAX(since_ns, process->shown_ns);
		known_ns = MIN(known_ns, since_ns);
	}
	for (size_t i = 0; i < table->gap_count; i++)
		if (table->gaps[i].to_ns > known_ns)
			table->gaps[kept++] = table->gaps[i];
	table->gap_count = kept;
}

int forget_processes(struct process_table *table, uint64_t begin_ns, uint64_t end_ns)
{
	bool *used;
	size_t kept = 0;
	int err;

	for (size_t i = 0; i < table->changed_count; i++)
		if (!table->processes[table->changed[i]].forgotten)
			table->changed[kept++] = table->changed[i];
	table->changed_count = kept;
	array_trim(&table->changed, &table->changed_room, kept, sizeof(*table->changed));
	table->added = 0;
	for (size_t i = 0; i < table->count; i++)
		if (table->processes[i].forgotten)
			process_remove(table, &table->processes[i]);
	while (table->count && !table->processes[table->count - 1].count)
		table->count--;
	table->next_process = MIN(table->next_process, table->count);
	array_trim(&table->processes, &table->room, table->count, sizeof(*table->processes));
	err = forget_images(table, begin_ns, end_ns);
	forget_roots(table);
	forget_gaps(table, begin_ns);
	used = calloc(table->group_count + 1, sizeof(*used));
	if (err || !used) {
		free(used);
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->count; i++)
		if (table->processes[i].group != INDEX_NONE)
			used[table->processes[i].group] = true;
	for (size_t i = 0; i < table->group_count; i++)
		if (!used[i] && table->groups[i])
			origin_remove_group(table, i);
	free(used);
	for (size_t i = 0; i < table->thread_count; i++) {
		struct thread *thread = &table->threads[i];

		if (!thread->ended_ns && thread->younger != INDEX_NONE)
			thread->ended_ns = table->threads[thread->younger].since_ns ?: end_ns;
		else if (!thread->ended_ns && !thread_exists(thread->tid))
			thread->ended_ns = end_ns;
		thread->sampled |= !thread->ended_ns || thread->ended_ns + AFTER_END_NS >= end_ns;
	}
	return process_keep_threads(table);
}
