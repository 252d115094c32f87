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
 * A thread runs on for a while after its exit record, and the samples of the next window are not
 * known yet: what has ended is kept for this long.
 */
#define AFTER_END_NS NS_PER_S

/* --- What to forget --- */

static int mark(struct process_table *table, const struct counts *counts)
{
	int err = 0;

	for (size_t i = 0; i < table->count; i++)
		table->processes[i].sampled = false;
	for (size_t i = 0; i < table->thread_count; i++)
		table->threads[i].sampled = false;
	for (size_t i = 0; i < counts->count && !err; i++) {
		const struct counted *sample = &counts->samples[i];
		pid_t pid = sample_id_tgid(sample->id), tid = sample_id_tid(sample->id);
		struct process *process = process_at(table, pid, sample->first_ns);
		struct thread *thread = thread_at(table, tid, sample->first_ns);
		struct thread *leader = thread_at(table, pid, sample->first_ns);

		if (thread)
			thread->sampled = true;
		if (leader)
			leader->sampled = true;
		if (!process || process->sampled)
			continue;
		process->sampled = true;
		err = process->ended ? 0 : origin_read(table, process);
	}
	return err;
}

static bool thread_exists(pid_t tid)
{
	return syscall(SYS_tkill, tid, 0) == 0 || errno != ESRCH;
}

static int note_end(struct process_table *table, struct process *process, uint64_t time_ns)
{
	process->ended = true;
	process->ended_ns = time_ns;
	return process_note_change(table, process);
}

/* Returns 1: keep it, 0, or -ENOMEM. */
static int judge_process(struct process_table *table, struct process *process, uint64_t end_ns)
{
	bool is_last = process->next_with_pid == INDEX_NONE;
	int err = 0;

	/* Records of ends may be lost. */
	if (!process->ended && !is_last)
		err = note_end(table, process, table->processes[process->next_with_pid].begin_ns);
	else if (!process->ended && !thread_exists(process->pid))
		err = note_end(table, process, end_ns);
	if (err)
		return err;
	if (process->sampled || !process->ended || process->ended_ns + AFTER_END_NS >= end_ns)
		return true;
	if (!is_last || !process_has_threads(process->pid))
		return false;
	process->ended_ns = end_ns; /* not before the last of its threads */
	return true;
}

/* How many address spaces of a process ended before the window. */
static uint32_t count_past_spaces(const struct process *process, uint64_t begin_ns)
{
	uint32_t count = 0;

	while (count + 1 < process->count &&
	       process->spaces[count + 1].since_ns + AFTER_END_NS < begin_ns)
		count++;
	return count;
}

int forget_choose(struct process_table *table, const struct counts *counts, uint64_t begin_ns,
		  uint64_t end_ns, struct forgetting *f)
{
	uint32_t kept = 0;
	int err = mark(table, counts);

	f->process_count = table->count;
	f->processes = calloc(table->count + 1, sizeof(*f->processes));
	if (err || !f->processes)
		return -ENOMEM;
	for (size_t i = 0; i < table->count; i++) {
		int keep = judge_process(table, &table->processes[i], end_ns);

		if (keep < 0)
			return keep;
		/* The first target of a recording of some processes is asked for later. */
		if (!keep && !table->everyone && i == 0)
			keep = true;
		f->processes[i].number = keep ? kept++ : INDEX_NONE;
		f->processes[i].spaces = count_past_spaces(&table->processes[i], begin_ns);
	}
	return 0;
}

/* --- Processes --- */

static bool is_kept(const struct forgetting *f, uint32_t process, uint32_t space)
{
	return f->processes[process].number != INDEX_NONE && space >= f->processes[process].spaces;
}

/*
 * Puts the mappings that a space has from its parent before its own, unless they are over the
 * budget: a parent may have any number of children.
 */
static int take_over(struct process_table *table, const struct process *process,
		     struct address_space *space)
{
	const struct address_space *parent =
		&table->processes[space->parent].spaces[space->parent_space];
	size_t count = space->parent_count;

