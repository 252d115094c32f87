// SPDX-License-Identifier: GPL-2.0-only
#include "capture/sample_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/members.h"
#include "sample.skel.h"
#include "util/clock.h"
#include "util/cpu.h"
#include "util/memory.h"

/*
 * The times of ticks that wait for the end of the window may take 1 / this of the memory.
 * Bound: users: the part of the memory that is free at the start which times of ticks may take
 * until the window ends; then: further ticks count without their time; again: at the next window;
 * without windows never; share: none; seen: lost_times.
 */
#define TIMES_SHARE 8

/* Buckets of a bank with a chunk of the arena: for 6,144 different samples. Bound: size. */
#define CPU_BUCKETS 2048
/* How many seconds of ticks that all differ have room, if user space reads no more. Bound: pace. */
#define ROOM_S 4

/*
 * Buckets of a bank, for the ticks of ROOM_S on all CPUs: before it is full, user space takes it,
 * and ticks go on in the other one. So the memory, which the kernel clears at the start, depends on
 * the frequency, not on how long the recording is.
 */
static uint32_t bank_buckets(const struct sample_program *sample)
{
	const uint32_t most = SAMPLE_BUCKETS / SAMPLE_BANKS;
	uint64_t tick_ns = sample->settings.tick_ns, of_cpu = CPU_BUCKETS;
	uint32_t buckets = 2 * CPU_BUCKETS;

	/* Without a frequency an event may come at any rate. */
	while (of_cpu * SAMPLE_PER_BUCKET * tick_ns < ROOM_S * NS_PER_S && of_cpu < most)
		of_cpu *= 2;
	while (buckets < of_cpu * sample->cpu_count && buckets < most)
		buckets *= 2;
	return buckets;
}

static size_t bucket_count(const struct sample_program *sample)
{
	return sample->buckets * SAMPLE_BANKS;
}

/* Chunks of a bank: 1 MiB holds the stacks of CPU_BUCKETS if they have 20 frames. */
static size_t bank_chunks(const struct sample_program *sample)
{
	return sample->buckets / CPU_BUCKETS;
}

static size_t arena_chunks(const struct sample_program *sample)
{
	return bank_chunks(sample) * SAMPLE_BANKS;
}

/*
 * Of a window, and of a recording without windows.
 * Bound: users: memory of stacks of waits, in chunks of 1 MiB; then: the wait is added to its
 * thread and reason; again: with the next window; share: nobody gets more than is still free; seen:
 * waits_no_room.
 */
#define WAIT_CHUNKS	4
#define WAIT_CHUNKS_ALL 16

/* How many chunks of the arena are for waits: with windows, two parts in turn. */
static size_t wait_chunks(const struct sample_program *sample)
{
	if (!sample->settings.waits)
		return 0;
	return sample->settings.windows ? 2 * WAIT_CHUNKS : WAIT_CHUNKS_ALL;
}

/* See SAMPLE_PLACES. */
static size_t place_count(const struct sample_program *sample)
{
	return sample->cpu_count * (sample->settings.point ? SAMPLE_PLACES : 1);
}

static size_t counter_count(const struct sample_program *sample)
{
	return sample->cpu_count * SAMPLE_BANKS;
}

/* Of values of contexts, which no recording without windows takes before it ends. */
static uint32_t context_banks(const struct sample_program *sample)
{
	return sample->settings.windows ? SAMPLE_BANKS : 1;
}

static int take_ring_sample(void *counts, void *data, size_t size)
{
	const struct sample_record *from = data;
	struct counted sample = { .count = 1, .user_depth = 1 };
	uint64_t pc;

	if (size < sizeof(*from))
		return 0;
	pc = from->pc;
	sample.id = from->id;
	counts_split_cpu(&sample);
	sample.first_ns = from->time_ns;
	sample.waiting = from->waiting;
	return counts_add_tick(counts, &sample, &pc);
}

