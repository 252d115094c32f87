// SPDX-License-Identifier: GPL-2.0-only
#include <unistd.h>

#include "capture/capture_state.h"
#include "capture/image.h"
#include "capture/resolve.h"

uint64_t capture_ticks(const struct capture *c)
{
	if (has_histogram(c))
		return profil_client_state(&c->histogram)->ticks;
	return c->options.windows ? c->window.ticks : sample_program_ticks(&c->sample);
}

size_t capture_tasks(const struct capture *c)
{
	return c->processes.count + c->processes.thread_count;
}

const struct address_space *capture_first_space(const struct capture *c)
{
	const struct process *process = NULL;

	if (c->target_count)
		process = process_find(&c->processes, c->options.target == CAPTURE_THREAD
							      ? c->processes.processes[0].pid
							      : c->targets[0].pid);
	return process ? &process->spaces[process->count - 1] : NULL;
}

static void sample_totals(const struct capture *c, struct capture_totals *totals)
{
	struct sample_counters sum =
		c->options.windows ? c->window.counters : sample_program_counters(&c->sample);

	totals->excluded = sum.excluded;
	totals->ring_full = sum.ring_full;
	totals->ring = sum.ring;
	totals->bpf_ns_per_tick = sum.timed ? sum.timed_ns / sum.timed : 0;
	totals->counted = counts_sum(&c->counts, &totals->kernel);
	for (size_t i = 0; i < c->counts.count; i++) {
		uint64_t after = c->counts.samples[i].first_ns - c->begin_ns;

		if (!totals->first_tick_ns || after < totals->first_tick_ns)
			totals->first_tick_ns = after;
	}
}

static void profil_totals(const struct capture *c, struct capture_totals *totals)
{
	const struct profil_state *state = profil_client_state(&c->histogram);
	uint64_t ignored;

	totals->out_of_range = state->out_of_range;
	totals->no_cell = state->lost;
	totals->bpf_ns_per_tick = state->timed ? state->timed_ns / state->timed : 0;
	totals->counted = counts_sum(&c->counts, &ignored);
	totals->kernel = state->kernel;
}

static void clock_totals(const struct capture *c, struct capture_totals *totals)
{
	size_t cpus = has_tick(c) ? (size_t)sysconf(_SC_NPROCESSORS_ONLN) : c->events.count;

	totals->interrupt_ns = c->interrupt_ns;
	totals->machine_ns = totals->duration_ns * cpus;
	if (!has_tick(c) && events_count_time(&c->events))
		totals->interrupts = totals->machine_ns / c->events.period_ns;
}

uint64_t capture_records_lost(const struct capture *c)
{
	return sideband_lost(c->sideband) + members_lost(&c->members);
}

void capture_totals(const struct capture *c, struct capture_totals *totals)
{
	bool windows = c->options.windows;

	*totals = (struct capture_totals){
		.ticks = capture_ticks(c),
		.mapping_records_lost = windows ? c->lost : capture_records_lost(c),
		.dropped = windows ? c->dropped : members_dropped(&c->members),
		.crowded = windows ? c->crowded : c->processes.crowded,
		.cpu_ns = c->cpu_ns,
		.own_ns = !windows && c->stopped ? c->own_ns : 0,
		.start_time_ns = c->start_time_ns,
		.duration_ns = c->stop_ns - c->start_ns,
	};
	clock_totals(c, totals);
	if (has_histogram(c))
		profil_totals(c, totals);
	else
		sample_totals(c, totals);
	totals->stack_limit = c->stacks.limit;
	totals->stacks_truncated = c->stacks.truncated;
	totals->stacks_user = c->stacks.user;
	totals->stacks_complete = c->stacks.complete;
}

enum capture_rows capture_rows(const struct capture *c, uint32_t image, const char **why)
{
	return unwind_rows_state(&c->unwind, image, why);
}

void capture_tables(const struct capture *c, struct capture_tables *tables)
{
	unwind_used(&c->unwind, tables);
}

const struct capture_stack_end *capture_stack_ends(const struct capture *c, size_t *count)
{
	*count = c->stacks.end_count;
	return c->stacks.ends;
}

enum capture_stacks capture_stacks(const struct capture *c)
{
	return c->options.stacks;
}

const char *capture_event_name(const struct capture *c)
{
	return has_tick(c) ? "tick" : events_name(&c->events);
}

uint64_t capture_period_ns(const struct capture *c)
{
	return has_tick(c) ? c->tick.period_ns : c->events.period_ns;
}

unsigned int capture_frequency(const struct capture *c)
{
	return c->options.frequency;
}

int capture_command_status(const struct capture *c)
{
	return c->command.ended ? c->command.status : -1;
}

pid_t capture_command_pid(const struct capture *c)
{
	return c->options.target == CAPTURE_COMMAND && !c->command.ended ? c->command.pid : 0;
}

const struct capture_image *capture_images(const struct capture *c, size_t *count)
{
	*count = c->processes.image_count;
	return c->processes.images;
}

unsigned int capture_bits(const struct capture *c)
{
	const struct address_space *space = capture_first_space(c);
	unsigned int bits = 0;

	for (size_t i = 0; space && i < space->count && !bits; i++)
		if (space->mappings[i].executable)
			bits = image_bits(&c->processes.images[space->mappings[i].image]);
	return bits ?: 64;
}

int capture_each_mapping(const struct capture *c,
			 int (*visit)(const struct capture_mapping *mapping, void *context),
			 void *context)
{
	const struct address_space *space = capture_first_space(c);
	int stop = 0;

	for (int executable = 1; executable >= 0; executable--)
		for (size_t i = 0; space && i < space->count && !stop; i++)
			if (space->mappings[i].executable == executable)
				stop = visit(&space->mappings[i], context);
	return stop;
}

int capture_each_sample(struct capture *c,
			int (*visit)(const struct capture_sample *sample, void *context),
			void *context)
{
	bool incomplete = sideband_lost(c->sideband) > 0;

	/* Those of an earlier window were read again. */
	if (c->options.windows)
		incomplete = c->lost || c->processes.records_lost != sideband_lost(c->sideband);

	return resolve_each(&c->counts, &c->processes, incomplete,
			    c->options.windows ? c->start_ns : 0, visit, context);
}