	if (count && (space->count + count) * sizeof(*space->mappings) > process_budget(table)) {
		process_note_crowded(table, process, space);
		count = 0;
	}
	if (array_reserve(&space->mappings, &space->room, space->count + count,
			  sizeof(*space->mappings)))
		return -ENOMEM;
	if (count) {
		memmove(space->mappings + count, space->mappings,
			space->count * sizeof(*space->mappings));
		memcpy(space->mappings, parent->mappings, count * sizeof(*space->mappings));
	}
	space->count += count;
	space->taken_over += count;
	space->bytes += count ? parent->bytes : 0;
	space->crowded |= parent->crowded;
	table->mapping_count += count;
	space->parent_count = parent->parent_count;
	space->parent_space = parent->parent_space;
	space->parent = parent->parent;
	return 0;
}

/* Makes the kept spaces of a process independent of what is forgotten. */
static int end_inheritance(struct process_table *table, const struct forgetting *f, uint32_t number)
{
	const struct process *process = &table->processes[number];

	for (size_t i = 0; i < process->count; i++) {
		struct address_space *space = &process->spaces[i];

		space->taken_over = 0;
		while (is_kept(f, number, i) && space->parent != INDEX_NONE &&
		       !is_kept(f, space->parent, space->parent_space))
			if (take_over(table, process, space))
				return -ENOMEM;
	}
	return 0;
}

static void free_spaces(struct process_table *table, struct process *process, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		table->mapping_count -= process->spaces[i].count;
		free(process->spaces[i].mappings);
	}
	process->count -= count;
	memmove(process->spaces, process->spaces + count,
		process->count * sizeof(*process->spaces));
}

/* A parent's own mappings may be more now. */
static void count_inherited(const struct process_table *table, uint32_t number)
{
	const struct process *process = &table->processes[number];

	for (size_t i = 0; i < process->count; i++) {
		struct address_space *space = &process->spaces[i];

		if (space->parent != INDEX_NONE)
			space->parent_count += table->processes[space->parent]
						       .spaces[space->parent_space]
						       .taken_over;
	}
}

static void renumber_parents(struct process *process, const struct forgetting *f)
{
	for (size_t i = 0; i < process->count; i++) {
		struct address_space *space = &process->spaces[i];

		if (space->parent == INDEX_NONE)
			continue;
		space->parent_space -= f->processes[space->parent].spaces;
		space->parent = f->processes[space->parent].number;
	}
}

static void move_processes(struct process_table *table, const struct forgetting *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++) {
		struct process *process = &table->processes[i];

		if (f->processes[i].number == INDEX_NONE) {
			free_spaces(table, process, process->count);
			free(process->spaces);
			continue;
		}
		free_spaces(table, process, f->processes[i].spaces);
		renumber_parents(process, f);
		table->processes[kept++] = *process;
	}
	table->count = kept;
}

static void move_changed(struct process_table *table, const struct forgetting *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->changed_count; i++)
		if (f->processes[table->changed[i]].number != INDEX_NONE)
			table->changed[kept++] = f->processes[table->changed[i]].number;
	table->changed_count = kept;
}

/* --- Threads --- */

static bool keep_thread(const struct process_table *table, struct thread *thread, uint64_t end_ns)
{
	if (!thread->ended_ns && thread->younger != INDEX_NONE)
		thread->ended_ns = table->threads[thread->younger].since_ns ?: end_ns;
	else if (!thread->ended_ns && !thread_exists(thread->tid))
		thread->ended_ns = end_ns;
	return thread->sampled || !thread->ended_ns || thread->ended_ns + AFTER_END_NS >= end_ns;
}

static void move_threads(struct process_table *table, uint64_t end_ns)
{
	size_t kept = 0;

	/* First of all, as it looks at younger ones. */
	for (size_t i = 0; i < table->thread_count; i++)
		table->threads[i].sampled = keep_thread(table, &table->threads[i], end_ns);
	for (size_t i = 0; i < table->thread_count; i++)
		if (table->threads[i].sampled)
			table->threads[kept++] = table->threads[i];
	table->thread_count = kept;
}

/* --- Images, root directories and control groups --- */

#define USED 0 /* else INDEX_NONE */

static void use(uint32_t *numbers, uint32_t number)
{
	if (number != INDEX_NONE)
		numbers[number] = USED;
}

