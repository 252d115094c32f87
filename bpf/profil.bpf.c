// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs at each tick of a CPU's perf event, or of the scheduler: counts the pc by profil(2)'s offset
 * and scale in each histogram ("client") of the interrupted process. One clock serves many
 * processes; each client has its own memory, shared with user space.
 */
#include "cell.h"
#include "members.h"
#include "order.h"
#include "profil.h"
#include "tick.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * Both by client number. Here: whose ticks it counts; below: its memory.
 * Bound: as PROFIL_CLIENTS.
 */
MAP(HASH, entries, PROFIL_CLIENTS, __u32, struct profil_client_entry);

/* Bound: as PROFIL_CLIENTS. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, PROFIL_CLIENTS);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
			__uint(max_entries, 1); /* or more */
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct profil_page));
		});
} clients SEC(".maps");

static __always_inline const struct profil_range *range_at(void *pages, __u32 number)
{
	__u32 key = 1 + number / PROFIL_PAGE_RANGES;
	const struct profil_page *page = bpf_map_lookup_elem(pages, &key);

	if (!page)
		return NULL;
	barrier_var(page); /* the verifier wants the check before the arithmetic */
	return (const struct profil_range *)page + number % PROFIL_PAGE_RANGES;
}

struct search {
	__u32 low, high, middle, unused; /* the first range above pc is in [low, high] */
	__u64 pc;
};

/*
 * One step of the search; `first`: the start of the middle range. Returns whether to go on. It is a
 * global function so that the verifier forgets what it did: else it would follow every path.
 */
__noinline int narrow(struct search *s, __u64 first)
{
	if (!s)
		return 0;
	if (first <= s->pc)
		s->low = s->middle + 1;
	else
		s->high = s->middle;
	s->middle = (s->low + s->high) / 2;
	return s->low < s->high;
}

/* Returns how many ranges start at or below pc. */
static __noinline __u32 search_ranges(void *pages, __u64 pc, __u32 count)
{
	struct search s = { .high = count, .middle = count / 2, .pc = pc };

	/* log2(PROFIL_RANGES) + 1 steps. */
	for (__u32 i = 0; i < 11; i++) {
		const struct profil_range *range = range_at(pages, s.middle);

		if (!range || !narrow(&s, range->first))
			break;
	}
	return s.low;
}

/* A tick, as all clients of its process see it. */
struct tick {
	__u64 pc;    /* in user space */
	__u64 clock; /* as in struct profil_client_entry */
	__u32 process, thread;
};

static void count_in_cell(struct profil_state *state, void *pages, const struct tick *tick,
			  __u32 range_count)
{
	const struct profil_range *range = &state->range; /* of several, the last one up to pc */
	__u32 before, cell, key, bit;
	struct profil_page *page;
	__u64 *word, mask;

	if (range_count > 1) {
		before = search_ranges(pages, tick->pc, range_count);
		range = before ? range_at(pages, before - 1) : NULL;
	}
	if (!range || tick->pc < range->first || tick->pc > range->last) {
		__sync_fetch_and_add(&state->out_of_range, 1);
		return;
	}
	cell = range->base +
	       (cell_index(tick->pc - range->offset, range->scale) >> (range->wide & 1));
	key = profil_first_page(range_count) + cell / PROFIL_PAGE_CELLS;
	page = bpf_map_lookup_elem(pages, &key);
	if (!page || key == 0) {
		__sync_fetch_and_add(&state->lost, 1);
		return;
	}
	add_and_order(&page->cells[cell % PROFIL_PAGE_CELLS], 1); /* before the dirty bit */
	bit = cell >> (state->dirty_shift & 31);
	word = &state->dirty[bit / 64 & (PROFIL_DIRTY_WORDS - 1)];
	mask = 1ULL << (bit & 63);
	if (!(*word & mask))
		__sync_fetch_and_or(word, mask);
}

static void count_for(__u32 client, const struct tick *tick)
{
	void *pages = bpf_map_lookup_elem(&clients, &client);
	struct profil_state *state;
	__u32 range_count, zero = 0;

	state = pages ? bpf_map_lookup_elem(pages, &zero) : NULL;
	if (!state || !state->range_count)
		return;
	add_and_order(&state->ticks, 1); /* see profil.h */
	range_count = *(volatile __u32 *)&state->range_count;
	if (!range_count) {
		__sync_fetch_and_add(&state->ticks, -1);
		return;
	}
	count_in_cell(state, pages, tick, range_count);
	add_and_order(&state->done, 1);
}

/* Counts the tick for a client if it is one of its ticks. Returns the next client; 0: none. */
__noinline int offer(const struct tick *tick, __u32 client)
{
	const struct profil_client_entry *entry = bpf_map_lookup_elem(&entries, &client);

	/* The number may have been given to another process's client meanwhile. */
	if (!tick || !entry || entry->process != tick->process)
		return 0;
	if (entry->clock == tick->clock && (!entry->except || entry->except != tick->thread))
		count_for(client, tick);
	return entry->next;
}

static __always_inline void count_tick(struct task_struct *task, __u64 pc, bool kernel, __u64 clock)
{
	struct tick tick = { .pc = pc, .clock = clock };
	const struct member *member;
	__u32 client;

	tick.process = number_of(task);
	member = find_member(tick.process);
	if (!member || member->state != MEMBER_COUNTS)
		return;
	if (kernel) {
		/* During exec the user pc is already the new program's, which has not run yet. */
		if (BPF_CORE_READ_BITFIELD(task, in_execve))
			return;
		tick.pc = ((struct pt_regs *)bpf_task_pt_regs(task))
				  ->PC_REGISTER; /* where it left user mode */
	}
	tick.thread = tid_of(task);
	client = member->client;
	for (int i = 0; i < PROFIL_CLIENTS_OF_PROCESS; i++) {
		client = offer(&tick, client);
		if (!client)
			break;
	}
}

SEC("?perf_event")
int profil(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (may_be_member(task)) /* first: strangers' ticks cost little */
		count_tick(task, ctx->regs.PC_REGISTER, in_kernel(ctx), ctx->sample_period);
	return 0; /* no perf ring buffer record */
}

SEC("?tp_btf/hrtimer_expire_entry")
int profil_tick(const __u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct interrupted at;

	if (!is_tick(ctx, task, &at))
		return 0;
	if (may_be_member(task))
		count_tick(task, at.pc, at.kernel, PROFIL_SCHEDULER_TICK);
	return 0;
}