static int take_ring_stack(void *counts, void *data, size_t size)
{
	const struct stack_sample *from = data;

	return size < offsetof(struct stack_sample, stack.pcs) ? 0
							       : counts_add_record(counts, from);
}

static struct bpf_program *choose_program(const struct sample_program *sample)
{
	const struct sample_settings *settings = &sample->settings;
	const struct sample_bpf *bpf = sample->bpf;

	if (settings->point && settings->point->file >= 0)
		return settings->unwind ? bpf->progs.function_stacks_cfi
					: bpf->progs.function_stacks;
	if (settings->point)
		return settings->unwind ? bpf->progs.tracepoint_stacks_cfi
					: bpf->progs.tracepoint_stacks;
	if (settings->unwind)
		return settings->tick ? bpf->progs.tick_stacks_cfi : bpf->progs.sample_stacks_cfi;
	if (settings->stacks)
		return settings->tick ? bpf->progs.tick_stacks : bpf->progs.sample_stacks;
	return settings->tick ? bpf->progs.tick : bpf->progs.sample;
}

/* Leaves out the maps of the walk by call frame information, unless it is used. */
static int prepare_unwind(const struct sample_program *sample)
{
	struct sample_bpf *bpf = sample->bpf;
	struct unwind *unwind = sample->settings.unwind;
	struct bpf_map *maps[] = {
		bpf->maps.unwind_processes,	 bpf->maps.unwind_mappings,
		bpf->maps.unwind_mappings_more,	 bpf->maps.unwind_images,
		bpf->maps.unwind_images_more,	 bpf->maps.unwind_pages,
		bpf->maps.unwind_pages_more,	 bpf->maps.unwind_chunks,
		bpf->maps.unwind_chunks_more,	 bpf->maps.unwind_rules,
		bpf->maps.unwind_rules_more,	 bpf->maps.unwind_copies,
		bpf->maps.unwind_copies_first,	 bpf->maps.unwind_languages,
		bpf->maps.unwind_languages_more, bpf->maps.language_sent,
		bpf->maps.language_codes,	 bpf->maps.language_codes_first,
	};
	/*
	 * For copies of stacks, a power of two: 4 MiB a CPU; at a low frequency what the largest
	 * ones of an eighth of a second need, and no less than 1 MiB.
	 */
	uint32_t ring_of_cpu = sample->settings.always_on ? 1 << 20 : 4 << 20;
	uint32_t ring_bytes;
	int err;

	while (ring_of_cpu > 1 << 20 &&
	       ring_of_cpu / 2 * sample->settings.tick_ns >= UNWIND_COPY_BYTES * NS_PER_S / 8)
		ring_of_cpu /= 2;
	ring_bytes = 2 * ring_of_cpu;
	while (ring_bytes / ring_of_cpu < sample->cpu_count && ring_bytes < UNWIND_COPY_RING_BYTES)
		ring_bytes *= 2;
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		bpf_map__set_autocreate(maps[i], unwind);
	program_let_grow(bpf->maps.unwind_processes);
	err = bpf_map__set_max_entries(bpf->maps.unwind_copies_first, ring_bytes);
	err = err
		      ?: bpf_map__set_max_entries(bpf->maps.language_codes_first,
						  LANGUAGE_RING_BYTES / UNWIND_RING_GROWTH);
	if (!sample->settings.everyone)
		err = err
			      ?: bpf_map__set_max_entries(bpf->maps.language_sent,
							  LANGUAGE_CODES / LANGUAGE_CODES_PART);
	return err || !unwind ? err : unwind_prepare(unwind, bpf);
}

/* The program that passes on the ticks of those that are wanted; NULL: all are. */
static struct bpf_program *choose_filter(const struct sample_program *sample)
{
	const struct sample_bpf *bpf = sample->bpf;

	if (sample->settings.point || /* its program does it itself */
	    (!sample->settings.whom.by_user && !sample->settings.whom.group_count))
		return NULL;
	return sample->settings.tick ? bpf->progs.wanted_tick : bpf->progs.wanted_event;
}

