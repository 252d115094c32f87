// SPDX-License-Identifier: GPL-2.0-only
/* On a tick of a perf event: profil(2)'s offset and scale, for the one process that has the event.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "cell.h"
#include "profil.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by user space before the load. */
const volatile __u32 generation = 0; /* user/capture/attach.h */
const volatile bool timing = false;  /* whether to take the program's run time */
/* How often the ranges are to be halved until one is left. Few make the program load faster. */
const volatile __u32 search_steps = 1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profil_state);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before the load */
	__type(key, __u32);
	__type(value, struct profil_range);
} ranges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set before the load */
	__type(key, __u32);
	__type(value, __u64);
} cells SEC(".maps");

/* For threads in doubt: the lowest generation of the program that has ticked a thread. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before the load */
	__type(key, __u32);
	__type(value, __u32);
} lowest SEC(".maps");

/*
 * Where the tick left user mode. struct pt_regs is ABI, so its offsets need no relocation, which
 * would have libbpf read all types of the kernel first: ten times as long as all the rest.
 */
static __u64 user_pc(const struct bpf_perf_event_data *ctx)
{
	bool kernel = (ctx->regs.cs & 3) == 0;
	__u64 pc = ctx->regs.ip;

	barrier_var(pc); /* the verifier wants this load apart from the other */
	if (kernel) {
		const void *regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());

		pc = ((const struct user_pt_regs *)regs)->ip;
	}
	return pc;
}

/* The last range that begins at or before pc. */
static const struct profil_range *find_range(__u64 pc, __u32 count)
{
	const struct profil_range *range, *found = NULL;
	__u32 low = 0, high = count;

	for (__u32 i = 0; i < 16 && i < search_steps && low < high; i++) {
		__u32 middle = (low + high) / 2;

		range = bpf_map_lookup_elem(&ranges, &middle);
		if (!range)
			return NULL;
		if (range->first <= pc) {
			found = range;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found && pc <= found->last ? found : NULL;
}

/* Whether a program of a lower generation ticks this thread as well: only that one counts then. */
static bool is_double(void)
{
	__u32 tid = bpf_get_current_pid_tgid(), mine = generation;
	__u32 *known = bpf_map_lookup_elem(&lowest, &tid);

	if (known && *known < mine)
		return true;
	if (!known || *known > mine)
		bpf_map_update_elem(&lowest, &tid, &mine, BPF_ANY);
	return false;
}

static void set_dirty(struct profil_state *s, __u32 cell)
{
	__u32 bit = cell >> (s->dirty_shift & 31);
	__u64 *word = &s->dirty[bit / 64 & (PROFIL_DIRTY_WORDS - 1)];
	__u64 mask = 1ULL << (bit & 63);

	if (!(*word & mask))
		__sync_fetch_and_or(word, mask);
}

static void count(struct profil_state *s, __u64 pc, const struct profil_range *range)
{
	__u64 number = cell_index(pc - range->offset, range->scale) >> (range->wide & 1);
	__u32 cell = range->base + number;
	__u64 *cell_count = bpf_map_lookup_elem(&cells, &cell);

	if (!cell_count) {
		__sync_fetch_and_add(&s->lost, 1);
		return;
	}
	__sync_fetch_and_add(cell_count, 1);
	set_dirty(s, cell);
}

static void count_tick(const struct bpf_perf_event_data *ctx, struct profil_state *s)
{
	const struct profil_range *range;
	__u64 pc;

	if (s->in_doubt && is_double()) {
		__sync_fetch_and_add(&s->doubles, 1);
		return;
	}
	__sync_fetch_and_add(&s->ticks, 1);
	pc = user_pc(ctx);
	range = find_range(pc, s->range_count);
	if (range)
		count(s, pc, range);
	else
		__sync_fetch_and_add(&s->out_of_range, 1);
}

SEC("perf_event")
int profil(struct bpf_perf_event_data *ctx)
{
	/* Ticks of one jiffy in 8 are timed, as in sample.bpf.c. */
	__u64 start = !timing || bpf_jiffies64() % 8 ? 0 : bpf_ktime_get_ns();
	struct profil_state *s;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&state, &zero);
	if (!s || !s->range_count)
		return 0;
	count_tick(ctx, s);
	if (start) {
		__sync_fetch_and_add(&s->timed, 1);
		__sync_fetch_and_add(&s->timed_ns, bpf_ktime_get_ns() - start);
	}
	return 0; /* no perf ring buffer record */
}
