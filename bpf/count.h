/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the sample programs count a tick of any clock: its pc or its call stack, by thread and mode.
 */
#ifndef PROFIL_BPF_COUNT_H
#define PROFIL_BPF_COUNT_H

#include "cell.h"
#include "members.h"
#include "order.h"
#include "sample.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by user space before the load. */
const volatile __u32 sides = 0;			      /* flags: SAMPLE_USER, ... */
const volatile __u64 arena_words = STACK_ARENA_WORDS; /* of a bank; tests use less of it */
const volatile __u32 bank_buckets = SAMPLE_BUCKETS;   /* a power of two */
const volatile __u64 bank_words = STACK_CHUNK_WORDS;  /* the distance of two banks in the arena */
const volatile __u64 hash_bits = ~0ULL;		      /* tests drop bits of a stack's hash */
const volatile bool notes_cpu = false;		      /* samples of different CPUs differ */
const volatile __u32 victims = SAMPLE_ALL_VICTIMS;    /* enum sample_victims */
const volatile struct sample_cells cells = { 0 };

/* Written by user space at any time: the bank in which ticks count. */
volatile __u32 bank_in_use SEC(".data.banks");

MAPPED_ARRAY(table, SAMPLE_BUCKETS, struct sample_bucket); /* bank_buckets for each bank */

/* Bound: size. */
MAPPED_ARRAY(counters, POSSIBLE_CPUS, struct sample_counters);

RING(ring, SAMPLE_RING_BYTES);

/* Bound: as SAMPLE_TIMES. */
MAPPED_ARRAY(times, POSSIBLE_CPUS, struct sample_times);

/* The programs that record call stacks count in these two, not in `table`. */
MAPPED_ARRAY(stacks, SAMPLE_BUCKETS, struct stack_bucket);

MAPPED_ARRAY(arena, STACK_CHUNKS, struct stack_chunk);

/* A tick reads this once for what it counts, so that all of that is in one bank. */
static __always_inline __u32 current_bank(void)
{
	return bank_in_use & (SAMPLE_BANKS - 1);
}

/* The number of the bucket for a hash. */
static __always_inline __u32 bucket_number(__u32 hash, __u32 bank)
{
	return bank * bank_buckets + (hash & (bank_buckets - 1));
}

/*
 * The counters of a CPU need no atomic adds. While a perf_event program runs on a CPU, the kernel
 * starts no other one there, not even in an NMI (bpf_prog_active), and the scheduler's tick does
 * not interrupt itself.
 */
static struct sample_counters *cpu_counters(__u32 bank)
{
	__u32 key = bpf_get_smp_processor_id() * SAMPLE_BANKS + bank;

	return bpf_map_lookup_elem(&counters, &key);
}

/*
 * Returns the sample ID of the tick (sample.h); 0: not to be counted, as the task is no member or
 * its mode is not recorded.
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
		if (!member || member->state != MEMBER_COUNTS || (has_owner && !is_owners(task)))
			return 0;
	}
	if (!(sides & (kernel ? SAMPLE_KERNEL : SAMPLE_USER))) {
		counter = cpu_counters(current_bank());
		if (counter)
			__sync_fetch_and_add(&counter->excluded, 1);
		return 0;
	}
	return sample_id_make(task->self_exec_id, tgid, tid) | (kernel ? SAMPLE_ID_KERNEL : 0);
}

/* Returns the user pc at which a tick in the kernel is counted; 0: count at the kernel's pc. */
static __u64 entering_pc(struct task_struct *task)
{
	if (sides & SAMPLE_KERNEL_PC || task->flags & PF_KTHREAD)
		return 0;
	/* Also 0 for a thread that never runs in user mode (an io_uring worker). */
	return ((struct pt_regs *)bpf_task_pt_regs(task))->PC_REGISTER;
}

/*
 * Moves a tick to the cell of its pc: both that and its sample ID. Returns false if it does not
 * count there.
 */
static __always_inline bool find_cell(__u64 *pc, __u64 *id)
{
	struct sample_counters *counter;

	if (*pc < cells.first || *pc > cells.last) {
		counter = cpu_counters(current_bank());
		if (counter)
			counter->out_of_range++;
		return false;
	}
	*pc = cells.offset +
	      cell_first_delta(cell_index(*pc - cells.offset, cells.scale), cells.scale);
	*id = sample_id_make(0, cells.process, 0) | (*id & SAMPLE_ID_KERNEL);
	return true;
}

