// SPDX-License-Identifier: GPL-2.0-only
/* On a tick of a perf event: profil(2)'s offset and scale, for the one process that has the event.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "cell.h"
#include "profil.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * The process that is counted: its own pid namespace, and its number there; set by user space
 * before the load. Not in the state, which the process can write.
 */
const volatile __u64 namespace_device = 0;
const volatile __u64 namespace_inode = 0;
const volatile __u32 tgid = 0;

/* How ticks are to be counted. */
struct settings {
	bool timing;	    /* take the program's run time */
	bool churning;	    /* a thread can have two tick events */
	__u32 generation;   /* then: user/capture/attach.h */
	__u32 search_steps; /* to halve the ranges until none is left; 0: there is one, in the state
			     */
};

/* For profil_with_settings, set by user space before the load. */
const volatile bool all_processes = false; /* that have the event: children are counted, too */
const volatile bool timing = false;
const volatile bool churning = false;
const volatile __u32 generation = 0;
const volatile __u32 search_steps = 0;

/* A map of its own, which needs no lookup. */
struct profil_state state SEC(".data.state");

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
static __u64 user_pc(const struct bpf_perf_event_data *ctx, bool kernel)
{
	__u64 pc = ctx->regs.ip;

	barrier_var(pc); /* the verifier wants this load apart from the other */
	if (kernel) {
		const void *regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());

		pc = ((const struct user_pt_regs *)regs)->ip;
	}
	return pc;
}

/* The last range that begins at or before pc. */
static const struct profil_range *search(__u64 pc, __u32 steps)
{
	const struct profil_range *range, *found = NULL;
	__u32 low = 0, high = state.range_count;

	for (__u32 i = 0; i < 16 && i < steps && low < high; i++) {
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
	return found;
}

/* Whether a program of a lower generation ticks this thread as well: only that one counts then. */
static bool is_double(__u32 mine)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u32 *known = bpf_map_lookup_elem(&lowest, &tid);

	if (known && *known < mine)
		return true;
	if (!known || *known > mine)
		bpf_map_update_elem(&lowest, &tid, &mine, BPF_ANY);
	return false;
}

static void set_dirty(__u32 cell)
{
	__u32 bit = cell >> (state.dirty_shift & 31);
	__u64 *word = &state.dirty[bit / 64 & (PROFIL_DIRTY_WORDS - 1)];
	__u64 mask = 1ULL << (bit & 63);

	if (!(*word & mask))
		__sync_fetch_and_or(word, mask);
}

static void count(__u64 pc, const struct profil_range *range, bool kernel)
{
	__u64 number = cell_index(pc - range->offset, range->scale) >> (range->wide & 1);
	__u32 cell = range->base + number;
	__u64 *cell_count = bpf_map_lookup_elem(&cells, &cell);

	if (!cell_count) {
		__sync_fetch_and_add(&state.lost, 1);
		return;
	}
	__sync_fetch_and_add(cell_count, 1);
	if (kernel)
		__sync_fetch_and_add(&state.kernel, 1);
	set_dirty(cell);
}

static __always_inline void count_tick(const struct bpf_perf_event_data *ctx,
				       struct settings settings)
{
	bool kernel = (ctx->regs.cs & 3) == 0;
	const struct profil_range *range;
	__u64 pc;

	if (settings.churning && state.in_doubt && is_double(settings.generation)) {
		__sync_fetch_and_add(&state.doubles, 1);
		return;
	}
	__sync_fetch_and_add(&state.ticks, 1);
	pc = user_pc(ctx, kernel);
	range = settings.search_steps ? search(pc, settings.search_steps) : &state.range;
	if (range && pc >= range->first && pc <= range->last)
		count(pc, range, kernel);
	else
		__sync_fetch_and_add(&state.out_of_range, 1);
}

/*
 * Whether it is the process that is counted. Events are opened on numbers of threads, and a number
 * may have become another's. Not inlined: its place on the stack has the verifier take 1000 times
 * as long for search().
 */
__noinline int is_counted(void)
{
	struct bpf_pidns_info numbers;

	return !bpf_get_ns_current_pid_tgid(namespace_device, namespace_inode, &numbers,
					    sizeof(numbers)) &&
	       numbers.tgid == tgid;
}

static __always_inline int tick(const struct bpf_perf_event_data *ctx, struct settings settings)
{
	/* Ticks of one jiffy in 8 are timed, as in sample.bpf.c. */
	__u64 start = !settings.timing || bpf_jiffies64() % 8 ? 0 : bpf_ktime_get_ns();

	if (!state.range_count)
		return 0;
	count_tick(ctx, settings);
	if (start) {
		__sync_fetch_and_add(&state.timed, 1);
		__sync_fetch_and_add(&state.timed_ns, bpf_ktime_get_ns() - start);
	}
	return 0; /* no perf ring buffer record */
}

/* The usual settings are compiled in: to read them would cost a tick another cache line. */
SEC("perf_event")
int profil(struct bpf_perf_event_data *ctx)
{
	return is_counted() ? tick(ctx, (struct settings){ 0 }) : 0;
}

SEC("?perf_event")
int profil_with_settings(struct bpf_perf_event_data *ctx)
{
	if (!all_processes && !is_counted())
		return 0;
	return tick(ctx, (struct settings){ timing, churning, generation, search_steps });
}
