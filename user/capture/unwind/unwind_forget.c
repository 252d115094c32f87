// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/clock.h"

/* --- Processes --- */

int unwind_forget(struct unwind *u, const struct forgetting *f)
{
	int err = 0;

	for (size_t i = 0; i < u->state_count && !err; i++) {
		const struct unwind_process_state *state = &u->states[i];

		if (f->processes[i].number == INDEX_NONE ||
		    (state->begun && state->number < f->processes[i].spaces))
			err = unwind_withdraw(u, i);
	}
	free(u->past.space.mappings);
	memset(&u->past, 0, sizeof(u->past));
	return err;
}

/* Its mappings are the same; some are the child's own now that were its parent's. */
static void renumber_space(struct unwind_process_state *state, const struct process *process,
			   uint32_t forgotten)
{
	state->scanned -= state->scanned < forgotten ? state->scanned : forgotten;
	if (!state->begun)
		return;
	state->number -= forgotten;
	state->taken += process->spaces[state->number].taken_over;
}

static void move_states(struct unwind *u, const struct forgetting *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < u->state_count; i++) {
		if (f->processes[i].number == INDEX_NONE)
			continue;
		u->states[kept] = u->states[i];
		renumber_space(&u->states[kept], &u->processes->processes[kept],
			       f->processes[i].spaces);
		kept++;
	}
	/* New elements are expected to be zero. */
	memset(u->states + kept, 0, (u->state_count - kept) * sizeof(*u->states));
	u->state_count = kept;
	for (size_t i = 0; i < u->published_count; i++)
		u->published[i] = f->processes[u->published[i]].number;
}

/* --- Images --- */

static void remove_idle(struct unwind *u, size_t number)
{
	memmove(u->idle + number, u->idle + number + 1,
		(--u->idle_count - number) * sizeof(*u->idle));
}

bool unwind_revive(struct unwind *u, const struct capture_image *image,
		   struct unwind_image_state *state)
{
	for (size_t i = 0; i < u->idle_count && image->build_id_size; i++) {
		const struct unwind_image_state *idle = &u->idle[i].state;

		if (!idle->root_owned || idle->rows.build_id_size != image->build_id_size ||
		    memcmp(idle->rows.build_id, image->build_id, image->build_id_size) != 0)
			continue;
		*state = *idle;
		remove_idle(u, i);
		return true;
	}
	return false;
}

static bool may_be_read(const struct unwind_idle_image *idle)
{
	return now_ns() < idle->since_ns + UNWIND_GRACE_NS;
}

int unwind_evict(struct unwind *u)
{
	uint32_t number;

	if (!u->idle_count || may_be_read(&u->idle[0]))
		return -ENOENT;
	number = u->idle[0].state.number;
	remove_idle(u, 0);
	return unwind_tables_remove(&u->tables, number);
}

/* Idle images can be found by build ID, those of users cannot: they are removed. */
static int remove_users_images(struct unwind *u)
{
	int err = 0;

	for (size_t i = 0; i < u->idle_count && !err;) {
		const struct unwind_idle_image *idle = &u->idle[i];

		if ((idle->state.root_owned && idle->state.rows.build_id_size) ||
		    may_be_read(idle)) {
			i++;
			continue;
		}
		err = unwind_tables_remove(&u->tables, idle->state.number);
		remove_idle(u, i);
	}
	return err;
}

/* in_use: of each number in the tables, whether an image that stays has it. */
static int make_idle(struct unwind *u, const struct unwind_image_state *state, bool *in_use)
{
	if (state->number == UNWIND_NO_IMAGE || in_use[state->number])
		return 0;
	in_use[state->number] = true; /* once */
	if (array_reserve(&u->idle, &u->idle_room, u->idle_count + 1, sizeof(*u->idle)))
		return -ENOMEM;
	u->idle[u->idle_count++] = (struct unwind_idle_image){ *state, now_ns() };
	return 0;
}

static int move_images(struct unwind *u, const struct forgetting *f, bool *in_use)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < u->image_count; i++)
		if (f->images[i] != INDEX_NONE)
			in_use[u->images[i].number] = true;
	for (size_t i = 0; i < u->image_count && !err; i++) {
		if (f->images[i] != INDEX_NONE) {
			u->images[kept++] = u->images[i];
			continue;
		}
		unwind_rows_free(&u->images[i].rows);
		err = make_idle(u, &u->images[i], in_use);
	}
	memset(u->images + kept, 0, (u->image_count - kept) * sizeof(*u->images));
	u->image_count = kept;
	return err ?: unwind_index_builds(u);
}

static int renumber_images(struct unwind *u, const struct forgetting *f)
{
	bool *in_use = calloc(u->tables.used.images + 1, sizeof(*in_use));
	int err = in_use ? move_images(u, f, in_use) : -ENOMEM;

	free(in_use);
	return err ?: remove_users_images(u);
}

int unwind_renumber(struct unwind *u, const struct forgetting *f)
{
	if (u->state_count)
		move_states(u, f);
	return u->image_count ? renumber_images(u, f) : 0;
}