/*
 * Whether the kernel has what threads_waiting() reads: CONFIG_FAIR_GROUP_SCHED. Other ways to a
 * CPU's run queue need CONFIG_KALLSYMS_ALL, or a lock.
 */
static __always_inline bool has_run_queue(void)
{
	return bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       bpf_core_field_exists(struct cfs_rq, rq) &&
	       bpf_core_field_exists(struct rq, nr_running);
}

/*
 * How many threads wait for this CPU while the task runs: all in its run queue but the task itself,
 * and those that sleep there. No lock is needed for a number; this CPU's other interrupts are
 * disabled, and another CPU that adds or removes a thread makes it one more or one less.
 */
static __always_inline __u32 threads_waiting(struct task_struct *task)
{
	__u32 queued, runnable, asleep = 0, cpu = bpf_get_smp_processor_id();
	struct sample_times *own;
	struct cfs_rq *cfs;
	struct rq *rq;

	if (!has_run_queue() || cells.scale)
		return 0;
	if (victims) { /* count_victims() has counted them */
		own = bpf_map_lookup_elem(&times, &cpu);
		return own ? own->victims : 0;
	}
	rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	queued = BPF_CORE_READ(rq, nr_running);
	if (queued < 2)
		return 0;
	cfs = __builtin_preserve_access_index(&rq->cfs);
	if (bpf_core_field_exists(cfs->h_nr_runnable)) {
		/* Another CPU that adds a thread counts it as runnable before it is queued. */
		runnable = BPF_CORE_READ(cfs, h_nr_runnable);
		asleep = BPF_CORE_READ(cfs, h_nr_queued);
		asleep -= runnable < asleep ? runnable : asleep;
	} else if (bpf_core_field_exists(cfs->h_nr_delayed)) {
		asleep = BPF_CORE_READ(cfs, h_nr_delayed);
	}
	return asleep < queued ? queued - asleep - 1 : 0;
}

/*
 * Leaves the time of a tick that was counted in a place of a bucket, and adds how many waited at it
 * to the sum of that place.
 */
static __always_inline void note_tick(__u64 now, __u32 bucket, int place, __u64 *sum, __u64 waiting,
				      __u32 ring)
{
	struct sample_times *own = bpf_map_lookup_elem(&times, &ring);
	__u64 written;

	if (waiting)
		__sync_fetch_and_add(sum, waiting);
	if (!own || cells.scale) /* which have no times */
		return;
	written = own->written;
	if (written - *(volatile __u64 *)&own->read >= SAMPLE_TIMES) {
		own->lost++;
		return;
	}
	own->ticks[written % SAMPLE_TIMES] =
		now << SAMPLE_SLOT_BITS | (bucket * SAMPLE_PER_BUCKET + place);
	write_in_order(&own->written, written + 1);
}

/*
 * Several CPUs may search a bucket at once; none ever waits. The CPU that swaps its pc into a free
 * slot owns it, and then writes the ID. Other CPUs skip a slot without an ID. So two slots may get
 * the same pc and ID; the reader sums them.
 */
static bool count_in_bucket(struct sample_bucket *bucket, __u32 number, __u64 pc, __u64 id,
			    __u64 now, __u32 waiting)
{
	__u32 cpu = bpf_get_smp_processor_id();

	for (int i = 0; i < SAMPLE_PER_BUCKET; i++) {
		struct sample *sample = &bucket->samples[i];

		if (sample->pc == pc && sample->id == id) {
			__sync_fetch_and_add(&sample->count, 1);
			note_tick(now, number, i, &bucket->waiting[i], waiting, cpu);
			return true;
		}
		if (sample->pc == 0 && __sync_val_compare_and_swap(&sample->pc, 0, pc) == 0) {
			sample->first_ns = now;
			add_and_order(&sample->count, 1);
			sample->id = id;
			note_tick(now, number, i, &bucket->waiting[i], waiting, cpu);
			return true;
		}
	}
	return false;
}

