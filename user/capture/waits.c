// SPDX-License-Identifier: GPL-2.0-only
#include "capture/waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/member.h"
#include "capture/process.h"
#include "capture/unwind/unwind.h"
#include "capture/unwind/unwind_copy.h"
#include "sample.skel.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/memory.h"
#include "util/order.h"

/*
 * When waits were may take 1 / this of the memory until the recording ends.
 * Bound: users: the part of the memory that is free at the start which times of waits may take;
 * then: further waits count, but not when they were; again: with the next window of profild,
 * else never; share: none; seen: wait_times_lost.
 */
#define TIMES_SHARE 8

/*
 * Bound: users: stacks of threads that have waited since before the recording, which are walked at
 * the begin of a window; then: the wait has its kernel frames alone; again: with the next window;
 * share: none; seen: stacks of waits that end early.
 */
#define WALKS_MAX 4096

/* System calls that arm64 or older headers do not have: a number that none has. */
#define SYS_NONE (WAIT_SYSTEM_CALLS - 1)
#ifndef SYS_poll
#define SYS_poll       SYS_NONE
#define SYS_select     SYS_NONE
#define SYS_epoll_wait SYS_NONE
#define SYS_pause      SYS_NONE
#define SYS_open       SYS_NONE
#define SYS_vfork      SYS_NONE
#endif
#ifndef SYS_clone3
#define SYS_clone3 SYS_NONE
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 SYS_NONE
#endif
#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter SYS_NONE
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv SYS_NONE
#endif

static void set_reason(struct sample_bpf *bpf, enum wait_reason reason, const long *calls,
		       size_t count)
{
	for (size_t i = 0; i < count; i++)
		bpf->rodata->wait_reasons[calls[i]] = reason;
}

#ifdef __x86_64__
/*
 * Sets *distance to that of a per-CPU variable from the CPU's run queue. Linux 6.2 to 6.14 have
 * those of which much depends as members of one struct. Returns whether it is known.
 */
static bool find_distance(struct kernel_types *types, const char *name, const char *member,
			  __s64 *distance)
{
	int64_t queue = 0, variable = 0;
	uint32_t offset = 0;
	bool found = kernel_variable_offset(types, "runqueues", &queue) == 0 &&
		     (kernel_variable_offset(types, name, &variable) == 0 ||
		      (kernel_variable_offset(types, "pcpu_hot", &variable) == 0 &&
		       kernel_member_offset(types, "pcpu_hot", member, &offset) == 0));

	if (found)
		*distance = variable + offset - queue;
	return found;
}
#endif

/* Finds what the programs distinguish interrupts from threads by. Returns whether they can. */
static bool find_interrupts(struct sample_bpf *bpf, struct kernel_types *types)
{
	bool found = true;
#ifdef __x86_64__
	found = find_distance(types, "__preempt_count", "preempt_count",
			      &bpf->rodata->preempt_count_distance);
	find_distance(types, "hardirq_stack_ptr", "hardirq_stack_ptr",
		      &bpf->rodata->interrupt_stack_distance);
#endif
	return found;
}

/*
 * Finds the code in which interrupts enter the kernel, and that which changes to their stack (x86).
 * Without the right to know it, or on other machines, it stays unknown.
 */
static void find_interrupt_code(const struct sample_bpf *bpf)
{
	struct wait_symbols symbols = { {
		{ .name = "__irqentry_text_start" },
		{ .name = "__irqentry_text_end" },
		{ .name = "__noinstr_text_start" },
		{ .name = "__noinstr_text_end" },
	} };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &symbols, .ctx_size_in = sizeof(symbols));
	const struct wait_symbol *list = symbols.list;

	bpf_prog_test_run_opts(bpf_program__fd(bpf->progs.find_symbols), &run);
	if (list[0].address < list[1].address) {
		bpf->bss->interrupt_entry = list[0].address;
		bpf->bss->interrupt_entry_size = list[1].address - list[0].address;
	}
	if (bpf->rodata->interrupt_stack_distance && list[2].address < list[3].address) {
		bpf->bss->interrupt_code = list[2].address;
		bpf->bss->interrupt_code_size = list[3].address - list[2].address;
	}
}

