// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "bpf/sample.h"
#include "capture/unwind/unwind_state.h"
#include "util/array.h"

/* What is known of an image in the tables. */
enum use {
	UNUSED,
	USED,
	REMOVED
};

struct room {
	const struct unwind *u;
	uint64_t until_ns;
	bool *alive;	/* by the number of the process */
	enum use *uses; /* by the number in the tables */
};

/*
 * Marks the images that an address space maps as used, unless `uses` is NULL. Returns whether they
 * are all read, as far as they can be.
 */
static bool mark(const struct unwind *u, const struct address_space *space, enum use *uses)
{
	size_t count = space->count;
	bool all = true;

	for (size_t depth = 0;; depth++) {
		for (size_t i = 0; i < count; i++) {
			uint32_t image = space->mappings[i].image;

			if (image >= u->image_count)
				all = false;
			else if (uses)
				uses[u->images[image].number] = USED;
		}
		if (space->parent == INDEX_NONE || depth == UNWIND_ANCESTORS_MAX)
			return all;
		count = space->parent_count;
		space = &u->processes->processes[space->parent].spaces[space->parent_space];
	}
}

/* Marks what the living processes map, and withdraws the others. */
static int mark_processes(struct unwind *u, struct room *room)
{
	int err = 0;

	for (size_t i = 0; i < u->processes->count && !err; i++) {
		struct process *process = &u->processes->processes[i];
		bool published = i < u->state_count && u->states[i].block.size;

		/* Most have ended long ago: /proc is asked about the others only. */
		if ((process->ended && !published) || process_is_gone(process)) {
			err = published ? unwind_withdraw(u, i) : 0;
			continue;
		}
		room->alive[i] = true;
		mark(u, process_space(process), room->uses);
	}
	return err;
}

/*
 * A copy of a living process can wait, as that keeps its images. Others are walked, or keep theirs
 * until then.
 */
static bool is_kept(const struct unwind_copy *copy, void *context)
{
	const struct room *room = context;
	const struct unwind *u = room->u;
	struct process *process =
		process_at(u->processes, sample_id_tgid(copy->process), copy->time_ns);
	const struct address_space *space;

	if (!process)
		return true; /* nothing is known of it before until_ns */
	space = process_space_at(process, copy->time_ns);
	if (room->alive[process - u->processes->processes] && space == process_space(process))
		return true;
	if (copy->time_ns < room->until_ns && mark(u, space, NULL))
		return false;
	mark(u, space, room->uses);
	return true;
}

/* Returns 0, -ENOENT: there was none to remove, or -ENOMEM. */
static int remove_unused(struct unwind *u, bool users_only, enum use *uses)
{
	bool removed = false;
	int err = 0;

	for (size_t i = 0; i < u->image_count && !err; i++) {
		struct unwind_image_state *state = &u->images[i];
		uint32_t number = state->number;

		if (number == UNWIND_NO_IMAGE || uses[number] == USED ||
		    (users_only && state->root_owned))
			continue;
		if (uses[number] != REMOVED) /* images of one build have the same number */
			err = unwind_tables_remove(&u->tables, number);
		uses[number] = REMOVED;
		state->number = UNWIND_NO_IMAGE;
		state->removed = true;
		removed = true;
	}
	if (!removed)
		return -ENOENT;
	u->has_removed = true;
	u->past.known = false;
	return err ?: unwind_index_builds(u);
}

/*
 * An ended process has no ticks any more that could read its images in the tables: unlike those of
 * the idle images, these blocks can be used again at once.
 */
static int make_room(struct unwind *u, bool users_only, struct room *room)
{
	return mark_processes(u, room)
		       ?: unwind_walk_copies(u, is_kept, room)
		       ?: remove_unused(u, users_only, room->uses);
}

int unwind_make_room(struct unwind *u, bool users_only, uint64_t until_ns)
{
	struct room room = { .u = u, .until_ns = until_ns };
	int err = users_only ? -ENOENT : unwind_evict(u);

	if (err != -ENOENT)
		return err;
	room.alive = calloc(u->processes->count + 1, sizeof(*room.alive));
	room.uses = calloc(u->tables.used.images, sizeof(*room.uses));
	err = room.alive && room.uses ? make_room(u, users_only, &room) : -ENOMEM;
	free(room.alive);
	free(room.uses);
	return err;
}

/*
 * Adds the removed ones among its own mappings that are new; its parent's are wanted by the parent.
 * An image that found no room is not read again whenever its process maps something else.
 */
static int want_images_of(struct unwind *u, uint32_t number)
{
	struct process *process = &u->processes->processes[number];
	const struct address_space *space = process_space(process);
	const struct unwind_process_state *state =
		number < u->state_count ? &u->states[number] : NULL;
	bool known = state && state->begun && state->number == process->count - 1;

	for (size_t i = known ? state->taken : 0; i < space->count; i++) {
		uint32_t image = space->mappings[i].image;

		if (image >= u->image_count || !u->images[image].removed || u->images[image].wanted)
			continue;
		if (array_reserve(&u->wanted, &u->wanted_room, u->wanted_count + 1,
				  sizeof(*u->wanted)))
			return -ENOMEM;
		u->wanted[u->wanted_count++] = image;
		u->images[image].wanted = true;
	}
	return 0;
}

int unwind_want_images(struct unwind *u)
{
	const struct process_table *table = u->processes;
	int err = 0;

	for (size_t i = 0; u->has_removed && i < table->changed_count && !err; i++)
		err = want_images_of(u, table->changed[i]);
	return err;
}