/* The program that counts which victims wait; NULL: all that wait count. */
static struct bpf_program *choose_victims(const struct sample_program *sample)
{
	const struct sample_bpf *bpf = sample->bpf;

	if (!sample->settings.victim.kind)
		return NULL;
	return sample->settings.tick ? bpf->progs.victims_tick : bpf->progs.victims_event;
}

/* Chooses the programs and maps to load, their sizes and settings. */
static int choose_maps(struct sample_program *sample)
{
	const struct sample_settings *settings = &sample->settings;
	const struct sample_victim *victim = &settings->victim;
	struct sample_bpf *bpf = sample->bpf;
	bool stacks = settings->stacks;
	int err;

	bpf->rodata->sides = settings->sides;
	bpf->rodata->everyone = settings->everyone;
	bpf->rodata->by_user = settings->whom.by_user;
	bpf->rodata->whom_uid = settings->whom.uid;
	bpf->rodata->by_group = settings->whom.group_count;
	bpf->rodata->groups_are_v1 = settings->whom.group_count && settings->whom.groups->is_v1;
	bpf->rodata->one_thread = settings->one_thread;
	if (settings->owner) {
		bpf->rodata->has_owner = true;
		*(struct member_owner *)&bpf->rodata->owner = *settings->owner;
	}
	bpf->rodata->inherit = settings->inherit;
	if (settings->cells) {
		bpf->rodata->ends_at_exec = true;
		*(struct sample_cells *)&bpf->rodata->cells = *settings->cells;
	}
	bpf->rodata->has_account = !settings->everyone;
	bpf->rodata->cpu_words = members_cpu_words();
	bpf->rodata->pid_namespace = members_pid_namespace();
	if (settings->tick) {
		bpf->rodata->tick_cpu_sched = settings->tick->timer_distance;
		bpf->rodata->irq_regs = settings->tick->regs_distance;
	}
	bpf->rodata->native_frames = settings->unwind && settings->unwind->native;
	bpf->rodata->walk_tick_ns = settings->unwind ? settings->unwind->tick_ns : 0;
	bpf->rodata->context_banks = context_banks(sample);
	bpf->rodata->notes_cpu = settings->always_on || settings->cpus;
	bpf->rodata->bank_buckets = sample->buckets;
	bpf->rodata->cpu_count = sample->cpu_count;
	bpf->rodata->arena_words = bpf->rodata->bank_words =
		bank_chunks(sample) * STACK_CHUNK_WORDS;
	if (sample->arena_words)
		bpf->rodata->arena_words = sample->arena_words;
	bpf->rodata->wait_position = arena_chunks(sample) * STACK_CHUNK_WORDS;
	bpf->rodata->wait_words =
		wait_chunks(sample) * STACK_CHUNK_WORDS / (settings->windows ? 2 : 1);
	if (settings->windows)
		bpf->rodata->wait_records = WAIT_RECORDS_WINDOW;
	bpf->rodata->keeps_records = sample->keeps_records;
	bpf->rodata->signature = return_address_signature();
	if (sample->one_hash)
		bpf->rodata->hash_bits = 0;
	bpf_program__set_autoload(choose_program(sample), true);
	bpf_program__set_autoload(bpf->progs.knows_waiting, true);
	if (choose_filter(sample))
		bpf_program__set_autoload(choose_filter(sample), true);
	bpf->rodata->victims = victim->kind;
	bpf->rodata->victim_pid = victim->pid;
	memcpy((char *)bpf->rodata->victim_comm, victim->comm, sizeof(victim->comm));
	bpf->rodata->victim_group = victim->group;
	bpf->rodata->victim_group_is_v1 = victim->group_is_v1;
	if (victim->kind)
		bpf_program__set_autoload(choose_victims(sample), true);
	bpf_map__set_autocreate(bpf->maps.counting, choose_filter(sample) || victim->kind);
	if (!settings->everyone)
		members_choose(bpf->obj, true);
	bpf_map__set_autocreate(bpf->maps.table, !stacks);
	bpf_map__set_autocreate(bpf->maps.stacks, stacks);
	bpf_map__set_autocreate(bpf->maps.arena, stacks);
	bpf_map__set_autocreate(bpf->maps.scratch, stacks);
	bpf_map__set_autocreate(bpf->maps.members, !settings->everyone);
	bpf_map__set_autocreate(bpf->maps.member_numbers, !settings->everyone);
	bpf_map__set_autocreate(bpf->maps.member_tasks, !settings->everyone);
	bpf_map__set_autocreate(bpf->maps.member_exits, !settings->everyone);
	bpf_map__set_autocreate(bpf->maps.member_records, !settings->everyone);
	if (sample->members_max)
		bpf_map__set_max_entries(bpf->maps.members, sample->members_max);
	err = bpf_map__set_max_entries(bpf->maps.contexts, settings->contexts ? CONTEXT_IMAGES : 1);
	bpf_map__set_autocreate(bpf->maps.contexts, settings->unwind);
	bpf_map__set_autocreate(bpf->maps.context_values, settings->unwind || settings->waits);
	bpf_map__set_autocreate(bpf->maps.context_values_in_use,
				settings->unwind || settings->waits);
	bpf_map__set_autocreate(bpf->maps.context_shares, settings->unwind || settings->waits);
	bpf->rodata->wait_percent = settings->waits_percent;
	bpf_map__set_autocreate(bpf->maps.wait_tasks, settings->waits);
	bpf_map__set_autocreate(bpf->maps.waits, settings->waits);
	bpf_map__set_autocreate(bpf->maps.wait_peers, settings->waits);
	bpf_map__set_autocreate(bpf->maps.wakes, settings->waits);
	bpf_map__set_autocreate(bpf->maps.wait_shares, settings->waits);
	bpf_map__set_autocreate(bpf->maps.wait_counters, settings->waits);
	bpf_map__set_autocreate(bpf->maps.wait_rings, settings->waits);
	bpf_map__set_autocreate(bpf->maps.wait_scratch, settings->waits);
	bpf_map__set_autocreate(bpf->maps.wait_begin, settings->waits);
	calls_choose(bpf, settings->calls);
	err = err ?: prepare_unwind(sample) ?: whom_choose_map(&settings->whom, bpf->maps.whom_groups);
	if (settings->waits)
		err = err
			      ?: waits_choose(bpf, settings->unwind, settings->every_wait,
					      sample->cpu_count, &sample->types);
	err = err ?: bpf_map__set_max_entries(bpf->maps.counters, counter_count(sample));
	err = err ?: bpf_map__set_max_entries(bpf->maps.times, place_count(sample));
	err = err ?: bpf_map__set_max_entries(bpf->maps.scratch, place_count(sample));
	err = err ?: bpf_map__set_max_entries(bpf->maps.table, bucket_count(sample));
	err = err ?: bpf_map__set_max_entries(bpf->maps.stacks, bucket_count(sample));
	return err
		       ?: bpf_map__set_max_entries(bpf->maps.arena,
						   arena_chunks(sample) + wait_chunks(sample));
}