int waits_choose(struct sample_bpf *bpf, bool cfi, bool every, size_t cpus,
		 struct kernel_types *types)
{
	uint32_t unused;

	bpf->rodata->keeps_every_wait = every;
#define SET_CALLS(number, ...)                                        \
	set_reason(bpf, WAIT_##number, (const long[]){ __VA_ARGS__ }, \
		   sizeof((const long[]){ __VA_ARGS__ }) / sizeof(long));
#define SET_REASON(number, name, idle, ...) SET_CALLS(number, __VA_ARGS__)
	WAIT_REASON_LIST(SET_REASON)
	WAIT_DECIDER_LIST(SET_CALLS)
#undef SET_REASON
#undef SET_CALLS
	bpf_program__set_autoload(cfi ? bpf->progs.switch_stacks_cfi : bpf->progs.switch_stacks,
				  true);
	bpf_program__set_autoload(bpf->progs.prepare_waits, true);
	bpf_program__set_autoload(bpf->progs.end_of_waits, true);
	if (find_interrupts(bpf, types))
		bpf_program__set_autoload(
			cfi ? bpf->progs.waking_stacks_cfi : bpf->progs.waking_stacks, true);
	if (kernel_member_offset(types, "request", "q", &unused) == 0)
		bpf_program__set_autoload(bpf->progs.note_completion, true);
	bpf_program__set_autoload(bpf->progs.find_symbols, true);
	bpf_program__set_autoload(bpf->progs.begin_waits, true);
	bpf_program__set_autoload(bpf->progs.end_waits, true);
	return bpf_map__set_max_entries(bpf->maps.wait_counters, cpus)
		       ?: bpf_map__set_max_entries(bpf->maps.wait_rings, cpus)
		       ?: bpf_map__set_max_entries(bpf->maps.wait_scratch, cpus);
}

int waits_add_walked(struct waits *w, uint32_t slot, uint64_t time_ns, uint32_t kernel_depth,
		     const struct unwind_found *found)
{
	struct waits_read *to = time_ns < w->ended_ns ? &w->ended : &w->now;
	struct waits_walked *walked;

	if (array_reserve(&to->walked, &to->walked_room, to->walked_count + 1, sizeof(*walked)))
		return -ENOMEM;
	walked = &to->walked[to->walked_count];
	*walked = (struct waits_walked){
		.slot = slot,
		.depth = found->user_depth,
		.end = found->end,
		.by_frame_pointer = found->by_frame_pointer,
		.pcs = malloc((found->user_depth + 1) * sizeof(*walked->pcs)),
	};
	if (!walked->pcs)
		return -ENOMEM;
	memcpy(walked->pcs, found->pcs + kernel_depth, found->user_depth * sizeof(*walked->pcs));
	to->walked_count++;
	return 0;
}

/*
 * Walks the stack of a thread that waits. A thread that goes on meanwhile overwrites it: then its
 * wait has ended, and the stack is dropped.
 */
static int walk_before(struct waits *w, const struct wait_before *from, struct unwind *unwind,
		       struct unwind_copy *copy)
{
	const struct process *process = process_find(unwind->processes, sample_id_tgid(from->id));
	const struct opener_memory memory = {
		.opener = &unwind->processes->opener,
		.target.pid = sample_id_tgid(from->id),
		.target.uid =
			process && process->uid != UINT32_MAX ? process_user(process) : UINT32_MAX,
	};
	size_t most = sizeof(copy->bytes);
	struct unwind_found found;
	ssize_t size;

