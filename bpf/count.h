/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the programs on a tick count, whatever it is that ticks: pcs or call stacks, per thread and
 * mode.
 */
#ifndef PROFIL_BPF_COUNT_H
#define PROFIL_BPF_COUNT_H

#include "members.h"
#include "sample.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by user space before the load. */
const volatile __u32 sides = 0;			      /* SAMPLE_USER, ... */
const volatile __u64 arena_words = STACK_ARENA_WORDS; /* how much of the arena is used */
const volatile __u64 hash_bits = ~0ULL;		      /* of a stack's hash: those that are used */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SAMPLE_BUCKETS);
	__type(key, __u32);
	__type(value, struct sample_bucket);
} table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs; set before the load */
	__type(key, __u32);
	__type(value, struct sample_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SAMPLE_RING_BYTES);
} ring SEC(".maps");

/* Of the programs that count call stacks, instead of table. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SAMPLE_BUCKETS);
	__type(key, __u32);
	__type(value, struct stack_bucket);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STACK_CHUNKS);
	__type(key, __u32);
	__type(value, struct stack_chunk);
} arena SEC(".maps");

/*
 * Counters need no atomic adds: the kernel runs no second perf_event program on a CPU while one
 * runs there (bpf_prog_active), from an NMI neither; nor does the scheduler's tick interrupt
 * itself.
 */
static struct sample_counters *cpu_counters(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&counters, &cpu);
}

/*
 * Whose tick it is and in which mode, as in sample.h; 0: it is none that is to be counted. The tick
 * of a stranger ends here.
 */
static __always_inline __u64 id_of_tick(struct task_struct *task, bool kernel)
{
	struct sample_counters *counter;
	const struct member *member;
	__u32 tgid, tid;

	if (!everyone) {
		charge_exits_on_tick();
		if (!may_be_member(task))
			return 0;
	}
	tgid = tgid_of(task);
	tid = tid_of(task);
	if (!everyone) {
		member = find_member(one_thread ? tid : tgid);
		if (!member || member->state != MEMBER_COUNTS)
			return 0;
	}
	if (!(sides & (kernel ? SAMPLE_KERNEL : SAMPLE_USER))) {
		counter = cpu_counters();
		if (counter)
			counter->excluded++;
		return 0;
	}
	return sample_id_make(task->self_exec_id, tgid, tid) | (kernel ? SAMPLE_ID_KERNEL : 0);
}

/* Where a tick in the kernel is counted in user space; 0: at the kernel's own pc. */
static __u64 entering_pc(struct task_struct *task)
{
	if (sides & SAMPLE_KERNEL_PC || task->flags & PF_KTHREAD)
		return 0;
	/* 0 for a thread without a user side (io_uring workers), too. */
	return ((struct pt_regs *)bpf_task_pt_regs(task))->ip;
}

/*
 * Several CPUs may look for a place at once; none ever waits. Who swaps its pc into an empty place
 * owns it and writes the id next; others pass over a place whose id is not there yet, and so may
 * take a second one for the same pc, which the reader sums.
 */
static bool count_in_bucket(struct sample_bucket *bucket, __u64 pc, __u64 id)
{
	for (int i = 0; i < SAMPLE_PER_BUCKET; i++) {
		struct sample *sample = &bucket->samples[i];

		if (sample->pc == pc && sample->id == id) {
			__sync_fetch_and_add(&sample->count, 1);
			return true;
		}
		if (sample->pc == 0 && __sync_val_compare_and_swap(&sample->pc, 0, pc) == 0) {
			sample->first_ns = bpf_ktime_get_ns();
			__sync_fetch_and_add(&sample->count, 1);
			sample->id = id;
			return true;
		}
	}
	return false;
}

static bool count_in_table(__u64 pc, __u64 id)
{
	__u32 home = ((pc ^ id * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93) >> 32;

	for (__u32 i = 0; i < SAMPLE_PROBES; i++) {
		__u32 key = (home + i) & (SAMPLE_BUCKETS - 1);
		struct sample_bucket *bucket = bpf_map_lookup_elem(&table, &key);

		if (!bucket)
			return false;
		if (i == 0)
			__sync_fetch_and_add(&bucket->ticks, 1);
		/* pc 0, a jump to NULL, would look like an empty place: it goes the other way */
		if (pc && count_in_bucket(bucket, pc, id))
			return true;
	}
	return false;
}

/* User space also looks by the clock: it is woken only when the ring buffer fills up. */
static __u64 ring_wakeup(__u32 size)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > size / 4 ? BPF_RB_FORCE_WAKEUP
								      : BPF_RB_NO_WAKEUP;
}

/* The way out when the table is full. */
static bool send_through_ring(__u64 pc, __u64 id)
{
	struct sample *sample = bpf_ringbuf_reserve(&ring, sizeof(*sample), 0);

	if (!sample)
		return false;
	sample->pc = pc;
	sample->id = id;
	sample->first_ns = bpf_ktime_get_ns();
	sample->count = 1;
	bpf_ringbuf_submit(sample, ring_wakeup(SAMPLE_RING_BYTES));
	return true;
}