/* For program_load(). */
static int load_sample(void *object)
{
	struct sample_program *sample = object;
	LIBBPF_OPTS(bpf_object_open_opts, options,
		    .btf_custom_path = kernel_types_used(&sample->types));
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err;

	sample->bpf = sample_bpf__open_opts(&options);
	if (!sample->bpf)
		return -errno;
	err = choose_maps(sample);
	kernel_types_forget(&sample->types); /* libbpf reads its own */
	err = err ?: sample_bpf__load(sample->bpf);
	err = err ?: whom_fill_map(&sample->settings.whom, sample->bpf->maps.whom_groups);
	if (!err && (choose_filter(sample) || sample->settings.victim.kind)) {
		/* Connects the filter of those that are wanted, the victims' program, and this. */
		const struct bpf_program *next[] = {
			choose_victims(sample) ?: choose_program(sample),
			choose_program(sample),
		};

		for (uint32_t key = 0; key < sizeof(next) / sizeof(*next) && !err; key++) {
			int fd = bpf_program__fd(next[key]);

			err = bpf_map_update_elem(bpf_map__fd(sample->bpf->maps.counting), &key,
						  &fd, BPF_ANY);
		}
	}
	err = err
		      ?: bpf_prog_test_run_opts(bpf_program__fd(sample->bpf->progs.knows_waiting),
						&run);
	sample->knows_waiting = run.retval && !sample->settings.cells;
	if (err) {
		sample_bpf__destroy(sample->bpf);
		sample->bpf = NULL;
	}
	return err;
}