	copy->time_ns = now_ns();
	copy->id = copy->process = from->id;
	memcpy(copy->registers, from->registers, sizeof(copy->registers));
	copy->begin = from->registers[UNWIND_SP_NUMBER];
	do { /* up to the end of the stack */
		size = opener_read_memory(&memory, copy->begin, copy->bytes, most);
		most /= 2;
	} while (size == -EFAULT && most >= 64);
	copy->size = MAX(size, 0);
	if (unwind_walk(unwind, copy, &memory, from->thread_pointer, &found))
		return -ENOMEM;
	if (from->slot < WAIT_KINDS || !copy->size ||
	    __atomic_load_n(&w->entries[from->slot].count, __ATOMIC_ACQUIRE))
		return 0;
	return waits_add_walked(w, from->slot, copy->time_ns, 0, &found);
}

/*
 * Runs an iterator for each thread of the machine. *all receives what it writes, which the caller
 * free()s: *count structures of this size. Returns 0 or -errno.
 */
static int run_for_each(int link, size_t one, void *all, size_t *count)
{
	int fd = bpf_iter_create(link), err = fd < 0 ? fd : 0;
	const size_t step = 8192;
	char *bytes = NULL;
	size_t room = 0, size = 0;
	ssize_t n = 1;

	while (!err && n) {
		if (array_reserve(&bytes, &room, size + step, 1)) {
			err = -ENOMEM;
			break;
		}
		n = read(fd, bytes + size, step);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			err = -errno;
		size += MAX(n, 0);
	}
	if (fd >= 0)
		close(fd);
	*(char **)all = bytes;
	*count = size / one;
	return err;
}

static int attach_iterator(const struct bpf_program *program, int *link)
{
	int fd = bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, NULL);

	if (fd >= 0)
		*link = fd;
	return fd < 0 ? fd : 0;
}

int waits_attach(struct waits *w, const struct sample_bpf *bpf, bool cfi, size_t cpus,
		 struct error *e)
{
	const struct {
		const struct bpf_program *program;
		int *fd;
	} programs[] = {
		{ cfi ? bpf->progs.switch_stacks_cfi : bpf->progs.switch_stacks, &w->program },
		{ bpf->progs.prepare_waits, &w->forks },
		{ bpf->progs.end_of_waits, &w->exits },
		{ cfi ? bpf->progs.waking_stacks_cfi : bpf->progs.waking_stacks, &w->waking },
		{ bpf->progs.note_completion, &w->completions },
	};
	int err, fd;

	w->position = bpf->rodata->wait_position;
	w->words = bpf->rodata->wait_words;
	w->window = &bpf->bss->wait_window;
	w->paused = &bpf->bss->waits_paused;
	w->clock_offset = (volatile int64_t *)&bpf->bss->wait_clock_offset;
	w->cpus = cpus;
	w->entries = program_map(bpf->maps.waits);
	w->wakes = program_map(bpf->maps.wakes);
	w->peers = program_map(bpf->maps.wait_peers);
	w->shares = program_map(bpf->maps.wait_shares);
	w->counters = program_map(bpf->maps.wait_counters);
	w->rings = program_map(bpf->maps.wait_rings);
	if (!w->entries || !w->wakes || !w->peers || !w->shares || !w->counters || !w->rings)
		return program_out_of(e, errno, "cannot map the waits of the BPF program");
	w->timed_max = memory_available() / TIMES_SHARE / sizeof(*w->now.timed);
	find_interrupt_code(bpf);
	err = attach_iterator(bpf->progs.begin_waits, &w->begin);
	err = err ?: attach_iterator(bpf->progs.end_waits, &w->end);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs) && !err; i++) {
		if (!bpf_program__autoload(programs[i].program))
			continue;
		fd = program_attach(programs[i].program);
		if (fd < 0)
			err = fd;
		else
			*programs[i].fd = fd;
	}
	return err ? error_set(e, -err, "cannot follow the switches from thread to thread") : 0;
}

/* What has no room is in the sums alone. Returns 0 or -ENOMEM. */
static int add_timed(struct waits *w, struct waits_read *to, const struct wait_record *record,
		     uint32_t cpu, int64_t clock_offset)
{
	if (to->timed_count == w->timed_max) {
		to->untimed_count++;
		return 0;
	}
	if (array_add(to->timed, to->timed_count, to->timed_room,
		      (struct waits_timed){ record->end_ns - clock_offset, record->blocked_ns,
					    record->runnable_ns, record->slot,
					    wait_ends_waker(record->ends),
					    wait_ends_whom(record->ends), cpu }))
		return -ENOMEM;
	return 0;
}