static void mark_images(const struct process_table *table, uint32_t *images)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct process *process = &table->processes[i];

		use(images, process->jit.image);
		use(images, process->jit.dump);
		for (size_t k = 0; k < process->count; k++)
			for (size_t m = 0; m < process->spaces[k].count; m++)
				use(images, process->spaces[k].mappings[m].image);
	}
}

static void renumber(uint32_t *number, const uint32_t *numbers)
{
	if (*number != INDEX_NONE)
		*number = numbers[*number];
}

static void renumber_images(struct process_table *table, const uint32_t *images)
{
	for (size_t i = 0; i < table->count; i++) {
		struct process *process = &table->processes[i];

		renumber(&process->jit.image, images);
		renumber(&process->jit.dump, images);
		for (size_t k = 0; k < process->count; k++)
			for (size_t m = 0; m < process->spaces[k].count; m++)
				renumber(&process->spaces[k].mappings[m].image, images);
	}
}

static void free_image(struct capture_image *image)
{
	free(image->path);
	free(image->why);
	if (image->fd >= 0)
		close(image->fd);
}

static int move_images(struct process_table *table, struct forgetting *f)
{
	size_t kept = 0;

	f->image_count = table->image_count;
	f->images = malloc((table->image_count + 1) * sizeof(*f->images));
	if (!f->images)
		return -ENOMEM;
	memset(f->images, 0xff, table->image_count * sizeof(*f->images)); /* INDEX_NONE */
	mark_images(table, f->images);
	table->path_bytes = 0;
	for (size_t i = 0; i < table->image_count; i++) {
		if (f->images[i] == INDEX_NONE) {
			free_image(&table->images[i]);
			continue;
		}
		f->images[i] = kept;
		table->path_bytes += strlen(table->images[i].path);
		table->images[kept++] = table->images[i];
	}
	table->image_count = kept;
	renumber_images(table, f->images);
	return 0;
}

static bool uses_root(const struct process_table *table, int fd)
{
	for (size_t i = 0; i < table->image_count; i++)
		if (table->images[i].root == fd)
			return true;
	for (size_t i = 0; i < table->count; i++)
		if (table->processes[i].jit.has_root && table->processes[i].jit.root == fd)
			return true;
	return false;
}

/* An open root directory keeps its file system mounted. */
static void move_roots(struct process_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->root_count; i++)
		if (uses_root(table, table->roots[i].fd))
			table->roots[kept++] = table->roots[i];
		else
			close(table->roots[i].fd);
	table->root_count = kept;
}

static int move_groups(struct process_table *table)
{
	uint32_t *numbers = malloc((table->group_count + 1) * sizeof(*numbers));
	size_t kept = 0;

	if (!numbers)
		return -ENOMEM;
	memset(numbers, 0xff, table->group_count * sizeof(*numbers)); /* INDEX_NONE */
	for (size_t i = 0; i < table->count; i++)
		use(numbers, table->processes[i].group);
	for (size_t i = 0; i < table->group_count; i++) {
		if (numbers[i] == INDEX_NONE) {
			free(table->groups[i]);
			continue;
		}
		numbers[i] = kept;
		table->groups[kept++] = table->groups[i];
	}
	table->group_count = kept;
	for (size_t i = 0; i < table->count; i++)
		renumber(&table->processes[i].group, numbers);
	free(numbers);
	return 0;
}

/* --- --- */

int forget_processes(struct process_table *table, struct forgetting *f, uint64_t end_ns)
{
	int err = 0;

	for (size_t i = 0; i < table->count && !err; i++)
		err = end_inheritance(table, f, i);
	if (err)
		return err;
	for (size_t i = 0; i < table->count; i++)
		count_inherited(table, i);
	move_changed(table, f);
	move_processes(table, f);
	move_threads(table, end_ns);
	err = move_images(table, f);
	if (err)
		return err;
	move_roots(table);
	err = move_groups(table) ?: process_index(table);
	return err ?: image_index(table) ?: origin_index(table);
}

void forget_free(struct forgetting *f)
{
	free(f->processes);
	free(f->images);
	*f = (struct forgetting){ 0 };
}