static void count_sent(bool sent)
{
	struct sample_counters *counter = cpu_counters();

	if (!counter)
		return;
	if (sent)
		counter->ring++;
	else
		counter->ring_full++;
}

static __always_inline void count_pc(__u64 pc, __u64 id)
{
	if (!count_in_table(pc, id))
		count_sent(send_through_ring(pc, id));
}

/* --- Call stacks --- */

/* What the verifier could not follow within all that surrounds it are global functions. */

__noinline __u64 hash_stack(struct stack *stack)
{
	const __u64 *words = (const __u64 *)stack;
	__u64 hash = 0;
	__u32 count;

	if (!stack)
		return 0;
	count = stack_words(stack);
	for (__u32 i = 0; i < STACK_WORDS_MAX && i < count; i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	return (hash & hash_bits) | 1; /* 0 is an empty entry */
}

static __u64 *words_at(__u64 place)
{
	__u32 key = place / STACK_CHUNK_WORDS;
	struct stack_chunk *chunk = bpf_map_lookup_elem(&arena, &key);

	return chunk ? &chunk->words[place % STACK_CHUNK_WORDS] : NULL;
}

__noinline int is_stack_at(struct stack *stack, __u64 place)
{
	const __u64 *there = words_at(place), *words = (const __u64 *)stack;
	__u32 count;

	if (!stack || !there)
		return 0;
	count = stack_words(stack);
	for (__u32 i = 0; i < STACK_WORDS_MAX && i < count; i++)
		if (words[i] != there[i])
			return 0;
	return 1;
}

__noinline int write_stack(struct stack *stack, __u64 place)
{
	const __u64 *words = (const __u64 *)stack;
	__u64 *there = words_at(place);
	__u32 count;

	if (!stack || !there)
		return 0;
	count = stack_words(stack);
	for (__u32 i = 0; i < STACK_WORDS_MAX && i < count; i++)
		there[i] = words[i];
	return 1;
}

static bool arena_has_room(const __u64 *used)
{
	return *used + STACK_WORDS_MAX < arena_words;
}

/* Fills in an entry that this CPU has claimed. */
static bool add_stack(struct stack_entry *entry, struct stack *stack, __u64 *used)
{
	__u64 place = __sync_fetch_and_add(used, stack_words(stack)) + 1;

	if (!write_stack(stack, place)) /* others have just taken the last room */
		return false;
	entry->first_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&entry->count, 1);
	entry->place = place;
	return true;
}

/* As count_in_bucket(). */
static __always_inline bool count_in_stack_bucket(struct stack_bucket *bucket, struct stack *stack,
						  __u64 hash, __u64 *used)
{
	for (int i = 0; i < SAMPLE_PER_BUCKET; i++) {
		struct stack_entry *entry = &bucket->entries[i];

		if (entry->hash == hash && entry->place && is_stack_at(stack, entry->place)) {
			__sync_fetch_and_add(&entry->count, 1);
			return true;
		}
		if (entry->hash == 0 && arena_has_room(used) &&
		    __sync_val_compare_and_swap(&entry->hash, 0, hash) == 0)
			return add_stack(entry, stack, used);
	}
	return false;
}

static __always_inline bool count_in_stacks(struct stack *stack)
{
	__u64 hash = hash_stack(stack), *used = words_at(0);
	__u32 home = hash >> 32;

	if (!used)
		return false;
	for (__u32 i = 0; i < SAMPLE_PROBES; i++) {
		__u32 key = (home + i) & (SAMPLE_BUCKETS - 1);
		struct stack_bucket *bucket = bpf_map_lookup_elem(&stacks, &key);

		if (!bucket)
			return false;
		if (i == 0)
			__sync_fetch_and_add(&bucket->ticks, 1);
		if (count_in_stack_bucket(bucket, stack, hash, used))
			return true;
	}
	return false;
}

/*
 * A thread in a system call goes on behind the instruction that made it, as behind a call. One that
 * an interrupt or a fault has stopped goes on at the very instruction: add 1, which user space is
 * going to take off all callers.
 */
static __always_inline void mark_interrupted(__u64 *user_pc)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if ((long)regs->orig_ax < 0)
		++*user_pc;
}

/* The stack's frames take that many bytes. */
static __always_inline void count_stack(struct stack_sample *sample, long size)
{
	if (count_in_stacks(&sample->stack))
		return;
	sample->time_ns = bpf_ktime_get_ns();
	size += offsetof(struct stack_sample, stack.pcs);
	count_sent(bpf_ringbuf_output(&ring, sample, size, ring_wakeup(STACK_RING_BYTES)) == 0);
}

/* --- Its cost --- */

static void count_time(__u64 start)
{
	struct sample_counters *counter;
	__u64 run_ns = bpf_ktime_get_ns() - start;

	counter = cpu_counters();
	if (!counter)
		return;
	counter->timed++;
	counter->timed_ns += run_ns;
}

/*
 * Ticks in one jiffy out of 8 are timed: to read the clock at every tick would cost about as much
 * as all the rest, and to count ticks for it another cache line.
 */
static __u64 begin_timing(void)
{
	return bpf_jiffies64() % 8 ? 0 : bpf_ktime_get_ns();
}

#endif