int waits_begin(struct waits *w, int64_t clock_offset, struct unwind *unwind, struct error *e)
{
	struct unwind_copy *copy = unwind ? calloc(1, sizeof(*copy)) : NULL;
	struct wait_before *all = NULL;
	size_t count = 0, walks = 0;
	int err = unwind && !copy ? -ENOMEM : 0;

	*w->clock_offset = clock_offset;
	err = err ?: run_for_each(w->begin, sizeof(*all), &all, &count);
	for (size_t i = 0; !err && i < count; i++) {
		if (all[i].ended.end_ns)
			err = add_timed(w, &w->now, &all[i].ended, TIMED_NO_CPU, clock_offset);
		else if (unwind && (!*w->window || walks++ < WALKS_MAX))
			err = walk_before(w, &all[i], unwind, copy);
	}
	free(all);
	free(copy);
	return err ? error_set(e, -err, "cannot list the threads that wait") : 0;
}

int waits_read(struct waits *w, int64_t clock_offset)
{
	int err = 0;

	for (size_t cpu = 0; cpu < w->cpus && !err; cpu++) {
		struct wait_ring *from = &w->rings[cpu];
		uint64_t written = __atomic_load_n(&from->written, __ATOMIC_ACQUIRE);
		uint64_t read = from->read;

		for (; read < written && !err; read++)
			err = add_timed(w, &w->now, &from->records[read % WAIT_RECORDS], cpu,
					clock_offset);
		__atomic_store_n(&from->read, read, __ATOMIC_RELEASE);
	}
	return err;
}

/*
 * Adds `ns` of waits to the samples. *number receives the sample's number; TICK_REMOVED if there
 * was none.
 */
static int add_entry(const struct waits *w, uint32_t slot, uint64_t ns, uint16_t reason,
		     uint32_t ends, const struct stack *stack, const uint64_t *pcs,
		     struct counts *counts, uint32_t *number)
{
	const struct wait_entry *entry = &w->taken.entries[slot];
	struct counted wait = {
		.id = stack->id,
		.first_ns = entry->first_ns,
		.count = ns,
		.waiting = entry->count,
		.kernel_depth = stack->kernel_depth,
		.user_depth = stack->user_depth,
		.end = stack->end,
		.by_frame_pointer = stack->by_frame_pointer,
		.cpu = reason,
		.context = stack->context,
		.waker = wait_ends_waker(ends),
		.whom = wait_ends_whom(ends),
		.entry = slot,
	};

	*number = TICK_REMOVED;
	return ns ? counts_add(counts, &wait, pcs, number) : 0;
}

ORDER(compare_slots, struct waits_walked, LEAST(slot))

static void free_read(struct waits_read *r)
{
	for (size_t i = 0; i < r->walked_count; i++)
		free(r->walked[i].pcs);
	free(r->walked);
	free(r->timed);
	*r = (struct waits_read){ 0 };
}

static void free_taken(struct waits_window *taken)
{
	free(taken->entries);
	free(taken->wakes);
	free(taken->peers);
	free(taken->shares);
	*taken = (struct waits_window){ 0 };
}

/* Copies so many bytes of a map, and clears them. */
static void *take(void *from, size_t size)
{
	void *copy = malloc(size);

	if (copy)
		memcpy(copy, from, size);
	memset(from, 0, size);
	return copy;
}

