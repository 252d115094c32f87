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

/* --- What is used least makes room --- */

/* Longer than UNWIND_GRACE_NS: what was emptied at one look is free at the next. */
#define BALANCE_NS   (500 * NS_PER_MS)
#define DEMAND_DECAY 16
/* How many of the images without rows, the most used first, are tried at each look. */
#define TRIES 8

int unwind_note_demand(struct unwind *u, const struct unwind_image_state *state,
		       const struct unwind_sizes *need)
{
	if (array_reserve(&u->demands, &u->demand_room, state->number + 1, sizeof(*u->demands)))
		return -ENOMEM;
	u->demands[state->number] = (struct unwind_demand){
		.last = u->tables.images[state->number].used,
		.need = *need,
	};
	return 0;
}

static void count_ticks(struct unwind *u)
{
	for (uint32_t i = 1; i < u->tables.used.images && i < u->demand_room; i++) {
		struct unwind_demand *demand = &u->demands[i];
		uint32_t used = u->tables.images[i].used;

		/* In 1 / DEMAND_DECAY of a tick, so that one tick is forgotten, too. */
		demand->score -= (demand->score + DEMAND_DECAY - 1) / DEMAND_DECAY;
		demand->score += (uint64_t)(used - demand->last) * DEMAND_DECAY;
		demand->last = used;
	}
}

/* Numbers of images with their scores, to be sorted. */
struct scored {
	uint64_t score;
	uint32_t number; /* in the tables */
	uint32_t image;	 /* any that has it */
};

static int least_first(const void *left, const void *right)
{
	const struct scored *a = left, *b = right;

	if (a->score != b->score)
		return a->score < b->score ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* Lists the images with, or without rows, each once: the least used first. */
static size_t list_scored(const struct unwind *u, bool with_rows, struct scored *list)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < u->image_count; i++) {
		uint32_t number = u->images[i].number;

		if (number != UNWIND_NO_IMAGE &&
		    unwind_tables_has_rows(&u->tables, number) == with_rows)
			list[count++] = (struct scored){ u->demands[number].score, number, i };
	}
	qsort(list, count, sizeof(*list), least_first);
	/* Images of one build have one number, and are next to each other. */
	for (size_t i = 0; i < count; i++)
		if (!kept || list[kept - 1].number != list[i].number)
			list[kept++] = list[i];
	return kept;
}

static bool is_enough(const struct unwind_sizes *free, const struct unwind_sizes *need)
{
	return free->pages >= need->pages && free->rows >= need->rows && free->rules >= need->rules;
}

/*
 * Removes the rows of the least used images until an image without rows may fit, if all of them
 * together are used less than half as much as it: else two would take turns. Returns 0, -ENOENT:
 * none was removed, or -ENOMEM.
 */
static int empty_least_used(struct unwind *u, const struct scored *wanted, const struct scored *all,
			    size_t count)
{
	const struct unwind_sizes *need = &u->demands[wanted->number].need;
	struct unwind_tables *t = &u->tables;
	bool root_owned = u->images[wanted->image].root_owned, users_only;
	struct unwind_sizes free;
	uint64_t sum = 0;
	size_t end = 0;
	int err = 0;

	unwind_tables_free_sizes(t, &free);
	users_only = !root_owned && (t->users_used.pages + need->pages > t->users_room.pages ||
				     t->users_used.rows + need->rows > t->users_room.rows ||
				     t->users_used.rules + need->rules > t->users_room.rules);
	if (users_only)
		free = (struct unwind_sizes){
			.pages = t->users_room.pages - t->users_used.pages,
			.rows = t->users_room.rows - t->users_used.rows,
			.rules = t->users_room.rules - t->users_used.rules,
		};
	/* At least one: if there is enough, it is in pieces. */
	do {
		while (end < count && users_only && t->extents[all[end].number].root_owned)
			end++;
		if (end == count)
			return -ENOENT;
		sum += all[end].score;
		if (2 * sum > wanted->score)
			return -ENOENT;
		free.pages += t->extents[all[end].number].pages.size;
		free.rows += t->extents[all[end].number].rows.size;
		free.rules += t->extents[all[end].number].rules.size;
		end++;
	} while (!is_enough(&free, need));
	for (size_t i = 0; i < end && !err; i++) {
		const struct unwind_extent *extent = &t->extents[all[i].number];
		struct unwind_sizes without = {
			.pages = free.pages - extent->pages.size,
			.rows = free.rows - extent->rows.size,
			.rules = free.rules - extent->rules.size,
		};

		if (users_only && extent->root_owned)
			continue;
		if (i + 1 < end && is_enough(&without, need)) {
			free = without; /* small libraries that do not help stay */
			continue;
		}
		err = unwind_tables_empty(t, all[i].number);
	}
	return err;
}

static int want_image(struct unwind *u, uint32_t image)
{
	if (u->images[image].wanted)
		return 0;
	if (array_reserve(&u->wanted, &u->wanted_room, u->wanted_count + 1, sizeof(*u->wanted)))
		return -ENOMEM;
	u->wanted[u->wanted_count++] = image;
	u->images[image].wanted = u->images[image].again = true;
	return 0;
}

static int balance(struct unwind *u, struct scored *lacking, struct scored *all)
{
	size_t count = list_scored(u, false, lacking), tries = TRIES;
	int err;

	if (!count)
		return 0;
	for (size_t i = count; i-- > 0 && tries-- > 0 && lacking[i].score;)
		if (unwind_tables_fit(&u->tables, &u->demands[lacking[i].number].need,
				      u->images[lacking[i].image].root_owned))
			return want_image(u, lacking[i].image);
	if (u->tables.emptied_count) /* free at the next look */
		return 0;
	err = u->idle_count ? unwind_evict(u) : -ENOENT;
	if (err != -ENOENT)
		return err;
	tries = TRIES;
	for (size_t i = count; i-- > 0 && tries-- > 0 && lacking[i].score;) {
		err = empty_least_used(u, &lacking[i], all, list_scored(u, true, all));
		if (err != -ENOENT)
			return err;
	}
	return 0;
}

int unwind_balance(struct unwind *u)
{
	struct scored *lists;
	int err;

	if (now_ns() < u->next_balance_ns)
		return 0;
	u->next_balance_ns = now_ns() + BALANCE_NS;
	count_ticks(u);
	lists = calloc(2 * u->image_count + 1, sizeof(*lists));
	err = lists ? balance(u, lists, lists + u->image_count) : -ENOMEM;
	free(lists);
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