static bool count_in_table(__u64 pc, __u64 id, __u64 now, __u32 waiting, __u32 bank)
{
	__u32 home = ((pc ^ id * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93) >> 32;

	for (__u32 i = 0; i < SAMPLE_PROBES; i++) {
		__u32 key = bucket_number(home + i, bank);
		struct sample_bucket *bucket = bpf_map_lookup_elem(&table, &key);

		if (!bucket)
			return false;
		if (i == 0)
			__sync_fetch_and_add(&bucket->ticks, 1);
		/*
		 * pc 0, a jump to NULL, would look like a free slot: it goes through the ring
		 * buffer
		 */
		if (pc && count_in_bucket(bucket, key, pc, id, now, waiting))
			return true;
	}
	return false;
}

/* User space reads the ring buffer periodically, so it is woken only when the buffer fills up. */
static __u64 ring_wakeup(__u32 size)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > size / 4 ? BPF_RB_FORCE_WAKEUP
								      : BPF_RB_NO_WAKEUP;
}

static void count_sent(bool sent, __u32 bank)
{
	struct sample_counters *counter = cpu_counters(bank);

	if (!counter)
		return;
	/* A program at a function may be preempted here. */
	__sync_fetch_and_add(sent ? &counter->ring : &counter->ring_full, 1);
}

static __always_inline void count_pc(__u64 pc, __u64 id, __u32 waiting)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 bank = current_bank();
	struct sample_record *record;

	if (count_in_table(pc, id, now, waiting, bank))
		return;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (record) {
		record->pc = pc;
		record->id = id;
		record->time_ns = now;
		record->waiting = waiting;
		bpf_ringbuf_submit(record, ring_wakeup(SAMPLE_RING_BYTES));
	}
	count_sent(record, bank);
}

/* --- Call stacks --- */

/*
 * Global functions: the verifier checks each once, not at every call, where it would give up. It
 * follows each pass of a loop, so that long loops have little in them but calls of such functions:
 * its time is most of what a recording needs to begin.
 */

/* A stack is read in blocks of words. Bound: size. */
#define STACK_BLOCK_WORDS 16
#define STACK_BLOCKS	  (STACK_WORDS_MAX / STACK_BLOCK_WORDS)
_Static_assert(STACK_WORDS_MAX % STACK_BLOCK_WORDS == 0, "the last block is cut off");

struct stack_block {
	__u64 words[STACK_BLOCK_WORDS];
};