int waits_end(struct waits *w, int64_t clock_offset, struct stack_chunk *arena, bool last,
	      const struct program_barrier *barrier, struct error *e)
{
	uint64_t part = w->position + ((*w->window + 1) & 1) * w->words;
	struct waits_window *taken = &w->taken;
	struct wait_record *all = NULL;
	size_t count = 0;
	int err;

	free_read(&w->ended);
	free_taken(taken);
	*w->paused = 1;
	*w->clock_offset = clock_offset;
	err = program_barrier_wait(barrier) ?: run_for_each(w->end, sizeof(*all), &all, &count);
	for (size_t i = 0; i < count && !err; i++)
		err = add_timed(w, &w->now, &all[i], TIMED_NO_CPU, clock_offset);
	free(all);
	err = err ?: waits_read(w, clock_offset);
	w->ended = w->now;
	w->now = (struct waits_read){ 0 };
	w->ended_ns = now_ns();
	for (size_t i = 0; i < w->cpus; i++) {
		taken->counters.waits += w->counters[i].waits;
		taken->counters.walks += w->counters[i].walks;
		taken->counters.spared += w->counters[i].spared;
		taken->counters.no_storage += w->counters[i].no_storage;
		taken->counters.timed += w->counters[i].timed;
		taken->counters.timed_ns += w->counters[i].timed_ns;
		taken->counters.wakes_lost += w->counters[i].wakes_lost;
		taken->counters.records_lost += w->counters[i].records_lost;
		taken->counters.calls_lost += w->counters[i].calls_lost;
	}
	taken->counters.records_lost += w->ended.untimed_count;
	memset(w->counters, 0, w->cpus * sizeof(*w->counters));
	taken->entries = take(w->entries, WAIT_ENTRIES * sizeof(*w->entries));
	taken->wakes = take(w->wakes, WAKE_ENTRIES * sizeof(*w->wakes));
	taken->peers = take(w->peers, WAIT_ENTRIES * sizeof(*w->peers));
	taken->shares = take(w->shares, WAIT_SHARES * sizeof(*w->shares));
	if (!taken->entries || !taken->wakes || !taken->peers || !taken->shares)
		err = -ENOMEM;
	if (last) {
		close(w->program);
		if (w->waking)
			close(w->waking);
		if (w->completions)
			close(w->completions);
		w->program = w->waking = w->completions = 0;
	} else {
		arena[part / STACK_CHUNK_WORDS].words[part % STACK_CHUNK_WORDS] = 0;
		++*w->window;
		*w->paused = 0;
	}
	return err ? error_set(e, -err, "cannot read the waits that are under way") : 0;
}

ORDER(compare_wakes, struct wake_entry, LEAST(key))

/* A sample of an entry's blocked time: that which has these ends. */
struct wait_part {
	uint32_t ends, number; /* wait_ends(), and the sample's number in counts */
	uint64_t left_ns;      /* of it, no time is known yet */
};

ORDER(compare_parts, struct wait_part, LEAST(ends))

static uint32_t cpu_of(const struct waits_timed *t)
{
	return t->cpu == TIMED_NO_CPU ? WAIT_NO_CPU : t->cpu;
}

/*
 * Adds when a thread was blocked to the parts of its entry, of which the last one has no ends and
 * the others are in the order of theirs: to that with its ends, and where these are unknown or it
 * has no more, to the last one and then to the others.
 */
static int add_blocked(struct counts *counts, const struct waits_timed *t, struct wait_part *parts,
		       size_t count)
{
	uint64_t since_ns = t->end_ns - t->runnable_ns - t->blocked_ns, left_ns = t->blocked_ns;
	const struct wait_part key = { .ends = wait_ends(t->waker, t->whom) };
	struct wait_part *part = NULL;
	uint32_t cpu = cpu_of(t);
	size_t left = count; /* that were not tried, from the last one on */
	int err = 0;

	if (count && key.ends)
		part = bsearch(&key, parts, count - 1, sizeof(*parts), compare_parts);
	while (left_ns && !err) {
		uint64_t ns;

		if (!part && !left)
			break;
		if (!part)
			part = &parts[--left];
		ns = MIN(part->left_ns, left_ns);
		if (ns)
			err = wait_list_add(&counts->waits, part->number, since_ns, ns, cpu);
		part->left_ns -= ns;
		left_ns -= ns;
		since_ns += ns;
		part = NULL;
	}
	return err;
}