int sample_program_load(struct sample_program *sample, const struct sample_settings *settings,
			struct counts *counts, struct error *e)
{
	int err, cpus = libbpf_num_possible_cpus();
	const struct sample_bpf *bpf;

	if (cpus < 0)
		return error_set(e, -cpus, "cannot determine the number of CPUs");
	sample->settings = *settings;
	sample->cpu_count = cpus;
	sample->buckets = bank_buckets(sample);
	sample->counts = counts;
	sample->slots_max =
		memory_available() / TIMES_SHARE / (sizeof(uint64_t) + sizeof(uint32_t));
	err = program_load(load_sample, sample, e);
	if (err && settings->victim.kind && e->kind == ERROR_KERNEL_LACKS && !program_has_loops()) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "--victim requires Linux 5.17, where BPF programs have loops");
		error_hint(e, "omit --victim: delay is of all threads that wait then");
		return -EOPNOTSUPP;
	}
	if (err && err != -ESRCH && settings->stacks && e->kind == ERROR_KERNEL_LACKS)
		error_hint(e,
			   "call stacks are tested from Linux 6.1 on; try %s, which requires "
			   "less of the kernel",
			   settings->unwind ? "--call-graph=fp" : "without -g");
	if (err)
		return err;
	bpf = sample->bpf;
	sample->counters = program_map(bpf->maps.counters);
	sample->times = program_map(bpf->maps.times);
	sample->ring = ring_buffer__new(bpf_map__fd(bpf->maps.ring),
					settings->stacks ? take_ring_stack : take_ring_sample,
					counts, NULL);
	if (sample->ring && settings->calls) {
		err = ring_buffer__add(sample->ring, bpf_map__fd(bpf->maps.call_ring), calls_take,
				       &sample->calls);
		if (err)
			return program_out_of(e, -err, "cannot map the calls of a function");
	}
	if (settings->stacks) {
		sample->stacks = program_map(bpf->maps.stacks);
		sample->arena = program_map(bpf->maps.arena);
	} else {
		sample->table = program_map(bpf->maps.table);
	}
	if (settings->contexts)
		sample->context_shares = program_map(bpf->maps.context_shares);
	if (!sample->counters || !sample->times || !sample->ring ||
	    (settings->contexts && !sample->context_shares) ||
	    (settings->stacks ? !sample->stacks || !sample->arena : !sample->table))
		return program_out_of(e, errno, "cannot map the counts of the BPF program");
	err = program_barrier_open(&sample->barrier);
	if (err)
		return program_out_of(e, -err, "cannot create a BPF map");
	return settings->unwind ? unwind_begin(settings->unwind, sample->bpf, e) : 0;
}

void sample_program_free(struct sample_program *sample)
{
	const struct sample_bpf *bpf = sample->bpf;

	ring_buffer__free(sample->ring);
	if (bpf) {
		program_unmap(bpf->maps.table, sample->table);
		program_unmap(bpf->maps.stacks, sample->stacks);
		program_unmap(bpf->maps.arena, sample->arena);
		program_unmap(bpf->maps.counters, sample->counters);
		program_unmap(bpf->maps.times, sample->times);
		program_unmap(bpf->maps.context_shares, sample->context_shares);
		waits_free(&sample->waits, bpf);
	}
	calls_free(&sample->calls);
	tick_list_free(&sample->slots);
	kernel_types_close(&sample->types);
	program_barrier_close(&sample->barrier);
	sample_bpf__destroy(sample->bpf);
	*sample = (struct sample_program){ 0 };
}