/* Goes on with the hash over the first `count` words of a block. */
__noinline __u64 hash_block(struct stack_block *block, __u32 count, __u64 hash)
{
	if (!block)
		return 0;
	for (__u32 i = 0; i < STACK_BLOCK_WORDS && i < count; i++) {
		hash = (hash ^ block->words[i]) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	return hash;
}

__noinline __u64 hash_stack(struct stack *stack)
{
	struct stack_block *blocks = (struct stack_block *)stack;
	__u64 hash = 0;
	__u32 count;

	if (!stack)
		return 0;
	count = stack_words(stack);
	for (__u32 i = 0; i < STACK_BLOCKS && i * STACK_BLOCK_WORDS < count; i++)
		hash = hash_block(&blocks[i], count - i * STACK_BLOCK_WORDS, hash);
	return (hash & hash_bits) | 1; /* 0 means a free entry */
}

/* Entries are found by steps of the hash: a table that is nearly full has long rows of others. */
static __always_inline __u32 probe_step(__u64 hash)
{
	return (hash >> 16 & 0xfffe) | 1;
}

static __u64 *words_at(__u64 position)
{
	__u32 key = position / STACK_CHUNK_WORDS;
	struct stack_chunk *chunk = bpf_map_lookup_elem(&arena, &key);

	return chunk ? &chunk->words[position % STACK_CHUNK_WORDS] : NULL;
}

/* Whether the first `count` words of two blocks are equal. */
__noinline int blocks_are_equal(struct stack_block *block, struct stack_block *there, __u32 count)
{
	if (!block || !there)
		return 0;
	for (__u32 i = 0; i < STACK_BLOCK_WORDS && i < count; i++)
		if (block->words[i] != there->words[i])
			return 0;
	return 1;
}

__noinline int is_stack_at(struct stack *stack, __u64 position)
{
	struct stack_block *blocks = (struct stack_block *)stack;
	struct stack_block *there = (struct stack_block *)words_at(position);
	__u32 count;

	if (!stack || !there)
		return 0;
	count = stack_words(stack);
	for (__u32 i = 0; i < STACK_BLOCKS && i * STACK_BLOCK_WORDS < count; i++)
		if (!blocks_are_equal(&blocks[i], &there[i], count - i * STACK_BLOCK_WORDS))
			return 0;
	return 1;
}

__noinline int write_stack(struct stack *stack, __u64 position)
{
	__u64 *there = words_at(position), size;

	if (!stack || !there)
		return 0;
	size = stack_words(stack) * sizeof(*there);
	return size <= sizeof(*stack) && bpf_probe_read_kernel(there, size, stack) == 0;
}

/* Where a bank's part of the arena begins, with the number of words in use. */
static __always_inline __u64 bank_position(__u32 bank)
{
	return bank * bank_words;
}

/* Fills in an entry that this CPU has claimed. Returns false if the arena is full. */
static bool add_stack(struct stack_entry *entry, struct stack *stack, __u64 now, __u64 *used,
		      __u32 bank)
{
	__u64 before = __sync_fetch_and_add(used, stack_words(stack));
	__u64 position = bank_position(bank) + before + 1;

	/* Other CPUs may just have used up the arena. */
	if (before + STACK_WORDS_MAX >= arena_words || !write_stack(stack, position))
		return false;
	entry->first_ns = now;
	add_and_order(&entry->count, 1);
	entry->position = position;
	return true;
}

/* See count_in_bucket(). */
__noinline int count_in_stack_bucket(struct stack_sample *sample, __u32 number, __u64 hash,
				     __u32 bank)
{
	struct stack_bucket *bucket = bpf_map_lookup_elem(&stacks, &number);
	__u64 now, *used = words_at(bank_position(bank));
	struct stack *stack;

	if (!sample || !bucket || !used)
		return false;
	stack = &sample->stack;
	now = sample->time_ns;
	for (int i = 0; i < SAMPLE_PER_BUCKET; i++) {
		struct stack_entry *entry = &bucket->entries[i];

		if (entry->hash == hash && entry->position && is_stack_at(stack, entry->position)) {
			__sync_fetch_and_add(&entry->count, 1);
			note_tick(now, number, i, &bucket->waiting[i], sample->waiting,
				  sample->times);
			return true;
		}
		if (entry->hash == 0 && *used + STACK_WORDS_MAX < arena_words &&
		    __sync_val_compare_and_swap(&entry->hash, 0, hash) == 0) {
			if (!add_stack(entry, stack, now, used, bank))
				return false;
			note_tick(now, number, i, &bucket->waiting[i], sample->waiting,
				  sample->times);
			return true;
		}
	}
	return false;
}

/* Global, as a program comes here in many states. Returns whether the stack was counted. */
__noinline int count_in_stacks(struct stack_sample *sample, __u32 bank)
{
	struct stack_bucket *bucket;
	__u32 home, key;
	__u64 hash;

	if (!sample)
		return false;
	hash = hash_stack(&sample->stack);
	home = hash >> 32;
	key = bucket_number(home, bank);
	bucket = bpf_map_lookup_elem(&stacks, &key);
	if (!bucket)
		return false;
	__sync_fetch_and_add(&bucket->ticks, 1);
	for (__u32 i = 0; i < SAMPLE_PROBES; i++)
		if (count_in_stack_bucket(sample, bucket_number(home + i, bank), hash, bank))
			return true;
	return false;
}

/*
 * The user pc of a thread in a system call is the address after the instruction, as after a call.
 * After an interrupt or a fault it is the interrupted instruction itself: add 1, since user space
 * subtracts 1 from every pc but the leaf.
 */
static __always_inline void mark_interrupted(__u64 *user_pc)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (!is_in_system_call(regs))
		++*user_pc;
}

/* Counts a stack; size: of its pcs, in bytes. */
static __always_inline void count_stack(struct stack_sample *sample, long size)
{
	__u32 bank = current_bank();

	sample->time_ns = bpf_ktime_get_ns();
	if (count_in_stacks(sample, bank))
		return;
	size += offsetof(struct stack_sample, stack.pcs);
	count_sent(bpf_ringbuf_output(&ring, sample, size, ring_wakeup(SAMPLE_RING_BYTES)) == 0,
		   bank);
}

/* --- The run time of the program --- */

static void count_time(__u64 start)
{
	struct sample_counters *counter;
	__u64 run_ns = bpf_ktime_get_ns() - start;

	counter = cpu_counters(current_bank());
	if (!counter)
		return;
	counter->timed++;
	counter->timed_ns += run_ns;
}

/*
 * Returns the time, for count_time(), if this tick is measured, else 0. Ticks in one of 8 jiffies
 * are: reading the clock at every tick would double the cost of a tick, and counting ticks to
 * choose some would touch another cache line.
 */
static __u64 begin_timing(void)
{
	return bpf_jiffies64() % 8 ? 0 : bpf_ktime_get_ns();
}

#endif