static uint32_t reason_of_entry(const struct stack_chunk *arena, const struct wait_entry *entry,
				uint32_t number)
{
	uint64_t at = entry->position;
	const struct stack *stack =
		(const void *)&arena[at / STACK_CHUNK_WORDS].words[at % STACK_CHUNK_WORDS];

	return at ? stack->cpu & WAIT_REASON_MASK : number;
}

/*
 * How long threads waited for their creators is measured by two clocks, which are not read at once:
 * a microsecond or two too long. It is no more than other reasons leave of the account.
 */
static void limit_starts(struct waits *w, const struct stack_chunk *arena, uint64_t blocked_ns)
{
	uint64_t starts_ns = 0, others_ns = 0, left_ns;

	for (uint32_t i = 0; i < WAIT_ENTRIES; i++) {
		uint32_t reason = reason_of_entry(arena, &w->taken.entries[i], i);

		if (reason == WAIT_START)
			starts_ns += w->taken.entries[i].blocked_ns;
		else if (reason < WAIT_REASONS)
			others_ns += w->taken.entries[i].blocked_ns;
	}
	left_ns = blocked_ns > others_ns ? blocked_ns - others_ns : 0;
	if (starts_ns <= left_ns)
		return;
	for (uint32_t i = 0; i < WAIT_ENTRIES; i++)
		if (reason_of_entry(arena, &w->taken.entries[i], i) == WAIT_START)
			w->taken.entries[i].blocked_ns *= (double)left_ns / starts_ns;
	/* Those whom creators woke took as much. */
	for (uint32_t i = 0; i < WAKE_ENTRIES; i++) {
		struct wake_entry *wake = &w->taken.wakes[i];
		uint32_t number = wake->key >> 32, waker = wait_ends_waker(wake->key);
		uint64_t before_ns = wake->blocked_ns;

		if (!before_ns || number >= WAIT_ENTRIES || waker >= WAIT_ENTRIES ||
		    reason_of_entry(arena, &w->taken.entries[number], number) != WAIT_START)
			continue;
		wake->blocked_ns *= (double)left_ns / starts_ns;
		if (waker)
			w->taken.entries[waker].blocked_ns -= before_ns - wake->blocked_ns;
	}
}

int waits_take(struct waits *w, const struct stack_chunk *arena, uint64_t blocked_ns,
	       struct counts *counts, struct counts *wakers)
{
	/* Of each entry: its first part, and the number of its sample that was runnable. */
	struct entry_samples {
		size_t first;
		uint32_t runnable;
	} *samples = calloc(WAIT_ENTRIES + 1, sizeof(*samples));
	size_t next = 0, next_wake = 0, part_count = 0, part_room = 0;
	struct wait_part *parts = NULL;
	uint32_t number;
	int err = samples ? 0 : -ENOMEM;