const struct bpf_program *sample_program_on_tick(const struct sample_program *sample)
{
	return choose_filter(sample) ?: choose_victims(sample) ?: choose_program(sample);
}

struct bpf_object *sample_program_object(const struct sample_program *sample)
{
	return sample->bpf->obj;
}

int sample_program_ring_fd(const struct sample_program *sample)
{
	return ring_buffer__epoll_fd(sample->ring);
}

int sample_program_read(struct sample_program *sample)
{
	const uint64_t mask = UINT64_MAX >> SAMPLE_SLOT_BITS; /* of the bits of a time */
	int n = ring_buffer__consume(sample->ring), err = 0;

	for (size_t i = 0; i < place_count(sample) && n >= 0 && !err; i++) {
		struct sample_times *from = &sample->times[i];
		uint64_t written = __atomic_load_n(&from->written, __ATOMIC_ACQUIRE);
		uint64_t read = from->read, now = now_ns();

		for (; read < written && !err; read++) {
			uint64_t tick = from->ticks[read % SAMPLE_TIMES];
			uint64_t ago = (now - (tick >> SAMPLE_SLOT_BITS)) & mask;

			if (sample->slots.count + sample->counts->ticks.count >= sample->slots_max)
				sample->no_room++;
			else
				err = tick_list_add(&sample->slots,
						    tick & ((1U << SAMPLE_SLOT_BITS) - 1),
						    now - ago);
		}
		__atomic_store_n(&from->read, read, __ATOMIC_RELEASE);
	}
	return n < 0 ? n : err;
}

/* The ticks whose home is in buckets [first, first + count). */
static uint64_t bucket_ticks(const struct sample_program *sample, size_t first, size_t count)
{
	uint64_t ticks = 0;

	for (size_t i = first; i < first + count; i++)
		ticks += sample->settings.stacks ? sample->stacks[i].ticks : sample->table[i].ticks;
	return ticks;
}

int sample_program_renew_contexts(struct sample_program *sample)
{
	volatile uint32_t *bank = &sample->bpf->data_banks->context_bank;
	struct context_value *values =
		sample->settings.contexts ? sample->settings.unwind->tables.context_values : NULL;
	uint32_t next = *bank + 1;

	if (!values || context_banks(sample) == 1)
		return 0;
	memset(&values[context_bank_first(next % SAMPLE_BANKS, SAMPLE_BANKS)], 0,
	       context_bank_values(SAMPLE_BANKS) * sizeof(*values));
	memset(sample->context_shares, 0, CONTEXT_SHARES * sizeof(*sample->context_shares));
	*bank = next;
	return program_barrier_wait(&sample->barrier);
}

/* Hashes spread samples over the buckets: so many of these stand for all. Bound: pace. */
#define LOOKED_AT_PART 16

bool sample_program_fills_up(const struct sample_program *sample)
{
	size_t bank = sample->bpf->data_banks->bank_in_use % SAMPLE_BANKS, used = 0;
	size_t first = bank * sample->buckets, count = sample->buckets / LOOKED_AT_PART;
	size_t word = bank * bank_chunks(sample) * STACK_CHUNK_WORDS;

	for (size_t i = first; i < first + count; i++)
		for (int k = 0; k < SAMPLE_PER_BUCKET; k++)
			used += sample->settings.stacks ? sample->stacks[i].entries[k].hash != 0
							: sample->table[i].samples[k].pc != 0;
	return used > count * SAMPLE_PER_BUCKET / 2 ||
	       (sample->settings.stacks &&
		sample->arena[word / STACK_CHUNK_WORDS].words[word % STACK_CHUNK_WORDS] >
			sample->bpf->rodata->arena_words / 2);
}

