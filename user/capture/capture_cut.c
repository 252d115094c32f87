// SPDX-License-Identifier: GPL-2.0-only
/* The end of a window, and the begin of the next. */
#include "capture/capture_state.h"
#include "capture/forget.h"
#include "capture/jit_file.h"
#include "capture/snapshot.h"
#include "util/clock.h"

/* The CPU time of the window. */
static int take_cpu_time(struct capture *c, struct error *e)
{
	uint64_t ns;
	int err = capture_read_cpu_time(c, &ns, e);

	c->cpu_ns = ns ? ns - c->cpu_start_ns : 0;
	c->cpu_start_ns = ns ?: c->cpu_start_ns;
	return err;
}

/* From here on ticks are of the next window. */
static int switch_window(struct capture *c, struct error *e)
{
	int err;

	c->start_ns = c->next_start_ns;
	c->start_time_ns = c->next_start_time_ns;
	if (!c->stopped)
		c->stop_ns = now_ns();
	c->next_start_ns = c->stop_ns;
	c->next_start_time_ns = clock_ns(CLOCK_REALTIME);
	err = sample_program_switch(&c->sample);
	if (err)
		return error_set(e, -err, "cannot wait for the ticks of a window");
	return take_cpu_time(c, e);
}

/*
 * A tick that went through a ring buffer is in the window in which it was read. Those that were
 * read before the cut, or are still to be read, are moved from one window's ticks to the other's.
 * At the end all have been read, or were lost: then counts and ticks differ.
 */
static void move_ticks(struct capture *c, uint64_t from_ring)
{
	int64_t moved = c->window.counters.ring - from_ring;

	if (c->stopped)
		moved = -c->not_gathered;
	c->window.ticks -= moved;
	c->not_gathered += moved;
	c->window.counters.ring = from_ring;
}

static int take_counts(struct capture *c)
{
	uint64_t kernel, from_ring = counts_sum(&c->gathered, &kernel);
	int err;

	counts_free(&c->counts);
	c->counts = c->gathered;
	c->gathered = (struct counts){ 0 };
	err = sample_program_take(&c->sample, &c->counts, &c->window);
	move_ticks(c, from_ring);
	return err;
}

static void take_crowded(struct capture *c)
{
	c->crowded = c->crowded ?: c->processes.crowded;
	c->lacks_room |= c->processes.crowded != 0;
	c->processes.crowded = 0;
}

/* What was lost in the window. */
static void take_losses(struct capture *c)
{
	uint64_t lost = capture_records_lost(c);
	uint64_t dropped = members_dropped(&c->members);

	c->lost = lost - c->lost_before;
	c->lost_before = lost;
	c->dropped = dropped - c->dropped_before;
	c->dropped_before = dropped;
	c->crowded = 0;
	take_crowded(c);
}

/* Reading mappings again may take 1 / AGAIN_PART of the time: many processes have many. */
#define AGAIN_PART 500

static int read_again(struct capture *c, struct process *process)
{
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err = snapshot_replace(&c->processes, process, c->stop_ns);

	c->again_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	return err;
}

/*
 * In a recording without an end, more and more processes would have used up their budgets. So their
 * mappings are read again; but not of those that would have less than now, as other processes use
 * up the budget of all.
 */
static int make_room(struct capture *c)
{
	struct process_table *table = &c->processes;
	size_t count = c->lacks_room ? table->count : 0, first = c->next_again;
	int err = 0;

	c->lacks_room = false;
	for (size_t i = first; i < first + count && !err; i++) {
		struct process *process = &table->processes[i % count];
		const struct address_space *space = process_space(process);

		if (process->ended || !space->crowded)
			continue;
		if (c->again_ns > (now_ns() - c->begin_ns) / AGAIN_PART) {
			c->lacks_room = true;
			c->next_again = i % count;
			return 0;
		}
		if (space->bytes < SPACE_BYTES_MAX && space->bytes >= process_budget(table))
			c->lacks_room = true;
		else
			err = read_again(c, process);
	}
	return err;
}

static int forget(struct capture *c)
{
	struct forgetting f = { 0 };
	int err = forget_choose(&c->processes, &c->counts, c->start_ns, c->stop_ns, &f);

	err = err ?: unwind_forget(&c->unwind, &f);
	err = err ?: forget_processes(&c->processes, &f, c->stop_ns);
	err = err ?: unwind_renumber(&c->unwind, &f);
	forget_free(&f);
	return err;
}

int capture_end_window(struct capture *c, struct error *e)
{
	int err = switch_window(c, e);

	err = err ?: capture_handle(c, e);
	if (err)
		return err;
	take_losses(c);
	if (make_room(c) || jit_look_again(&c->processes) || take_counts(c) || forget(c) ||
	    capture_count_stacks(c))
		return error_no_memory(e);
	take_crowded(c);
	return 0;
}

int capture_cut(struct capture *c, struct error *e)
{
	return capture_end_window(c, e);
}