	limit_starts(w, arena, blocked_ns);
	qsort(w->taken.wakes, WAKE_ENTRIES, sizeof(*w->taken.wakes), compare_wakes);
	if (w->ended.walked_count)
		qsort(w->ended.walked, w->ended.walked_count, sizeof(*w->ended.walked),
		      compare_slots);
	for (size_t i = 0; i < WAIT_ENTRIES && !err; i++) {
		const struct wait_entry *entry = &w->taken.entries[i];
		const struct wait_record kept = { entry->kept_end_ns, entry->kept_blocked_ns,
						  entry->kept_runnable_ns, i, 0 };
		uint64_t position = entry->position, left_ns = entry->blocked_ns;
		const struct stack_chunk *chunk = &arena[position / STACK_CHUNK_WORDS];
		const struct stack *stack;
		const uint64_t *pcs;
		uint64_t joined[2 * STACK_DEPTH_MAX];
		struct stack head = { .id = SAMPLE_ID_VALID, .cpu = i };

		samples[i].first = part_count;
		if (!entry->count)
			continue;
		stack = (const struct stack *)&chunk->words[position % STACK_CHUNK_WORDS];
		if (position)
			memcpy(&head, stack, offsetof(struct stack, pcs));
		pcs = (const uint64_t *)stack->pcs;
		if (head.cpu & WAIT_COPIED) {
			head.cpu &= ~WAIT_COPIED;
			head.user_depth = 0;
		}
		while (next < w->ended.walked_count && w->ended.walked[next].slot < i)
			next++;
		if (next < w->ended.walked_count && w->ended.walked[next].slot == i) {
			head.user_depth = w->ended.walked[next].depth;
			head.end = w->ended.walked[next].end;
			head.by_frame_pointer = w->ended.walked[next].by_frame_pointer;
			memcpy(joined, pcs, head.kernel_depth * sizeof(*pcs));
			memcpy(joined + head.kernel_depth, w->ended.walked[next].pcs,
			       head.user_depth * sizeof(*pcs));
			pcs = joined;
		}
		if ((head.cpu & WAIT_REASON_MASK) >= WAKER_THREAD) {
			err = add_entry(w, i, left_ns, head.cpu, i, &head, pcs, wakers, &number);
			continue;
		}
		while (next_wake < WAKE_ENTRIES && w->taken.wakes[next_wake].key < wake_key(i, 0))
			next_wake++;
		for (bool last = false; !last && !err; next_wake += !last) {
			const struct wake_entry *wake = &w->taken.wakes[next_wake];
			struct wait_part part = { .left_ns = left_ns }; /* the rest: unknown */

			last = next_wake == WAKE_ENTRIES || wake->key >> 32 != i;
			if (!last) {
				part.ends = wake->key;
				part.left_ns =
					wake->blocked_ns < left_ns ? wake->blocked_ns : left_ns;
			}
			left_ns -= part.left_ns;
			err = add_entry(w, i, part.left_ns, head.cpu, part.ends, &head, pcs, counts,
					&part.number);
			err = err ?: array_add(parts, part_count, part_room, part);
		}
		err = err
			      ?: add_entry(w, i, entry->runnable_ns, WAIT_CPU, 0, &head, pcs,
					   counts, &samples[i].runnable);
		if (!err && kept.end_ns)
			err = add_timed(w, &w->ended, &kept, TIMED_NO_CPU, *w->clock_offset);
	}
	if (samples)
		samples[WAIT_ENTRIES].first = part_count;
	for (size_t i = 0; i < w->ended.timed_count && !err; i++) {
		const struct waits_timed *t = &w->ended.timed[i];
		size_t first = samples[t->slot].first;

		err = add_blocked(counts, t, parts + first, samples[t->slot + 1].first - first);
		if (t->runnable_ns && !err)
			err = wait_list_add(&counts->waits, samples[t->slot].runnable,
					    t->end_ns - t->runnable_ns, t->runnable_ns, cpu_of(t));
	}
	free(samples);
	free(parts);
	return err;
}

uint64_t waits_no_room(const struct waits *w, struct wait_share *most)
{
	uint64_t sum = 0;

	*most = (struct wait_share){ 0 };
	for (size_t i = 0; w->taken.entries && i < WAIT_REASONS; i++)
		sum += w->taken.entries[i].count;
	for (size_t i = 0; w->taken.shares && i < WAIT_SHARES; i++) {
		sum += w->taken.shares[i].refused;
		if (w->taken.shares[i].refused > most->refused)
			*most = w->taken.shares[i];
	}
	return sum;
}

void waits_free(struct waits *w, const struct sample_bpf *bpf)
{
	const int links[] = { w->program,     w->forks, w->exits, w->waking,
			      w->completions, w->begin, w->end };

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (links[i])
			close(links[i]);
	free_read(&w->now);
	free_read(&w->ended);
	free_taken(&w->taken);
	program_unmap(bpf->maps.waits, w->entries);
	program_unmap(bpf->maps.wakes, w->wakes);
	program_unmap(bpf->maps.wait_peers, w->peers);
	program_unmap(bpf->maps.wait_shares, w->shares);
	program_unmap(bpf->maps.wait_counters, w->counters);
	program_unmap(bpf->maps.wait_rings, w->rings);
	*w = (struct waits){ 0 };
}