int sample_program_switch(struct sample_program *sample)
{
	volatile uint32_t *bank = &sample->bpf->data_banks->bank_in_use;

	*bank = (*bank + 1) % SAMPLE_BANKS;
	return program_barrier_wait(&sample->barrier);
}

int sample_program_take(struct sample_program *sample, struct counts *counts,
			struct sample_window *window)
{
	struct tick_list *slots = &sample->slots, left = { 0 };
	size_t bank = (sample->bpf->data_banks->bank_in_use + 1) % SAMPLE_BANKS;
	size_t first = bank * sample->buckets;
	uint64_t first_word = bank * bank_chunks(sample) * STACK_CHUNK_WORDS,
		 lost = sample->no_room, kernel;
	uint32_t *numbers =
		malloc(sample->buckets * SAMPLE_PER_BUCKET * sizeof(*numbers)); /* of slots */
	int err;

	if (!numbers)
		return -ENOMEM;
	*window = (struct sample_window){ .counted = -counts_sum(counts, &kernel) };
	for (size_t i = 0; i < place_count(sample); i++)
		lost += sample->times[i].lost;
	window->times_lost = lost - sample->times_lost;
	sample->times_lost = lost;
	for (size_t i = bank; i < counter_count(sample); i += SAMPLE_BANKS) {
		struct sample_counters *cpu = &sample->counters[i];

		window->counters.excluded += cpu->excluded;
		window->counters.out_of_range += cpu->out_of_range;
		window->counters.ring += cpu->ring;
		window->counters.ring_full += cpu->ring_full;
		window->counters.nested += cpu->nested;
		window->counters.timed += cpu->timed;
		window->counters.timed_ns += cpu->timed_ns;
		*cpu = (struct sample_counters){ 0 };
	}
	window->ticks = window->counters.excluded + window->counters.out_of_range +
			bucket_ticks(sample, first, sample->buckets);
	if (!sample->settings.stacks) {
		struct sample_bucket *table = sample->table + first;

		err = counts_add_table(counts, table, sample->buckets, numbers);
		memset(table, 0, sample->buckets * sizeof(*table));
	} else {
		struct stack_bucket *stacks = sample->stacks + first;

		err = counts_add_stacks(counts, stacks, sample->buckets, sample->arena, numbers);
		memset(stacks, 0, sample->buckets * sizeof(*stacks));
		/* Its arena is free again. */
		sample->arena[first_word / STACK_CHUNK_WORDS]
			.words[first_word % STACK_CHUNK_WORDS] = 0;
	}
	window->counted += counts_sum(counts, &kernel);
	/* The times of ticks of its slots are those of samples; others are of the next window. */
	for (size_t i = 0; i < slots->count && !err; i++) {
		uint32_t slot = slots->numbers[i] - first * SAMPLE_PER_BUCKET;

		if (slot >= sample->buckets * SAMPLE_PER_BUCKET)
			err = tick_list_add(&left, slots->numbers[i], slots->times[i]);
		else if (numbers[slot] != TICK_REMOVED)
			err = tick_list_add(&counts->ticks, numbers[slot], slots->times[i]);
	}
	tick_list_free(slots);
	*slots = left;
	free(numbers);
	return err;
}

uint64_t sample_program_ticks(const struct sample_program *sample)
{
	uint64_t ticks = bucket_ticks(sample, 0, bucket_count(sample));

	for (size_t i = 0; i < counter_count(sample); i++)
		ticks += sample->counters[i].excluded + sample->counters[i].out_of_range;
	return ticks;
}

uint64_t sample_program_missed(const struct sample_program *sample)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(choose_program(sample));

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}

bool sample_program_lacks_thread_locals(const struct sample_program *sample)
{
	return sample->settings.contexts && sample->settings.unwind->tables.context_values &&
	       sample->bpf->bss->lacks_context_vector;
}
